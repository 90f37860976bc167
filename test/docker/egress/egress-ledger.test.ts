import assert from "node:assert/strict";
import test from "node:test";
import type { Connection } from "../../../src/core/network.ts";
import { EgressLedger } from "../../../src/docker/egress/egress-ledger.ts";

const ASKED = { host: "example.org", port: 443, method: null };

test("an open connection is in the ledger with its byte counts, and is reported once when it ends", () => {
  const told: Connection[] = [];
  const ledger = new EgressLedger((line) => void told.push(line));
  const line = ledger.allowed(ASKED);
  line.up = 5;
  assert.deepEqual([ledger.read().connections[0]?.up, told.length], [5, 0]);
  line.down = 7;
  line.end();
  line.end("idle", "again");
  assert.deepEqual(
    told.map(({ up, down, rule, verdict }) => [up, down, rule, verdict]),
    [[5, 7, "granted", "allowed"]],
  );
  assert.deepEqual(ledger.read(), { connections: told, dropped: 0 });
});

test("of many connections the first and the last are kept, and the rest are counted", () => {
  let told = 0;
  const ledger = new EgressLedger(() => (told += 1));
  for (let at = 0; at < 20_000; at += 1)
    ledger.denied({ ...ASKED, host: `h${at}.test` }, "not-granted", "no");
  ledger.allowed(ASKED).end();
  const { connections, dropped } = ledger.read();
  const hosts = new Set(connections.map(({ host }) => host));
  assert.equal(connections.length + dropped, 20_001);
  assert.ok(connections.length < 1600 && told === 501);
  assert.ok(["h0.test", "h499.test", "h19999.test", "example.org"].every((host) => hosts.has(host)));
});

test("what a box says is one bounded line without control characters", () => {
  const ledger = new EgressLedger(() => undefined);
  ledger.denied(
    { host: `\u001b[2J\n${"a".repeat(5000)}`, port: 1, method: "\u202eTEG" },
    "authority",
    "x\r\ny",
  );
  const [line] = ledger.read().connections;
  assert.ok((line?.host.length ?? 0) < 500);
  assert.doesNotMatch(`${line?.host}${line?.method}${line?.reason}`, /[\u0000-\u001f\u202e]/);
});

// also slow: all its kills
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { part } from "../fixtures/property.ts";
import { scratch } from "../fixtures/scratch.ts";
import { killed } from "../kills/killed.ts";
import { assertPrefix, countOf } from "../kills/session-lives.ts";

const WRITER = path.join(import.meta.dirname, "../fixtures/store-writer.ts");

const KILLS = part(16);
const KILLS_WHILE_MAKING = part(6);

interface Killed {
  /** The last record that it reported as kept; -1 for none. */
  readonly acknowledged: number;
  readonly lines: readonly string[];
}

function writer(state: string, id: string): { readonly child: ChildProcess; readonly said: () => string } {
  const child = spawn(process.execPath, [WRITER, state, id, "w", "1000000"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { child, said: () => text };
}

async function killedAfter(
  state: string,
  id: string,
  wait: (child: ChildProcess) => Promise<unknown>,
): Promise<Killed> {
  const { child, said } = writer(state, id);
  const closed = once(child, "close");
  await wait(child);
  child.kill("SIGKILL");
  const [, signal] = (await closed) as [number | null, string | null];
  assert.equal(signal, "SIGKILL", said());
  // Output written to the pipe arrives; an incomplete line is ignored.
  const lines = said().split("\n").slice(0, -1);
  const last = lines.findLast((line) => /^\d+$/.test(line));
  return { acknowledged: Number(last ?? -1), lines };
}

function made(state: string): string {
  using store = openStore(state);
  return store.create(ABOUT).id;
}

test(
  `${KILLS} kills while records are written lose nothing that was kept`,
  { timeout: 300_000 },
  async (t) => {
    await using place = await scratch();
    const state = place.at("state");
    const warnings: string[] = [];
    const id = made(state);
    let written = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { acknowledged } = await killedAfter(state, id, async ({ stdout }) => {
        assert.ok(stdout !== null);
        await once(stdout, "data");
        await sleep(Math.random() * 12);
      });
      using store = openStore(state, { warn: (text) => void warnings.push(text) });
      const session = store.open(id);
      const records = session.records();
      assert.ok(acknowledged >= written, "each writer reports something before it is killed");
      assert.ok(records.length > acknowledged, `${records.length} are left of ${acknowledged + 1}`);
      assertPrefix(records);
      assert.equal(session.info().messages, countOf(records));
      const events = [...session.events()].length;
      assert.ok(events >= records.length, `${events} events before ${records.length} records`);
      written = records.length;
    }
    assert.deepEqual(warnings, []);
    t.diagnostic(`${written} records`);
  },
);

test("a kill while the database is created leaves one that can be used", { timeout: 120_000 }, async (t) => {
  let unfinished = 0;
  for (let kill = 0; kill < KILLS_WHILE_MAKING; kill += 1) {
    await using place = await scratch();
    const state = place.at("state");
    const { acknowledged, lines } = await killedAfter(state, "new", async () => {
      while (!existsSync(state)) await sleep(1);
      await sleep(Math.random() * 40);
    });
    const warnings: string[] = [];
    using store = openStore(state, { warn: (text) => void warnings.push(text) });
    const ids = store.list({}).map(({ id }) => id);
    if (lines[0] === undefined) unfinished += 1;
    else assert.deepEqual(ids, [lines[0]]);
    const records = ids[0] === undefined ? [] : store.open(ids[0]).records();
    assert.ok(records.length > acknowledged);
    assertPrefix(records);
    assert.deepEqual(warnings, []);
  }
  t.diagnostic(`${unfinished} of ${KILLS_WHILE_MAKING} before a session was there`);
});

test("a killed removal can be repeated, and leaves nothing that cannot be removed", async (t) => {
  let listed = 0;
  for (let at = 1, ended = false; !ended; at += 1) {
    await using place = await scratch();
    const state = place.at("state");
    const id = made(state);
    {
      using store = openStore(state);
      const session = store.open(id);
      session.outputs.keep("an output\n".repeat(1000));
      session.audit.write([{ kind: "run.started" }]);
    }
    const moment = { kind: "step", at, half: false } as const;
    ({ ended } = await killed("fixtures/store-writer.ts", [state, id, "w", "remove"], moment));
    using store = openStore(state);
    if (store.list({}).length > 0) {
      listed += 1;
      store.remove(id);
    }
    const left = ["audit", "outputs"].flatMap((folder) =>
      readdirSync(path.join(state, folder), { recursive: true, withFileTypes: true }),
    );
    assert.deepEqual(
      left.filter((entry) => entry.isFile()).map(({ name }) => name),
      [],
      `killed before change ${at}`,
    );
  }
  t.diagnostic(`${listed} times it was still listed`);
});

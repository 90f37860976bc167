import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { duplexPair } from "node:stream";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type NearNetwork, relayNetwork } from "../../src/boxes/network-relay.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import {
  decodeFields,
  encodeFields,
  EXEC_OWN,
  numberIn,
  REPLY,
  REQUEST,
  textIn,
} from "../../src/boxes/runner-protocol.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { parseGrant } from "../../src/core/network.ts";
import { scratch } from "../fixtures/scratch.ts";
import { KEY, scriptedRunner } from "./scripted-runner.ts";

/** The relay's first word. */
const READY = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0]);
const GRANT = parseGrant("some.test");

/** A box whose files are taken, and whose relay does what the test says. */
async function opened(granted: boolean) {
  const place = await scratch({
    "ca.pem": "certificates\n",
    "maven/settings.xml": "<settings/>",
    "ca.pem.new": "half",
  });
  const runner = scriptedRunner();
  const client = new RunnerClient(runner.stream, KEY);
  const said: string[] = [];
  const state = { env: granted ? { HTTPS_PROXY: "here" } : {}, taken: 0 };
  const network: NearNetwork = {
    folder: place.path,
    env: () => state.env,
    connections: () => [],
    connect: () => duplexPair()[0],
    grant: () => {
      state.env = { HTTPS_PROXY: "here" };
      return Promise.resolve(() => void (state.taken += 1));
    },
  };
  const answered = { count: 0 };
  const step = async (): Promise<void> => {
    for (let turns = 0; turns < 20; turns += 1) {
      await sleep(2);
      const fresh = runner.received.slice(answered.count);
      answered.count = runner.received.length;
      for (const { type, call } of fresh)
        if (type === REQUEST.write) runner.reply(REPLY.end, call, encodeFields([["e", 0]]));
    }
  };
  const written = (): readonly string[] =>
    runner.received.flatMap(({ type, payload }) =>
      type === REQUEST.write ? [textIn(decodeFields(payload), "p")] : [],
    );
  const starts = () => runner.received.filter(({ type }) => type === REQUEST.exec);
  const relaying = relayNetwork({ client, network, onWarning: (text) => void said.push(text) });
  relaying.catch(() => undefined);
  return { place, runner, client, said, state, step, written, starts, relaying };
}

const isNoWay =
  (words: RegExp) =>
  (thrown: unknown): boolean =>
    thrown instanceof HarnessError && thrown.exit === EXIT.sandbox && words.test(thrown.message);

test("the files of the network are written first, then its program starts beside all commands", async () => {
  const { place, runner, step, written, starts, relaying } = await opened(true);
  await using _ = place;
  await step();
  assert.deepEqual(written().toSorted(), ["/run/harness/ca.pem", "/run/harness/maven/settings.xml"]);
  const [start] = starts();
  assert.ok(start !== undefined && starts().length === 1);
  const fields = decodeFields(start.payload);
  assert.deepEqual(
    [textIn(fields, "a"), numberIn(fields, "f") & EXEC_OWN],
    ["/usr/local/lib/harness/relay", EXEC_OWN],
  );
  runner.reply(REPLY.out, start.call, READY);
  const network = await relaying;
  assert.deepEqual(network.connections(), []);
  network.leave();
});

test("a box without grants has no relay until something is granted", async () => {
  const { place, runner, step, written, starts, relaying } = await opened(false);
  await using _ = place;
  const network = await relaying;
  await step();
  assert.deepEqual([written(), starts()], [[], []]);
  const granting = network.grant([GRANT]);
  await step();
  runner.reply(REPLY.out, starts()[0]?.call ?? 0, READY);
  await granting;
  await place.write("ca.pem", await readFile(place.at("ca.pem"), "utf8").then((text) => `${text}one more\n`));
  const again = network.grant([GRANT]);
  await step();
  await again;
  assert.deepEqual(written().slice(2), ["/run/harness/ca.pem"], "only the changed file is written again");
  assert.equal(starts().length, 1);
  network.leave();
});

test("an invalid frame ends the relay for good: it is reported once, to the next grant and to every command, and the box goes on", async () => {
  const { place, runner, client, said, state, step, starts, relaying } = await opened(true);
  await using _ = place;
  await step();
  const call = starts()[0]?.call ?? 0;
  runner.reply(REPLY.out, call, READY);
  const network = await relaying;
  runner.reply(REPLY.out, call, Buffer.from([2, 9, 0, 0, 0, 1, 0, 0, 0, 1]));
  await step();
  assert.ok(runner.received.some(({ type, call: of }) => type === REQUEST.kill && of === call));
  runner.exit(call, [["s", 9]]);
  await step();
  const RUBBISH =
    /^the box cannot reach the hosts that are granted: the box sent data that the relay program never sends$/;
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", RUBBISH);
  await assert.rejects(network.grant([GRANT]), isNoWay(RUBBISH));
  assert.equal(state.taken, 1, "what failed is not granted");
  assert.deepEqual(
    network.connections().map(({ verdict, rule, reason }) => [verdict, rule, RUBBISH.test(reason)]),
    [["denied", "relay", true]],
  );
  assert.deepEqual([starts().length, client.lost], [1, undefined]);
});

test("a relay that ended is restarted, and an image without it is reported at the start", async () => {
  const first = await opened(true);
  await using _ = first.place;
  await first.step();
  const call = first.starts()[0]?.call ?? 0;
  first.runner.reply(REPLY.out, call, READY);
  const network = await first.relaying;
  first.runner.exit(call, [["s", 9]]);
  await first.step();
  const [, second] = first.starts();
  assert.ok(second !== undefined);
  first.runner.reply(REPLY.out, second.call, READY);
  await first.step();
  assert.deepEqual([network.connections(), first.said], [[], []]);
  network.leave();
  first.runner.exit(second.call, [["c", 0]]);
  await first.step();
  assert.equal(first.starts().length, 2, "no longer wanted");

  const other = await opened(true);
  await using __ = other.place;
  await other.step();
  other.runner.exit(other.starts()[0]?.call ?? 0, [["E", 2]]);
  await assert.rejects(
    other.relaying,
    isNoWay(/relay cannot be started in the box \(ENOENT\): the image may be out of date/),
  );
});

test("before a box is held the relay ends, and it is not restarted", async () => {
  const { place, runner, step, starts, relaying } = await opened(true);
  await using _ = place;
  await step();
  const call = starts()[0]?.call ?? 0;
  runner.reply(REPLY.out, call, READY);
  const network = await relaying;
  const over = { is: false };
  const ending = network.end().then(() => (over.is = true));
  await step();
  assert.ok(runner.received.some(({ type, call: of }) => type === REQUEST.kill && of === call));
  assert.equal(over.is, false, "it does not end before its program");
  runner.exit(call, [["s", 9]]);
  await ending;
  await step();
  assert.equal(starts().length, 1);

  const none = await opened(false);
  await using __ = none.place;
  await (await none.relaying).end();
  assert.deepEqual(none.starts(), []);
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { reasonOf } from "../../src/core/errors.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { encodeFields, frameWriter, KEY_BYTES, MAGIC, REQUEST } from "../../src/boxes/runner-protocol.ts";
import { statIn, writeFileIn } from "../../src/boxes/runner-files.ts";
import { readSeen } from "../../src/boxes/runner-command.ts";
import { type Leased, leased, started } from "../fixtures/bare-runner.ts";
import { skip } from "../fixtures/engine.ts";

const endless = {
  words: ["sh", "-c", "n=0; while :; do n=$((n+1)); echo $n; sleep 0.1; done"],
  folder: "/",
  env: {},
  timeoutMs: 0,
  head: 2 ** 20,
  tail: 0,
  terminal: false,
  input: undefined,
};

const untilDown = async ({ isUp }: Leased): Promise<void> => {
  for (let i = 0; i < 80 && (await isUp()); i += 1) await sleep(50);
  assert.equal(await isUp(), false, "it keeps running");
};

/** On a machine with much to do the runtime gives up now and then before all processes stand still. */
async function frozen(container: { pause: () => Promise<unknown> }): Promise<void> {
  for (let tries = 0; tries < 4; tries += 1) {
    const failed: unknown = await container.pause().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (failed === undefined) return;
    if (!/unable to freeze/.test(reasonOf(failed))) throw failed;
  }
  await container.pause();
}

test(
  "a held runner is silent, and continues its calls under the next key without losing a byte",
  { skip },
  async () => {
    await using box = await leased();
    const one = await started(box);
    const lines: string[] = [];
    const hear = { onOutput: (_: string, __: string, bytes: Buffer) => void lines.push(String(bytes)) };
    const running = one.run(endless, hear);
    await sleep(500);
    await assert.rejects(one.hold(randomBytes(KEY_BYTES), new Set()), /busy/);
    const key = randomBytes(KEY_BYTES);
    const { next, asks, going } = await one.hold(key, new Set([running.call]));
    assert.deepEqual([asks, [...going]], [[], [running.call]]);
    await assert.rejects(one.hold(key, new Set([running.call])), /busy/);
    const heard = lines.length;
    await sleep(500);
    assert.equal(lines.length, heard);
    running.ended.catch(() => undefined);
    one.close();
    await frozen(box.container);
    await sleep(500);
    await box.container.unpause();
    const two = new RunnerClient(await box.attach(), randomBytes(KEY_BYTES), { paused: { key, next, asks } });
    const goes = two.follow(running.call, hear);
    await statIn(two, "/tmp");
    await sleep(500);
    goes.signal(9);
    const { stdout } = await goes.ended;
    const said = lines.join("");
    assert.equal(said.length, stdout.total);
    const count = said.trimEnd().split("\n").map(Number);
    assert.ok(count.length > heard);
    assert.deepEqual(
      count,
      count.map((_, index) => index + 1),
    );
    two.close();
  },
);

test(
  "observation pauses while the runner is held, and a canary touch is reported after it resumes",
  { skip },
  async () => {
    await using box = await leased();
    const one = await started(box);
    await writeFileIn(one, "/home/box/key", Buffer.from("false"));
    const canaries = [{ name: "a key", kind: "file", at: "/home/box/key" }] as const;
    const script = "echo begun; sleep 0.5; cat /etc/hostname; cat /home/box/key; sleep 60";
    const observed = { ...endless, words: ["sh", "-c", script], observe: { canaries, trees: ["/home/box"] } };
    const begun = Promise.withResolvers<void>();
    const running = one.run(observed, { onOutput: () => begun.resolve() });
    running.ended.catch(() => undefined);
    await begun.promise;
    const key = randomBytes(KEY_BYTES);
    const { next, asks } = await one.hold(key, new Set([running.call]));
    one.close();
    await sleep(1000);
    await frozen(box.container);
    await box.container.unpause();
    const two = new RunnerClient(await box.attach(), randomBytes(KEY_BYTES), { paused: { key, next, asks } });
    const { seen = [] } = await two.follow(running.call, { onOutput: () => undefined }).ended;
    const { by, touched, acts } = readSeen(seen, canaries);
    assert.deepEqual([by, touched?.canary, touched?.path], ["calls", "a key", "/home/box/key"]);
    assert.ok(acts.some((act) => act.kind === "read" && act.path === "/etc/hostname"));
    two.close();
  },
);

const key = randomBytes(KEY_BYTES);
const alive = { type: REQUEST.alive, call: 0, payload: Buffer.alloc(0) };
const resume = { type: REQUEST.resume, call: 9, payload: randomBytes(KEY_BYTES) };

const FORGERIES: Readonly<Record<string, readonly Buffer[]>> = {
  "a frame under another key": [frameWriter(randomBytes(KEY_BYTES))(resume)],
  "any other frame under the right key": [frameWriter(key)(alive)],
  "a command under the right key": [
    frameWriter(key)({ type: REQUEST.exec, call: 9, payload: encodeFields([["a", "true"]]) }),
  ],
  "a second use of the key": [frameWriter(key)(resume), frameWriter(key)(resume)],
  "the greeting of a new client": [Buffer.concat([Buffer.from(MAGIC), key])],
  "a key of another length": [frameWriter(key)({ ...resume, payload: Buffer.alloc(5) })],
};

for (const [what, frames] of Object.entries(FORGERIES))
  test(`${what} ends a held runner and everything that runs in it`, { skip }, async () => {
    await using box = await leased();
    const one = await started(box);
    await one.hold(key, new Set());
    one.close();
    const stream = await box.attach();
    for (const frame of frames) stream.write(frame);
    await untilDown(box);
    stream.destroy();
  });

test("a resume without a hold ends the box", { skip }, async () => {
  await using box = await leased();
  const secret = randomBytes(KEY_BYTES);
  const stream = await box.attach();
  stream.write(Buffer.concat([Buffer.from(MAGIC), secret]));
  await box.container.start();
  stream.write(frameWriter(secret)(resume));
  await untilDown(box);
  stream.destroy();
});

test("a client of another protocol version is rejected by the runner", { skip }, async () => {
  await using box = await leased();
  const secret = randomBytes(KEY_BYTES);
  const stream = await box.attach();
  stream.write(Buffer.concat([Buffer.from("HRN1"), secret]));
  await box.container.start();
  await untilDown(box);
  stream.destroy();
});

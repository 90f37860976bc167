import assert from "node:assert/strict";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { boxLabels, thisProcess } from "../../src/boxes/box-record.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { Room } from "../fixtures/escape.ts";
import { engineProxy } from "./life-proxy.ts";
import { goneWithin, leftOn, startRun } from "./life-run.ts";

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** The next start works, and after it nothing is left of either. */
async function nextIsClean(room: Room): Promise<void> {
  const next = startRun(room, "echo fine");
  assert.deepEqual([await next.ended, next.said()], [0, "fine\n"]);
  assert.deepEqual(await leftOn(room), []);
}

for (const [signal, code] of Object.entries(CODES))
  test(
    `${signal} during a call: the box is gone before the program exits`,
    { skip, timeout: 90_000 },
    async () => {
      await using room = await Room.make();
      const run = startRun(room, "trap '' INT TERM HUP; echo begun; sleep 1000");
      await run.until("begun");
      run.child.kill(signal as NodeJS.Signals);
      assert.equal(await run.ended, code);
      assert.deepEqual(await leftOn(room), []);
      await nextIsClean(room);
    },
  );

test(
  "KILL during a call: the box ends by itself, and the rest is removed at the next start",
  { skip },
  async () => {
    await using room = await Room.make();
    const run = startRun(room, "trap '' INT TERM HUP; (setsid sleep 100 &); echo begun; sleep 100");
    await run.until("begun");
    run.child.kill("SIGKILL");
    await run.ended;
    await goneWithin(room, 30_000);
    await nextIsClean(room);
  },
);

/** The requests that a start makes of the engine, in about this order; the last is the end of a run on a copy: a box over the folder itself is removed unasked. */
const STAGES = [
  "GET version",
  "GET info",
  "GET containers/json",
  "GET volumes",
  "POST containers/create",
  "POST containers/ID/attach",
  "GET containers/ID/json",
  "POST containers/ID/start",
  "DELETE containers/ID",
];

for (const signal of ["SIGINT", "SIGKILL"] as const)
  for (const stage of STAGES)
    test(`${signal} at ${stage}: nothing is left`, { skip }, async () => {
      await using room = await Room.make();
      const seen = new Set<string>();
      const onCopy = stage.startsWith("DELETE") ? ["--isolation", "copy"] : [];
      const state: { run?: ReturnType<typeof startRun> } = {};
      await using proxy = await engineProxy(path.join(room.root, "engine.sock"), (request) => {
        if (request === stage && !seen.has(request)) state.run?.child.kill(signal);
        seen.add(request);
      });
      const run = (state.run = startRun(room, "echo ran", { DOCKER_HOST: proxy.host }, onCopy));
      const end = await run.ended;
      assert.ok(seen.has(stage), `never asked: ${[...seen].join(", ")}`);
      if (signal === "SIGKILL") assert.equal(end, "SIGKILL");
      else {
        assert.ok(
          end === 130 || (end === 0 && stage.startsWith("DELETE")),
          `ended with ${end}: ${run.said()}`,
        );
        assert.deepEqual(await leftOn(room), []);
      }
      // Where nothing is left there is nothing for the next start to clear away.
      if (signal === "SIGINT") return;
      // What the engine was asked for last may still be in the making.
      await sleep(300);
      await nextIsClean(room);
    });

test("an engine that dies during a run is reported quickly", { skip, timeout: 90_000 }, async () => {
  await using room = await Room.make();
  await using proxy = await engineProxy(path.join(room.root, "engine.sock"));
  const run = startRun(room, "echo begun; sleep 1000", { DOCKER_HOST: proxy.host });
  await run.until("begun");
  proxy.cut();
  const end = await run.ended;
  assert.ok(typeof end === "number" && end !== 0 && end !== 130, String(end));
  assert.match(run.said(), /the box was lost/);
  await goneWithin(room, 30_000);
  await nextIsClean(room);
});

test("without an engine the command is refused and nothing runs", { skip }, async () => {
  await using room = await Room.make();
  const run = startRun(room, "touch made", { DOCKER_HOST: `unix://${room.root}/none.sock` });
  assert.equal(await run.ended, 125);
  assert.ok(!(await readdir(room.W)).includes("made"));
});

test(
  "a workspace deleted during a run: the run ends, and the folder is not recreated",
  { skip },
  async () => {
    await using room = await Room.make();
    const run = startRun(room, "echo begun; sleep 1; echo x > here; ls; exit 5");
    await run.until("begun");
    await rm(room.W, { recursive: true, force: true });
    assert.notEqual(await run.ended, 0);
    await goneWithin(room, 10_000);
    const back = await readdir(room.W).catch(() => []);
    assert.deepEqual(back, [], "written where a folder used to be");
    await mkdir(room.W, { recursive: true });
    room.own();
    await nextIsClean(room);
  },
);

test("a workspace moved away and replaced: the box stays with the original one", { skip }, async () => {
  await using room = await Room.make();
  const run = startRun(room, "echo begun; sleep 0.7; echo x > here; cat other/secret; true");
  await run.until("begun");
  await rename(room.W, path.join(room.root, "moved"));
  await mkdir(path.join(room.W, "other"), { recursive: true });
  await run.ended;
  assert.deepEqual(await readdir(room.W), ["other"], "the new folder is not the box's");
  assert.ok((await readdir(path.join(room.root, "moved"))).includes("here"), "the twin: the old one is");
  assert.doesNotMatch(run.said(), /token/);
});

test("two runs over one workspace or over nested ones: the second is refused", { skip }, async () => {
  await using room = await Room.make();
  const first = startRun(room, "echo begun; until [ -e enough ]; do sleep 0.1; done");
  await first.until("begun");
  for (const flags of [[], ["--cwd", room.at("sub")], ["--mode", "read-only"]]) {
    const second = startRun(room, "echo ran", {}, flags);
    assert.equal(await second.ended, 125);
    assert.match(second.said(), /in use by another run/);
    assert.doesNotMatch(second.said(), /^ran/m);
  }
  await writeFile(room.at("enough"), "");
  assert.equal(await first.ended, 0);
  const readers = [0, 1].map(() => startRun(room, "echo read; sleep 0.5", {}, ["--mode", "read-only"]));
  assert.deepEqual(await Promise.all(readers.map(({ ended }) => ended)), [0, 0], "the twin: readers share");
  await nextIsClean(room);
});

test(
  "a box from before a reboot is removed by the next start, one of a living run is not",
  { skip },
  async () => {
    await using room = await Room.make();
    const [owner, uid] = [await thisProcess(), process.getuid?.() ?? 0];
    const made = (boot: string): Promise<{ readonly id: string }> =>
      engine.api.createContainer({
        Image: image,
        Cmd: ["sleep", "60"],
        HostConfig: { NetworkMode: "none" },
        Labels: {
          ...boxLabels({
            workspace: room.W,
            uid,
            owner: { ...owner, boot },
            session: "s",
            created: new Date().toISOString(),
            isolation: "bind",
            mode: "read-only",
          }),
        },
      });
    const [old, living] = [await made("11111111-2222-3333-4444-555555555555"), await made(owner.boot)];
    const next = startRun(room, "echo fine", {}, ["--mode", "read-only"]);
    assert.equal(await next.ended, 0);
    const left = await room.boxes();
    await engine.api.getContainer(living.id).remove({ force: true });
    assert.deepEqual([left.includes(old.id), left.includes(living.id)], [false, true]);
  },
);

// slow: it loses a waiting box in each possible way; approve-frozen.engine.test.ts has boxes that wait
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { noOverlay } from "../docker/box/open-box.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { boxesFor, goneWithin, LEASE_MS, parkingsOf } from "./frozen.ts";
import { approve, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

const fileOf = async (place: Scratch): Promise<string> => {
  const [name = ""] = await parkingsOf(place);
  return place.at(".local/state/harness/parked", name);
};

const rewrite =
  (change: (text: string) => string) =>
  async (place: Scratch): Promise<void> => {
    const file = await fileOf(place);
    await writeFile(file, change(await readFile(file, "utf8")));
  };

const containerOf = async (place: Scratch) => {
  const [box] = await boxesFor(place);
  return engine.api.getContainer(box?.Id ?? "");
};

interface Trouble {
  readonly what: string;
  readonly flags?: readonly string[];
  readonly meanwhile: (place: Scratch) => Promise<unknown>;
  readonly told: RegExp;
}

const TROUBLES: readonly Trouble[] = [
  {
    what: "removed by the engine",
    meanwhile: async (place) => {
      await (await containerOf(place)).remove({ force: true });
    },
    told: /the engine no longer has it/,
  },
  {
    what: "gone with a restarted engine",
    // What a restart leaves: the frozen container has ended.
    meanwhile: async (place) => {
      await (await containerOf(place)).kill();
    },
    told: /the engine no longer has it/,
  },
  {
    what: "without its record",
    meanwhile: async (place) => rm(await fileOf(place)),
    told: /it was removed/,
  },
  {
    // What else may be wrong in it: parked-record.test.ts.
    what: "described by a truncated record",
    meanwhile: rewrite((text) => text.slice(0, -20)),
    told: /its record is damaged/,
  },
  {
    what: "past its time limit",
    flags: ["--park-timeout", "1s"],
    meanwhile: () => sleep(1500),
    told: /it was kept only until \d{4}-/,
  },
  {
    what: "different from one that would start now",
    meanwhile: async (place) => {
      await mkdir(place.at("work/.git"));
      await giveAway(place.at("work"));
    },
    told: /not as planned/,
  },
  {
    what: "thawed by somebody else",
    meanwhile: async (place) => {
      await (await containerOf(place)).unpause();
    },
    told: /the engine no longer has it/,
  },
];

for (const { what, flags = [], meanwhile, told } of TROUBLES)
  test(`a box that is ${what} is replaced with a notice, and no question is lost`, { skip }, async () => {
    await using place = await household();
    await using model = await startModel([bash("echo kept > /tmp/kept"), bash(FAR, "ls /tmp"), FINE]);
    const ran = await park(place, model, flags);
    assert.deepEqual([endOf(ran), ran.stderr], [PARKED, ""]);
    await meanwhile(place);
    const more = await approve(place, sessionOf(ran), ["--once"]);
    assert.deepEqual([more.code, more.stdout], [0, `${FINE.text}\n`], more.stderr);
    assert.match(more.stderr, /the box in which this waited cannot be resumed: [^]*A new one continues/);
    assert.match(more.stderr, told);
    const [, , listed = ""] = resultsIn(model.asked().at(-1));
    assert.match(listed, /The box is a new one/);
    assert.doesNotMatch(listed, /^kept$/m);
    assert.equal(await place.read("work/ran"), "ran\n");
    assert.deepEqual([await boxesFor(place), await parkingsOf(place)], [[], []]);
  });

test("a forged parking file cannot make another container be touched", { skip }, async () => {
  await using place = await household();
  await using other = await household();
  await using model = await startModel([bash("true"), bash(FAR), FINE]);
  await using theirs = await startModel([bash("true"), bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const apart = sessionOf(await park(other, theirs));
  // A whole and well-formed one, of another box.
  await writeFile(await fileOf(place), await readFile(await fileOf(other), "utf8"));
  const more = await approve(place, session, ["--once"]);
  assert.equal(more.code, 0, more.stderr);
  assert.match(more.stderr, /the engine no longer has it/);
  assert.deepEqual(
    (await boxesFor(other)).map(({ State }) => State),
    ["paused"],
  );
  assert.deepEqual([(await approve(other, apart, ["--once"])).stderr.includes("cannot be resumed")], [false]);
});

test("with --park-timeout 0 no box is kept, and nothing is reported as missing", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("true"), bash(FAR), FINE]);
  const ran = await park(place, model, ["--park-timeout", "0"]);
  assert.deepEqual([endOf(ran), await boxesFor(place), await parkingsOf(place)], [PARKED, [], []]);
  const more = await approve(place, sessionOf(ran), ["--once"]);
  assert.deepEqual([more.code, /cannot be resumed/.test(more.stderr)], [0, false], more.stderr);
});

for (const isolation of ["overlay", "copy"] as const)
  test(
    `the changes of a run with ${isolation} are kept without its box too`,
    { skip: noOverlay },
    async () => {
      await using place = await household({ "a.txt": "a\n" });
      await using model = await startModel([bash("echo more >> a.txt"), bash(FAR, "cat a.txt"), FINE]);
      const ran = await park(place, model, ["--isolation", isolation, "--park-timeout", "1s"]);
      assert.deepEqual(endOf(ran), PARKED, ran.stderr);
      await sleep(1500);
      const more = await approve(place, sessionOf(ran), ["--once"]);
      assert.equal(more.code, 0, more.stderr);
      assert.match(more.stderr, /it was kept only until/);
      assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /^a\nmore/);
      assert.equal((await harness(place, ["apply", sessionOf(ran)])).code, 0);
      assert.equal(await place.read("work/a.txt"), "a\nmore\n");
      assert.ok(existsSync(place.at("work/ran")));
    },
  );

// Readers share the workspace's lock: there the box itself is what only one can have.
for (const mode of ["workspace-write", "read-only"])
  test(`of two approvals at once one continues in the box that waited: ${mode}`, { skip }, async () => {
    await using place = await household();
    await using model = await startModel([bash("ls"), bash("curl -sS -m 5 http://example.com/x"), FINE]);
    const session = sessionOf(await park(place, model, ["--mode", mode]));
    const both = [approve(place, session, ["--once"]), approve(place, session, ["--once"])];
    const most = { boxes: 0 };
    const look = setInterval(() => {
      void boxesFor(place).then(({ length }) => (most.boxes = Math.max(most.boxes, length)));
    }, 100);
    const ended = await Promise.all(both).finally(() => clearInterval(look));
    const codes = ended.map(({ code }) => code ?? -1).toSorted((a, b) => a - b);
    assert.ok(codes[0] === 0 && (codes[1] === 2 || codes[1] === 6), JSON.stringify(ended));
    assert.equal(most.boxes, 1);
    assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /curl[^]*The box has waited/);
    assert.equal(model.asked().length, 3);
  });

test("ls, doctor and rm know a waiting box, and the session continues without it", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("true"), bash(FAR), FINE]);
  const session = sessionOf(await park(place, model));
  const id = (await boxesFor(place))[0]?.Id.slice(0, 12) ?? "";
  const listed = (await harness(place, ["sandbox", "ls"])).stdout
    .split("\n")
    .find((line) => line.startsWith(id));
  assert.match(listed ?? "", new RegExp(`parked .*${session}, for 23 h`));
  const lines = (await harness(place, ["sandbox", "ls", "--json"])).stdout.trim().split("\n");
  const own = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find((box) => box["id"] === id);
  assert.equal((own?.["parked"] as { session?: string } | undefined)?.session, session);
  // Boxes of other tests may wait, too.
  const { stdout } = await harness(place, ["doctor"]);
  assert.match(stdout, /parked +(1 frozen box waits|\d+ frozen boxes wait) for approval/);
  await harness(place, ["sandbox", "rm", "--dead"]);
  assert.equal((await boxesFor(place)).length, 1);
  assert.equal((await harness(place, ["sandbox", "rm", id])).code, 0);
  assert.deepEqual([await boxesFor(place), await parkingsOf(place)], [[], []]);
  const more = await approve(place, session, ["--once"]);
  assert.deepEqual([more.code, /it was removed/.test(more.stderr)], [0, true], more.stderr);
});

test("continuing with another prompt or removing the session removes the waiting box", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("true"), bash(FAR), FINE, bash("true"), bash(FAR), FINE]);
  sessionOf(await park(place, model));
  assert.equal((await boxesFor(place)).length, 1);
  const more = await harness(place, [
    "run",
    "--continue",
    "--intent",
    "direct",
    ...model.flags,
    "leave that",
  ]);
  assert.equal(more.code, 0, more.stderr);
  assert.deepEqual([await boxesFor(place), await parkingsOf(place)], [[], []]);
  const session = sessionOf(await park(place, model));
  assert.equal((await boxesFor(place)).length, 1);
  assert.equal((await harness(place, ["sessions", "rm", session])).code, 0);
  assert.deepEqual([await boxesFor(place), await parkingsOf(place)], [[], []]);
});

test("a thawed box that nobody takes up ends by itself", { skip }, async () => {
  await using place = await household();
  const spin = "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait";
  await using model = await startModel([
    { calls: [["bash", { command: spin, background: true }]] },
    bash(FAR),
    FINE,
  ]);
  // It spins on all it has, which need not be all that the other tests have.
  const session = sessionOf(await park(place, model, ["--cpus", "0.1"]));
  await (await containerOf(place)).unpause();
  await goneWithin(place, LEASE_MS + 10_000);
  assert.equal((await approve(place, session, ["--once"])).code, 0);
  assert.equal(path.basename(await fileOf(place)), "parked");
});

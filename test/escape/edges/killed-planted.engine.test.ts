import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import test from "node:test";
import { answerOf, type Ended, household, sandboxExec } from "../../e2e/box-command.ts";
import { approve, endOf, FAR, FINE, park, PARKED, sessionOf } from "../../e2e/parked.ts";
import { bash, finishedOf, type Said, startModel } from "../../e2e/run-command.ts";
import { skip } from "../../fixtures/engine.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import type { Scratch } from "../../fixtures/scratch.ts";
import { runLines } from "./scripted.ts";

const sh = (line: string): readonly string[] => ["--", "bash", "-c", line];

const PLANT =
  "echo x > .envrc; mkdir .GIT; mkdir -p sub/.git; echo '[core]' > sub/.git/config; touch done; sleep 60";
const PLANTED = [".GIT", ".envrc", "sub/.git"];

const recordsOf = (place: Scratch): Promise<readonly string[]> =>
  readdir(place.at(".local/state/harness/protected")).catch(() => []);

/** A workspace with things of the user's own, over which a box was killed after it had planted others. */
async function killedIn(line = PLANT): Promise<Scratch> {
  const place = await household({ ".vscode/tasks.json": "mine\n", "own/.git/config": "[core]\n" });
  const ended = await sandboxExec(place, sh(line), {
    whenMade: [place.at("work/done"), (kill) => kill("SIGKILL")],
  });
  assert.equal(ended.code, null);
  return place;
}

async function assertMovedOut(place: Scratch, ended: Pick<Ended, "stderr">): Promise<void> {
  for (const name of PLANTED) {
    assert.equal(existsSync(place.at("work", name)), false, name);
    assert.ok(
      ended.stderr.includes(`${place.at("work", name)} was not there when a run that was killed began`),
      ended.stderr,
    );
  }
  assert.match(ended.stderr, /if it is yours, take it back: mv /);
  assert.equal(await place.read("work/.vscode/tasks.json"), "mine\n");
  assert.equal(await place.read("work/own/.git/config"), "[core]\n");
  assert.deepEqual(await recordsOf(place), [], ended.stderr);
}

test("files planted by a killed exec are moved out by the next start, and reported", { skip }, async () => {
  await using place = await killedIn();
  for (const name of PLANTED) assert.ok(existsSync(place.at("work", name)), name);
  assert.equal((await recordsOf(place)).length, 1);
  // One that only reads moves nothing and forgets nothing, but it tells.
  const read = await sandboxExec(place, ["--mode", "read-only", ...sh("true")]);
  assert.equal(read.code, 0);
  assert.match(read.stderr, /sub\/\.git was not there when .* check it/);
  assert.ok(existsSync(place.at("work/sub/.git")));
  const next = await sandboxExec(place, ["--json", ...sh("echo more >> .vscode/tasks.json")]);
  await assertMovedOut(place, next);
  const moved = answerOf(next)["quarantined"] as readonly { readonly from: string }[];
  assert.deepEqual(
    moved.map(({ from }) => from).toSorted(),
    PLANTED.map((name) => place.at("work", name)),
  );
});

test(
  "files planted by a killed run are moved out by the next run, also in a sub-folder",
  { skip },
  async () => {
    await using place = await household({ ".vscode/tasks.json": "mine\n", "own/.git/config": "[core]\n" });
    await place.write("work/test.sh", PLANT);
    const killed = await runLines(place, ["bash test.sh"], [], {
      whenMade: [place.at("work/done"), (child) => child.kill("SIGKILL")],
    });
    assert.equal(killed.code, null, killed.stderr);
    const inside = await sandboxExec(place, sh("true"), { cwd: place.at("work/own") });
    assert.equal(inside.code, 0, inside.stderr);
    await assertMovedOut(place, inside);
    const next = await runLines(place, ["cat test.sh"], ["--json"]);
    assert.deepEqual([next.code, finishedOf(next).quarantined], [0, []], next.stderr);
  },
);

test("with a layer too, files planted by a killed box are moved out", { skip }, async () => {
  await using place = await killedIn();
  const next = await sandboxExec(place, ["--isolation", "copy", ...sh("true")]);
  assert.equal(next.code, 0, next.stderr);
  await assertMovedOut(place, next);
});

test("a clean end leaves no record, and files that the user creates afterwards stay", { skip }, async () => {
  await using place = await household({ ".vscode/tasks.json": "mine\n" });
  await sandboxExec(place, sh("echo x > .envrc"));
  await sandboxExec(place, sh("exit 3"));
  await runLines(place, ["true"]);
  assert.deepEqual(await recordsOf(place), []);
  await place.write("work/.envrc", "mine\n");
  await giveAway(place.at("work"));
  const ended = await sandboxExec(place, ["--json", ...sh("true")]);
  assert.deepEqual([answerOf(ended)["quarantined"], ended.stderr], [[], ""]);
  assert.equal(await place.read("work/.envrc"), "mine\n");
});

test(
  "a damaged record is reported, and writing boxes are refused until somebody has looked",
  { skip },
  async () => {
    await using place = await killedIn();
    const folder = place.at(".local/state/harness/protected");
    const [name = ""] = await recordsOf(place);
    for (const text of [
      "",
      "{",
      (await readFile(`${folder}/${name}`, "utf8")).replace('"form":1', '"form":2'),
    ]) {
      await writeFile(`${folder}/${name}`, text);
      const ended = await sandboxExec(place, sh("true"));
      assert.equal(ended.code, 125);
      assert.match(ended.stderr, /is damaged.*\.envrc/);
      assert.match(ended.stderr, /then: rm \//);
      const read = await sandboxExec(place, ["--mode", "read-only", ...sh("true")]);
      assert.equal(read.code, 0);
      assert.match(read.stderr, /is damaged/);
    }
  },
);

/** Waits in the box until the host says so, then plants. */
const LATER = `while [ ! -e go ]; do sleep 0.05; done; ${PLANT}`;

test(
  "files planted by a frozen box that was resumed and killed are moved out, and the user's are not",
  { skip },
  async () => {
    await using place = await household({ ".vscode/tasks.json": "mine\n", "own/.git/config": "[core]\n" });
    await place.write("work/later.sh", LATER);
    const begin: Said = { calls: [["bash", { command: "bash later.sh", background: true }]] };
    await using model = await startModel([begin, bash(FAR), bash("touch go; sleep 60"), FINE]);
    const ran = await park(place, model);
    assert.deepEqual(endOf(ran), PARKED, ran.stderr);
    // It plants nothing while it is frozen: what comes now is the user's.
    assert.deepEqual(await recordsOf(place), []);
    const killed = await approve(place, sessionOf(ran), ["--deny"], {
      whenMade: [place.at("work/done"), (child) => child.kill("SIGKILL")],
    });
    assert.equal(killed.code, null, killed.stderr);
    assert.equal((await recordsOf(place)).length, 1);
    await assertMovedOut(place, await sandboxExec(place, sh("true")));
  },
);

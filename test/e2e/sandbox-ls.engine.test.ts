import assert from "node:assert/strict";
import test from "node:test";
import { thisProcess } from "../../src/boxes/box-record.ts";
import { cleared, leftOf, realBox } from "../docker/box/real-boxes.ts";
import { deadOwner } from "../boxes/workspace/processes.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const UID = 64_341;

/** The program as a user who has no boxes but the test's: `rm --all` must not meet real ones. */
async function harness(place: Scratch, ...words: readonly string[]): Promise<Ended> {
  const preload = await place.write("as-user.mjs", `process.getuid = () => ${UID};`);
  const env = { NODE_OPTIONS: `--import=${preload}` };
  return runProgram("bin/harness", ["sandbox", ...words], { home: place.path, env });
}

test("without boxes people get a message and scripts get nothing", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID);
  const said = async (...words: readonly string[]): Promise<readonly unknown[]> => {
    const { code, stdout, stderr } = await harness(place, ...words);
    return [code, stdout, stderr];
  };
  assert.deepEqual(await said("ls"), [0, "", "no box is running\n"]);
  assert.deepEqual(await said("ls", "--json"), [0, "", ""]);
  assert.deepEqual(await said("rm", "--all"), [0, "", "no box was removed\n"]);
});

test("ls shows each box once, as a line for people and as an object for scripts", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID);
  const [own, dead] = [await thisProcess(), await deadOwner()];
  const living = await realBox({ uid: UID, owner: own, workspace: "/repo/a b" });
  const orphan = await realBox({ uid: UID, owner: dead, workspace: "/repo/x\u001B[2J" });
  const { code, stdout } = await harness(place, "ls", "--json");
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const shape = { mode: "workspace-write", isolation: "bind", state: "running", parked: null };
  assert.deepEqual(
    [code, rows.map(({ created: _created, ...rest }) => rest)],
    [
      0,
      [
        { ...shape, id: living.slice(0, 12), workspace: "/repo/a b", owner: { pid: own.pid, alive: true } },
        {
          ...shape,
          id: orphan.slice(0, 12),
          workspace: "/repo/x\u001B[2J",
          owner: { pid: dead.pid, alive: false },
        },
      ],
    ],
  );
  const table = (await harness(place, "ls")).stdout;
  assert.match(
    table,
    new RegExp(`^${living.slice(0, 12)} .* running +\\d+ s .* ${own.pid} +/repo/a b$`, "m"),
  );
  assert.match(
    table,
    new RegExp(`^${orphan.slice(0, 12)} .* ${dead.pid} \\(gone\\) +/repo/x\\\\u\\{1b\\}`, "m"),
  );
});

test(
  "rm accepts the beginning of an id, and removes nothing if one of the ids is wrong",
  { skip },
  async () => {
    await using place = await scratch();
    await using _ = cleared(UID);
    const own = await thisProcess();
    const one = await realBox({ uid: UID, owner: own });
    const two = await realBox({ uid: UID, owner: await deadOwner() });
    const rm = (...words: readonly string[]): Promise<Ended> => harness(place, "rm", ...words);
    const wrong = await rm(one, "zz");
    assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
    assert.match(wrong.stderr, /no box of yours has the id "zz"\n {2}next: harness sandbox ls/);
    for (const words of [[], ["--all", "--dead"], [one, "--all"]]) assert.equal((await rm(...words)).code, 2);
    assert.deepEqual(await leftOf(UID), [one, two].toSorted());
    const { code, stdout } = await rm(one.slice(0, 20), "--json");
    assert.deepEqual([code, JSON.parse(stdout)], [0, { id: one.slice(0, 12), workspace: "/repo" }]);
    assert.deepEqual(await leftOf(UID), [two]);
  },
);

test("rm --dead leaves living boxes, and rm --all leaves only other users' boxes", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID, UID + 1);
  const [own, dead] = [await thisProcess(), await deadOwner()];
  const living = await realBox({ uid: UID, owner: own });
  const orphan = await realBox({ uid: UID, owner: dead });
  const foreign = await realBox({ uid: UID + 1, owner: dead });
  assert.equal((await harness(place, "rm", "--dead")).stdout, `${orphan.slice(0, 12)}\n`);
  assert.deepEqual(await leftOf(UID), [living]);
  assert.equal((await harness(place, "rm", "--all")).stdout, `${living.slice(0, 12)}\n`);
  assert.deepEqual([await leftOf(UID), await leftOf(UID + 1)], [[], [foreign]]);
});

test("without an engine both end with 6", { skip }, async () => {
  await using place = await scratch();
  const env = { DOCKER_HOST: "unix:///nowhere/docker.sock" };
  for (const words of [["ls"], ["rm", "--all"]]) {
    const { code, stdout } = await runProgram("bin/harness", ["sandbox", ...words], {
      home: place.path,
      env,
    });
    assert.deepEqual([code, stdout], [6, ""]);
  }
});

import assert from "node:assert/strict";
import { cp, symlink } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { emptyHouse, repository, run } from "./plant.ts";

/** What each tool prints in a tree of one file; a test replaces one of them. */
const TOOLS: Readonly<Record<string, string>> = {
  tsc: "echo /x/src/a.ts; echo /x/node_modules/b/b.d.ts",
  oxlint: 'if [ "${1:-}" = --debug=files ]; then echo src/a.ts; fi',
  oxfmt: "echo 'Finished in 1ms on 1 files using 2 threads.'",
  knip: ":",
};

async function gateWith(tools: Readonly<Record<string, string>>): Promise<Scratch> {
  const place = await scratch({ "src/a.ts": "", "bench/.keep": "", "bin/.keep": "" });
  await place.write("test/check.sh", "");
  await cp(path.join(repository, "test/check.sh"), place.at("test/check.sh"));
  for (const [name, script] of Object.entries({ ...TOOLS, ...tools }))
    await place.write(`node_modules/.bin/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
  return place;
}

test("the gate is green when every tool checked a file and found nothing", async () => {
  await using place = await gateWith({});
  assert.deepEqual(await run("sh", ["test/check.sh"], place.path), {
    code: 0,
    stdout: "tsc     1 files\noxlint  1 files\noxfmt   1 files\nknip    1 files\n",
    stderr: "",
  });
});

for (const tool of ["tsc", "oxlint", "oxfmt"])
  test(`the gate is red when ${tool} checked no file`, async () => {
    await using place = await gateWith({ [tool]: ":" });
    const { code, stderr } = await run("sh", ["test/check.sh"], place.path);
    assert.deepEqual({ code, stderr }, { code: 1, stderr: `${tool} checked 0 files\n` });
  });

for (const tool of Object.keys(TOOLS))
  test(`the gate is red, and shows it, when ${tool} finds something`, async () => {
    await using place = await gateWith({ [tool]: "echo 'a.ts:1:1: wrong'; exit 1" });
    const { code, stdout, stderr } = await run("sh", ["test/check.sh"], place.path);
    assert.deepEqual([code !== 0, (stdout + stderr).includes("a.ts:1:1: wrong")], [true, true]);
  });

test("the list of files that tsc read is not shown with its findings", async () => {
  await using place = await gateWith({
    tsc: "echo 'src/a.ts(1,1): error TS1: wrong'; echo /x/src/a.ts; exit 2",
  });
  const { code, stdout, stderr } = await run("sh", ["test/check.sh"], place.path);
  assert.deepEqual([code, stdout, stderr], [1, "", "src/a.ts(1,1): error TS1: wrong\n"]);
});

test("the gate is red in a tree without files, with the real tools", async () => {
  await using place = await emptyHouse();
  await cp(path.join(repository, "test/check.sh"), place.at("test/check.sh"));
  await place.write("tsconfig.json", '{"include": ["src"]}');
  const { code, stdout } = await run("sh", ["test/check.sh"], place.path);
  assert.deepEqual([code !== 0, /oxfmt|knip/.test(stdout)], [true, false]);
});

/** A tree without tests, whose set-up is `start`. */
async function testless(start: string): Promise<Scratch> {
  const place = await scratch({ "test/check.sh": "" });
  for (const file of [
    "unit.sh",
    "all.sh",
    "run.ts",
    "house/suites.ts",
    "house/changed.ts",
    "house/tally.ts",
    "house/lanes.ts",
    "house/untracked-promises.ts",
  ].map((name) => `test/${name}`)) {
    await place.write(file, "");
    await cp(path.join(repository, file), place.at(file));
  }
  await place.write("start.sh", `#!/bin/sh\n${start}\n`, 0o755);
  await symlink(path.join(repository, "node_modules"), place.at("node_modules"));
  return place;
}

for (const script of ["unit", "all"])
  test(`test/${script}.sh fails, and says so, where it finds no test`, async () => {
    await using place = await testless(":");
    const { code, stdout } = await run("sh", [`test/${script}.sh`], place.path);
    assert.deepEqual([code, stdout.includes("\nno test was run\n")], [1, true]);
  });

test("test/all.sh gives the set-up no input", async () => {
  await using place = await testless('echo "heard: $(cat)"');
  const { stdout } = await run("sh", ["-c", "echo yes | sh test/all.sh"], place.path);
  assert.match(stdout, /^heard: $/m);
});

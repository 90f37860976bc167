// also slow: very large trees
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync } from "node:fs";
import { chmod, link, lstat, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { findAllPlanted } from "../../../src/boxes/workspace/quarantine.ts";
import { findProtected, findReached, NOTHING } from "../../../src/boxes/workspace/protection.ts";
import { walk } from "../../../src/boxes/workspace/protected-walk.ts";
import { deep } from "../../fixtures/deep.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { mkfifo } from "./repository.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

/** Deep trees are too much for some ways to remove them. */
const cleared = (root: string): unknown => execFileSync("rm", ["-rf", root]);

test("reaching a limit of entries or time is reported as unseen", async () => {
  await using home = await scratch({ "w/.envrc": "", "w/a/b/c/d/.envrc": "" });
  const few = await walk(home.at("w"), { bounds: { entries: 3, ms: 10_000 } });
  assert.match(few.unseen.join(), /more than 3 entries/);
  const short = await walk(home.at("w"), { bounds: { entries: 100, ms: 0 } });
  assert.ok(short.unseen.length > 0 || short.found.length === 2);
  const whole = await walk(home.at("w"));
  assert.deepEqual([whole.found.length, whole.unseen], [2, []]);
});

slowTest("a tree with very many files is searched completely, and the search can be cancelled", async () => {
  // In memory, where there is such a place: so many files take minutes on a slow disk.
  const root = mkdtempSync(path.join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "harness-test-"));
  try {
    mkdirSync(`${root}/z/y/x/.git`, { recursive: true });
    mkdirSync(`${root}/many`);
    for (let index = 0; index < 210_000; index += 1) closeSync(openSync(`${root}/many/${index}`, "w"));
    const { readOnly } = await findProtected(root);
    assert.deepEqual(readOnly, [`${root}/z/y/x/.git`]);
    const stop = new AbortController();
    const searching = findProtected(root, stop.signal);
    setTimeout(() => stop.abort(new Error("enough")), 5);
    await assert.rejects(searching, /enough/);
  } finally {
    cleared(root);
  }
});

slowTest(
  "a tree deeper than the longest path is searched, and a protected path that cannot be mounted there is refused",
  async () => {
    await using home = await scratch({ "w/a/x": "" });
    deep(home.at("w/a"), 700, "plain");
    assert.deepEqual((await findProtected(home.at("w"))).readOnly, []);
    deep(home.at("w/a"), 700, ".envrc");
    const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
    assert.equal(exit, 6);
    assert.match(message, /its path is too long/);
    const { planted, unseen } = await findAllPlanted(home.at("w"), NOTHING);
    assert.deepEqual([planted.length, unseen], [1, []]);
    assert.ok(planted[0]?.endsWith("/dddddddd/.envrc"));
    cleared(home.at("w"));
  },
);

test("folders deeper than the search limit are refused as unseen", async () => {
  await using home = await scratch({ "w/a/x": "" });
  deep(home.at("w/a"), 6000, ".envrc");
  const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
  assert.equal(exit, 6);
  assert.match(message, /path is too long/);
  cleared(home.at("w"));
});

const asUser = process.getuid?.() === 0 ? "lets root read what nobody may" : false;

test("an unreadable folder is refused at the start and searched at the end", { skip: asUser }, async () => {
  await using home = await scratch({ "w/locked/n/.git/HEAD": "x" });
  await chmod(home.at("w/locked"), 0);
  const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
  assert.deepEqual([exit, message.includes(home.at("w/locked"))], [6, true]);
  await findReached(home.at("w"));
  const { planted } = await findAllPlanted(home.at("w"), NOTHING);
  assert.deepEqual(planted, [home.at("w/locked/n/.git")]);
});

test("sockets and FIFOs are found everywhere, also in protected folders and dependencies", async () => {
  await using home = await scratch({ "w/.git/HEAD": "x", "w/node_modules/p/x": "", "w/bare/refs/x": "" });
  await home.write("w/bare/HEAD", "x");
  await mkdir(home.at("w/bare/objects"));
  const server = createServer().listen(home.at("w/.git/s.ipc"));
  for (const name of ["w/node_modules/p/f", "w/bare/objects/f", "w/f"]) mkfifo(home.at(name));
  const covered = [".git/s.ipc", "bare/objects/f", "f", "node_modules/p/f"].map((name) => home.at("w", name));
  const { covered: found, warnings } = await findProtected(home.at("w"));
  assert.deepEqual(found, covered);
  assert.match(warnings.join(), /^4 sockets and FIFOs are covered/);
  assert.deepEqual((await findReached(home.at("w"))).covered, covered);
  await new Promise((resolve) => server.close(resolve));
});

test("more sockets than can be covered are refused", async () => {
  await using home = await scratch({ "w/x": "" });
  spawnSync("sh", ["-c", 'cd "$0" && seq 1 101 | xargs mkfifo', home.at("w")]);
  for (const find of [findProtected, findReached]) {
    const [exit, message] = await refusalOf(() => find(home.at("w")));
    assert.deepEqual([exit, /101 sockets and FIFOs/.test(message)], [6, true]);
  }
});

test("files with a hard link outside or in a protected folder are read-only, those linked within stay writable", async () => {
  await using home = await scratch({
    "w/a/one": "1",
    "store/two": "2",
    "w/.vscode/three": "3",
    "w/plain": "",
  });
  await link(home.at("w/a/one"), home.at("w/within"));
  await link(home.at("store/two"), home.at("w/a/two"));
  await link(home.at("store/two"), home.at("w/also two"));
  await link(home.at("w/.vscode/three"), home.at("w/three"));
  await symlink("a/two", home.at("w/symbolic"));
  const { readOnly, warnings } = await findProtected(home.at("w"));
  assert.deepEqual(
    readOnly.map((file) => path.relative(home.at("w"), file)),
    [".vscode", "also two", "three", "a/two"],
  );
  assert.match(warnings.join(), /3 files are read-only.*hard links.*--isolation overlay/);
});

test("very many linked files make the folder that holds them read-only", async () => {
  await using home = await scratch({ "w/src/a.ts": "", "store/x": "" });
  await mkdir(home.at("w/node_modules/.pnpm/p"), { recursive: true });
  for (let index = 0; index < 300; index += 1) {
    await writeFile(home.at(`store/${index}`), "");
    await link(home.at(`store/${index}`), home.at(`w/node_modules/.pnpm/p/${index}`));
  }
  const { readOnly, warnings } = await findProtected(home.at("w"));
  assert.deepEqual(readOnly, [home.at("w/node_modules/.pnpm/p")]);
  assert.match(warnings.join("\n"), /read-only as a whole[^]*300 files are read-only/);
  assert.equal((await lstat(home.at("w/src/a.ts"))).nlink, 1);
});

test("thousands of protected top folders are refused at once, with a remedy", async () => {
  await using home = await scratch({ "w/x": "" });
  const script = 'cd "$0" && seq 1 2000 | xargs -n 500 mkdir && for d in [0-9]*; do : > $d/.envrc; done';
  execFileSync("sh", ["-c", script, home.at("w")]);
  const { user, system } = process.cpuUsage();
  const [exit, message] = await refusalOf(() => findProtected(home.at("w")));
  const spent = process.cpuUsage({ user, system });
  assert.deepEqual([exit, /more than 200 protected paths/.test(message)], [6, true]);
  // It took minutes once.
  assert.ok((spent.user + spent.system) / 1e6 < 20);
});

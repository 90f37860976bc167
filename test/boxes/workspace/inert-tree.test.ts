import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, link, lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import {
  findAllPlanted,
  quarantine,
  type Quarantined,
  stillInert,
} from "../../../src/boxes/workspace/quarantine.ts";
import { NOTHING } from "../../../src/boxes/workspace/protection.ts";
import { ELSEWHERE, noElsewhere } from "../../fixtures/elsewhere.ts";
import { deep } from "../../fixtures/deep.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";

// own process: it starts many programs, and each start costs by the memory of the process

/** Every entry with its kind, rights, content and target, as far as one path is not too long for it. */
function picture(root: string): string {
  const script =
    'cd "$1" && find . -mindepth 1 -printf "%P %y %m %l\\n" | LC_ALL=C sort; find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort';
  return execFileSync("sh", ["-c", script, "sh", root], { encoding: "utf8", maxBuffer: 2 ** 26 });
}

/** Somebody works in every folder of it, as git, the shell and an editor would. */
function entered(folder: string): void {
  const work = ["git", "-c", "safe.directory=*", "-C", "{}", "status"];
  const env = { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  spawnSync("find", [folder, "-type", "d", "-exec", ...work, ";"], { env, stdio: "ignore" });
}

const found = (folder: string, ...words: readonly string[]): string =>
  execFileSync("find", [folder, ...words], { encoding: "utf8", maxBuffer: 2 ** 26 });

async function farFolder(): Promise<string> {
  return mkdtemp(`${ELSEWHERE}/harness-test-`);
}

const places = [
  ["in the same file system", (near: string): Promise<string> => Promise.resolve(near), false],
  ["in another file system", farFolder, noElsewhere],
] as const;

for (const [where, place, cannot] of places) {
  test(
    `a repository in quarantine ${where} runs nothing, and is restored as it was`,
    {
      skip: noGit || cannot,
    },
    async () => {
      await using home = await scratch({ "w/tool.sh": "#!/bin/sh\n", "w/x": "" });
      const mark = home.at("made");
      repository(home.at("w/n"));
      repository(home.at("w/n/.git/modules/sub"));
      for (const folder of ["w/n", "w/n/.git/modules/sub"]) {
        git(home.at(folder), "config", "core.fsmonitor", `touch ${mark}; false`);
        git(home.at(folder), "config", "core.bare", "false");
      }
      git(home.at("w/n"), "config", "core.worktree", home.at("w/n"));
      await writeFile(home.at("w/n/.git/hooks/pre-commit"), "#!/bin/sh\n", { mode: 0o755 });
      await home.write("w/n/.git/a b'c/.envrc", "touch x");
      await home.write("w/n/.git/x.code-workspace", "{}");
      await writeFile(home.at("w/n/.git", `.${"y".repeat(254)}`), "long");
      await symlink("../HEAD", home.at("w/n/.git/info/config"));
      await chmod(home.at("w/tool.sh"), 0o755);
      await link(home.at("w/tool.sh"), home.at("w/n/.git/linked.sh"));
      await mkdir(home.at("w/n/.git/locked"));
      await chmod(home.at("w/n/.git/locked"), 0o111);
      await chmod(home.at("w/n/.git"), 0o750);
      entered(home.at("w/n/.git"));
      assert.ok(existsSync(mark), "nothing to prove");
      await rm(mark);
      const before = picture(home.at("w/n"));
      const into = await place(home.at("state"));
      try {
        const [moved] = await quarantine(home.at("w"), [home.at("w/n/.git")], into);
        assert.ok(moved?.to);
        entered(into);
        assert.equal(existsSync(mark), false, "git obeyed what is in quarantine");
        assert.equal(found(into, "-type", "f", "-perm", "/111"), "");
        assert.equal(
          found(into, "-iname", "head", "-o", "-name", ".*", "-o", "-name", "*.code-workspace"),
          "",
        );
        assert.equal((await lstat(home.at("w/tool.sh"))).mode & 0o777, 0o755);
        execFileSync("sh", ["-c", moved.takeBack], { cwd: "/" });
        assert.ok(picture(home.at("w/n")) === before, "not as it was");
        assert.match(git(home.at("w/n"), "-c", "core.fsmonitor=false", "log", "--oneline"), /first/);
      } finally {
        if (into !== home.at("state")) await rm(into, { recursive: true, force: true });
      }
    },
  );

  test(`a thousand nested folders are moved to quarantine ${where} and back`, { skip: cannot }, async () => {
    await using home = await scratch({ "w/a/.git/x": "" });
    deep(home.at("w/a/.git"), 1000, ".envrc");
    const into = await place(home.at("state"));
    try {
      const { planted } = await findAllPlanted(home.at("w"), NOTHING);
      const [moved] = await quarantine(home.at("w"), planted, into);
      assert.ok(moved?.to);
      assert.deepEqual((await findAllPlanted(home.at("w"), NOTHING)).planted, []);
      assert.equal(found(into, "-name", ".envrc"), "");
      execFileSync("sh", ["-c", moved.takeBack], { cwd: "/" });
      const depth = found(home.at("w/a/.git"), "-name", ".envrc", "-printf", "%d");
      assert.equal(depth, "1001");
    } finally {
      if (into !== home.at("state")) await rm(into, { recursive: true, force: true });
      execFileSync("rm", ["-rf", home.at("w")]);
    }
  });
}

/** Bytes that the files there take on the disk; a file with several names counts once. */
const spaceOf = (folder: string): number =>
  Number.parseInt(execFileSync("du", ["-sk", folder], { encoding: "utf8" }), 10) * 1024;

for (const [where, place, cannot] of places)
  test(`names of one file do not multiply its content ${where}`, { skip: cannot }, async () => {
    await using home = await scratch({ "w/a/.git/x": "", "w/b/.git/x": "", "w/tool": "x".repeat(2 ** 20) });
    await chmod(home.at("w/tool"), 0o755);
    const names = ["one", "two", "three", "four", "five"];
    const linked = [
      ...names.flatMap((name) => [`a/.git/${name}`, `a/.git/.${name}`, `b/.git/${name}`]),
      ...names.map((name) => `${name}.code-workspace`),
    ];
    for (const name of linked) await link(home.at("w/tool"), home.at(`w/${name}`));
    const into = await place(home.at("state"));
    try {
      const { planted } = await findAllPlanted(home.at("w"), NOTHING);
      const moved = await quarantine(home.at("w"), planted, into);
      assert.equal(moved.length, 2 + names.length);
      assert.ok(spaceOf(into) < 4 * 2 ** 20, `${spaceOf(into)} bytes`);
      assert.equal(found(into, "-type", "f", "-perm", "/111"), "");
      assert.equal(found(into, "-name", "copy-*"), "");
      assert.equal((await lstat(home.at("w/tool"))).mode & 0o777, 0o755);
      await stillInert(moved);
      for (const { takeBack } of moved) execFileSync("sh", ["-c", takeBack], { cwd: "/" });
      for (const name of linked) {
        assert.equal((await lstat(home.at(`w/${name}`))).mode & 0o777, 0o755, name);
        assert.equal((await readFile(home.at(`w/${name}`))).length, 2 ** 20, name);
      }
    } finally {
      if (into !== home.at("state")) await rm(into, { recursive: true, force: true });
    }
  });

test("a planted file below a path that is too long is moved and restored", async () => {
  await using home = await scratch({ "w/a/x": "" });
  deep(home.at("w/a"), 700, ".envrc");
  const { planted } = await findAllPlanted(home.at("w"), NOTHING);
  const [moved] = await quarantine(home.at("w"), planted, home.at("state"));
  assert.ok(moved?.to);
  assert.equal(await readFile(moved.to, "utf8"), "x");
  assert.deepEqual((await findAllPlanted(home.at("w"), NOTHING)).planted, []);
  execFileSync("sh", ["-c", moved.takeBack], { cwd: "/" });
  assert.equal((await findAllPlanted(home.at("w"), NOTHING)).planted.length, 1);
  execFileSync("rm", ["-rf", home.at("w")]);
});

test("restoring never replaces what exists already", async () => {
  await using home = await scratch({ "w/.git/HEAD": "planted", "w/.envrc": "planted" });
  await chmod(home.at("w/.envrc"), 0o755);
  const moved = await quarantine(home.at("w"), [home.at("w/.git"), home.at("w/.envrc")], home.at("state"));
  await home.write("w/.git/HEAD", "the user's");
  await home.write("w/.envrc", "the user's");
  for (const { takeBack } of moved) assert.notEqual(spawnSync("sh", ["-c", takeBack]).status, 0);
  assert.equal(await home.read("w/.git/HEAD"), "the user's");
  assert.equal(await home.read("w/.envrc"), "the user's");
});

test("files written into a folder while it was moved are made inert afterwards", async () => {
  await using home = await scratch({ "w/.git/x": "" });
  const moved = await quarantine(home.at("w"), [home.at("w/.git")], home.at("state"));
  const to = moved[0]?.to ?? "";
  await writeFile(path.join(to, "HEAD"), "ref: refs/heads/main\n", { mode: 0o755 });
  await stillInert(moved);
  assert.equal(found(to, "-name", "HEAD"), "");
  assert.equal(found(to, "-type", "f", "-perm", "/111"), "");
});

test("an item that cannot be moved is named with exit 6, and the others are still moved", async () => {
  await using home = await scratch({ "w/a/.envrc": "1", "w/b/.envrc": "2", "state/file": "" });
  const planted: readonly string[] = [home.at("w/gone/.envrc"), home.at("w/b/.envrc")];
  const [exit, message] = await refusalOf(() => quarantine(home.at("w"), planted, home.at("state")));
  assert.deepEqual([exit, message.includes(home.at("w/gone/.envrc"))], [6, true]);
  await assert.rejects(lstat(home.at("w/b/.envrc")));
  const refused = await refusalOf((): Promise<readonly Quarantined[]> =>
    quarantine(home.at("w"), [home.at("w/a/.envrc")], home.at("state/file")),
  );
  assert.deepEqual([refused[0], refused[1].includes(home.at("w/a/.envrc"))], [6, true]);
});

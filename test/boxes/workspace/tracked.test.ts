import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import test from "node:test";
import { readGitIndex, trackedIn } from "../../../src/boxes/workspace/git-repository.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { noGit } from "./repository.ts";

const skip = noGit;

/** Runs a shell line in the folder `w` with a git of no settings but these. */
function shell(place: Scratch, line: string): string {
  const env = {
    PATH: process.env["PATH"],
    HOME: place.path,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  return execFileSync("bash", ["-ec", line], { cwd: place.path, env, stdio: "pipe" }).toString();
}

const FILES = `mkdir -p w/sub/deep "w/$(printf 'b\\377d')"; cd w; echo a >a; echo b >sub/b; echo c >sub/deep/c
  echo d >"$(printf 'b\\377d')/d"; echo e >sub.e; echo o >other; echo l >$(printf 'l%.0s' {1..200})`;

const KNOWN = ["a", "b\uDCFFd/d", "l".repeat(200), "sub.e", "sub/b", "sub/deep/c"];

const INDEXES: Readonly<Record<string, string>> = {
  "version 2": "git init -q; git add .; git rm -q --cached other",
  "version 3":
    "git init -q; git add .; git rm -q --cached other; git add -N other; git rm -q --cached other; git update-index --skip-worktree a",
  "version 4": "git init -q; git config index.version 4; git add .; git rm -q --cached other",
  "a cached tree": "git init -q; git add .; git rm -q --cached other; git commit -qm x",
  "an untracked cache":
    "git init -q; git update-index --untracked-cache; git add .; git rm -q --cached other; git status -s",
  "names of SHA-256": "git init -q --object-format=sha256; git add .; git rm -q --cached other",
  "version 4 of SHA-256":
    "git init -q --object-format=sha256; git config index.version 4; git add .; git rm -q --cached other",
  "two halves":
    "git init -q; git add a sub sub.e; git update-index --split-index; git add .; git rm -q --cached other; rm a; git add a; echo a >a; git add a",
};

for (const [what, line] of Object.entries(INDEXES))
  test(`tracked files are found in an index of ${what}`, { skip }, async () => {
    await using place = await scratch();
    shell(place, `${FILES}\n${line}`);
    const tracked = await trackedIn(place.at("w"));
    const paths = new Set([...KNOWN, "sub/new", "not/there"]);
    await tracked.drop(paths);
    assert.deepEqual([...paths], ["sub/new", "not/there"]);
  });

test("paths inside a sparse index entry are tracked as a whole", { skip }, async () => {
  await using place = await scratch();
  shell(
    place,
    `${FILES}; git init -q; git add .; git commit -qm x; git sparse-checkout set --cone --sparse-index sub/deep`,
  );
  shell(
    place,
    "cd w; mkdir -p elsewhere/in; echo >elsewhere/in/f; git add --sparse elsewhere; git commit -qm y; git sparse-checkout reapply",
  );
  const paths = new Set(["elsewhere/in/f", "elsewhere/in/new", "new"]);
  await (await trackedIn(place.at("w"))).drop(paths);
  assert.ok(!paths.has("elsewhere/in/f") && paths.has("new"));
});

test("tracked paths are those of the time of the look", { skip }, async () => {
  await using place = await scratch();
  shell(place, `${FILES}; git init -q; git add a`);
  const tracked = await trackedIn(place.at("w"));
  shell(place, "cd w; git rm -q --cached a; git add sub/b");
  const paths = new Set(["a", "sub/b"]);
  await tracked.drop(paths);
  assert.deepEqual([...paths], ["sub/b"]);
});

test(
  "a workspace below the top of its repository and nested repositories are recognised",
  { skip },
  async () => {
    await using place = await scratch();
    shell(
      place,
      `${FILES}; git init -q; git add .; mkdir -p sub/vendor/lib; cd sub/vendor/lib; git init -q; echo x >x; echo y >y; git add x
     cd ../..; git init -q --separate-git-dir=../../elsewhere apart; echo z >apart/z; cd apart; git add z`,
    );
    const tracked = await trackedIn(place.at("w/sub"));
    const paths = new Set(["b", "deep/c", "a", "vendor/lib/x", "vendor/lib/y", "apart/z", "apart/n"]);
    await tracked.drop(paths);
    assert.deepEqual([...paths], ["a", "vendor/lib/y", "apart/n"]);
  },
);

test(
  "without a repository nothing is tracked, and with an unreadable index everything counts as tracked",
  { skip },
  async () => {
    await using place = await scratch({ "w/f": "" });
    const paths = new Set(["f", "g"]);
    await (await trackedIn(place.at("w"))).drop(paths);
    assert.equal(paths.size, 2);
    shell(place, "cd w; git init -q");
    await (await trackedIn(place.at("w"))).drop(paths);
    assert.equal(paths.size, 2);
    for (const spoil of [
      "echo DIRC >.git/index",
      "rm .git/index; mkfifo .git/index",
      "rm .git/index; ln -s /dev/null .git/index",
    ]) {
      shell(place, `cd w; ${spoil}`);
      const all = new Set(["f", "g"]);
      await (await trackedIn(place.at("w"))).drop(all);
      assert.equal(all.size, 0, spoil);
    }
  },
);

/** How many paths it gives; -1 when it is refused. */
function read(bytes: Buffer): number {
  try {
    return [...readGitIndex(bytes).paths()].length;
  } catch {
    return -1;
  }
}

test("a truncated or changed index throws or still yields paths, and never hangs", { skip }, async () => {
  await using place = await scratch();
  for (const version of [2, 4]) {
    shell(place, `rm -rf w; ${FILES}; git init -q; git config index.version ${version}; git add .`);
    const whole = await readFile(place.at("w/.git/index"));
    assert.equal(read(whole), 7);
    for (let at = 0; at < whole.length; at += 1) {
      assert.equal(read(whole.subarray(0, at)), -1);
      const bent = Buffer.from(whole);
      bent[at] = (bent[at] ?? 0) ^ 0xff;
      assert.ok(read(bent) < 2 ** 16);
    }
    await writeFile(place.at("w/.git/index"), whole.subarray(0, -1));
  }
});

/** An index of version 4 whose every name is the one before and one more letter. */
function growing(count: number): Buffer {
  const head = Buffer.from("DIRC\0\0\0\x04\0\0\0\0", "latin1");
  head.writeUInt32BE(count, 8);
  const entries = Array.from({ length: count }, (_, at) => {
    const entry = Buffer.alloc(40 + 20 + 2 + 1 + 2);
    entry.writeUInt16BE(Math.min(at + 1, 0xfff), 60);
    entry.write("a", 63, "latin1");
    return entry;
  });
  return Buffer.concat([head, ...entries, Buffer.alloc(20)]);
}

test("prefix-compressed names are read up to the longest possible file name", () => {
  const { paths } = readGitIndex(growing(5000));
  assert.equal([...paths()].at(-1), "a".repeat(5000));
  assert.throws(() => readGitIndex(growing(20_000)), /not a git index/);
});

test("paths inside folders that are tracked as a whole are dropped, however many, and similar names are not", async () => {
  await using place = await scratch({ "w/x": "" });
  const head = Buffer.from("DIRC\0\0\0\x02\0\0\0\0", "latin1");
  const many = 100_000;
  head.writeUInt32BE(many, 8);
  const entries = Array.from({ length: many }, (_, at) => {
    const name = `d${at}/`;
    const entry = Buffer.alloc(62 + 8 * (Math.floor((62 + name.length) / 8) + 1) - 62);
    entry.writeUInt16BE(name.length, 60);
    entry.write(name, 62, "latin1");
    return entry;
  });
  await place.write("w/.git/index", "");
  await writeFile(place.at("w/.git/index"), Buffer.concat([head, ...entries, Buffer.alloc(20)]));
  const paths = new Set(Array.from({ length: 50_000 }, (_, at) => `d${at * 2}/deep/f${at}`));
  paths.add("d7").add("d8x/f").add(`d${many}/f`);
  await (await trackedIn(place.at("w"))).drop(paths);
  assert.deepEqual([...paths], ["d7", "d8x/f", `d${many}/f`]);
});

test("with many unreadable repositories everything in them counts as tracked", async () => {
  await using place = await scratch(
    Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`w/n${at}/.git/index`, "no index"])),
  );
  const paths = new Set(Array.from({ length: 500 }, (_, at) => `n${at % 60}/f${at}`));
  await (await trackedIn(place.at("w"))).drop(paths);
  const left = new Set(Array.from(paths, (each) => each.split("/")[0]));
  assert.deepEqual(left, new Set(Array.from({ length: 10 }, (_, at) => `n${at + 50}`)));
});

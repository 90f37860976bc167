import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import test from "node:test";
import { stdout } from "../../../src/render/tty/output.ts";
import { fileDiffs, gitPatchOf, pipedPatch, pipedText } from "../../../src/render/change-lines.ts";
import { filesOf, type SessionDiff, sessionDiff } from "../../../src/sessions/checkpoints/checkpoint-diff.ts";
import { type KeptRun, keptRun } from "../../fixtures/kept-run.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";

async function diffOf(kept: KeptRun, from = 0): Promise<SessionDiff> {
  using store = kept.open();
  return await sessionDiff(store, { session: "s", steps: kept.steps, from });
}

const printed = ({ files }: SessionDiff): string => fileDiffs(files, stdout);

test("a diff is a patch that git accepts", async () => {
  await using kept = await keptRun({
    "a.txt": Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join(""),
    "no-end": "x\ny",
    "old name": "moved\n",
    'q"uote\\': "q\n",
    "gone.txt": "g\n",
    "tool.sh": "#!/bin/sh\n",
  });
  symlinkSync("a.txt", kept.place.at("work/link"));
  cpSync(kept.root, kept.place.at("copy"), { recursive: true, verbatimSymlinks: true });
  const at = (name: string): string => kept.place.at("work", name);
  await kept.run(() => {
    writeFileSync(
      at("a.txt"),
      Array.from({ length: 41 }, (_, n) => `line ${n === 3 || n === 30 ? "x" : n}\n`).join(""),
    );
    writeFileSync(at("no-end"), "x\nz");
    mkdirSync(at("sub"));
    renameSync(at("old name"), at("sub/new"));
    writeFileSync(at('q"uote\\'), "Q\n");
    rmSync(at("gone.txt"));
    chmodSync(at("tool.sh"), 0o755);
    rmSync(at("link"));
    symlinkSync("no-end", at("link"));
    writeFileSync(at("empty"), "");
    writeFileSync(at("neu.txt"), "neu\n");
  });
  const patch = printed(await diffOf(kept));
  // A folder by itself is nothing that git knows.
  const known = patch.replace(/^diff --git a\/sub b\/sub\n.*\n.*\n/m, "");
  execFileSync("git", ["apply", "-"], { cwd: kept.place.at("copy"), input: known });
  assert.deepEqual(pictureOf(kept.place.at("copy")), pictureOf(kept.root));
});

test("control characters in names and texts are shown, never sent", async () => {
  await using kept = await keptRun();
  await kept.run(() => writeFileSync(kept.place.at("work/\u001b[31mred\n"), "\u001b]0;title\u0007\u202e\n"));
  const text = printed(await diffOf(kept));
  assert.doesNotMatch(text, /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
  assert.match(text, /^\+\u241b\]0;title\u2407<U\+202E>$/m);
  assert.match(text, /"b\/\\033\[31mred\\n"/);
});

test("binaries, changed kinds and special files are named", async () => {
  await using kept = await keptRun({ "b.bin": "\0a", "f.txt": "text\n" });
  await kept.run(() => {
    writeFileSync(kept.place.at("work/b.bin"), "\0b");
    rmSync(kept.place.at("work/f.txt"));
    mkdirSync(kept.place.at("work/f.txt"));
    execFileSync("mkfifo", [kept.place.at("work/pipe")]);
  });
  const text = printed(await diffOf(kept));
  assert.match(text, /^Binary files a\/b.bin and b\/b.bin differ$/m);
  assert.match(text, /^# a file before, a folder now$/m);
  assert.match(text, /^# a fifo$/m);
});

test("a patch for git contains every text unchanged, and names what it cannot contain", async () => {
  await using kept = await keptRun({ "b.bin": "\0a", "f.txt": "text\n", "bell.txt": "a\r\n\u0007b\n" });
  cpSync(kept.root, kept.place.at("copy"), { recursive: true });
  await kept.run(() => {
    writeFileSync(kept.place.at("work/b.bin"), "\0b");
    writeFileSync(kept.place.at("work/bell.txt"), "a\r\n\u0007\u001b[31m\u202eb\n");
    mkdirSync(kept.place.at("work/sub"));
    writeFileSync(kept.place.at("work/sub/new"), "new");
    execFileSync("mkfifo", [kept.place.at("work/pipe")]);
  });
  const { text, left } = gitPatchOf((await diffOf(kept)).files);
  assert.deepEqual(left, ["b.bin", "pipe"]);
  assert.match(text, /^# not in this patch: b\.bin\n# not in this patch: pipe\ndiff --git /);
  execFileSync("git", ["apply", "-"], { cwd: kept.place.at("copy"), input: text });
  rmSync(kept.place.at("work/pipe"));
  writeFileSync(kept.place.at("work/b.bin"), "\0a");
  assert.deepEqual(pictureOf(kept.place.at("copy")), pictureOf(kept.root));
});

test("a pipe gets a patch that git accepts and that is free of control sequences; what it cannot contain is named", async () => {
  await using kept = await keptRun({
    "crlf.txt": "one\r\ntwo\r\nthree",
    "mark.txt": "\uFEFFone\r\ntwo\r\n",
    "b.bin": "\0a",
    "bell.txt": "a\n",
    "was-file": "f\n",
  });
  cpSync(kept.root, kept.place.at("copy"), { recursive: true });
  const at = (name: string): string => kept.place.at("work", name);
  await kept.run(() => {
    writeFileSync(at("crlf.txt"), "one\r\nTWO\r\nthree");
    writeFileSync(at("mark.txt"), "\uFEFF1\r\ntwo\r\n");
    writeFileSync(at("b.bin"), "\0b");
    writeFileSync(at("bell.txt"), "a\u0007\u001b[31m\n");
    writeFileSync(at("latin.txt"), Buffer.from([0x63, 0xe9, 0x9b, 0x0a]));
    mkdirSync(at("sub/below"), { recursive: true });
    writeFileSync(at("sub/below/new.txt"), "a\r\nb\n");
    rmSync(at("was-file"));
    symlinkSync("crlf.txt", at("was-file"));
    execFileSync("mkfifo", [at("pipe")]);
  });
  const { text, left } = pipedPatch((await diffOf(kept)).files);
  assert.deepEqual(left.toSorted(), ["b.bin", "bell.txt", "latin.txt", "pipe", "was-file"]);
  assert.doesNotMatch(text, /[\u0000-\u0009\u000B\u000C\u000E-\u001F\u007F-\u009F]|\r(?!\n)/);
  assert.match(text, /^# \+a\u2407\u241b\[31m$/m);
  assert.match(text, /^# Binary files a\/b.bin and b\/b.bin differ$/m);
  assert.equal(pipedText(text), text);
  execFileSync("git", ["apply", "-"], { cwd: kept.place.at("copy"), input: text });
  for (const name of left) rmSync(at(name));
  for (const name of left) rmSync(kept.place.at("copy", name), { force: true });
  assert.deepEqual(pictureOf(kept.place.at("copy")), pictureOf(kept.root));
});

test("a patch of another origin keeps its line ends in a pipe, and its control characters are made harmless", () => {
  const patch = "@@ -1 +1 @@\n-a\r\n+\u001b[31mb\rc\r\n";
  assert.equal(pipedText(patch), "@@ -1 +1 @@\n-a\r\n+\u241b[31mb\u240dc\r\n");
});

test("a diff from a step contains only later changes, without those that were undone", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  await kept.run(
    () => writeFileSync(kept.place.at("work/one"), "1"),
    () => writeFileSync(kept.place.at("work/two"), "2"),
  );
  const paths = async (from: number): Promise<readonly string[]> =>
    (await diffOf(kept, from)).files.map(({ path }) => path);
  assert.deepEqual([await paths(0), await paths(1), await paths(2)], [["one", "two"], ["two"], []]);
  await kept.undo({ target: 1 });
  assert.deepEqual(await paths(0), ["one"]);
  await kept.undo();
  assert.deepEqual(await paths(0), []);
});

test("a file with very many lines has a diff", async () => {
  await using kept = await keptRun({});
  await kept.run(() => writeFileSync(kept.place.at("work/lines.txt"), "a\n".repeat(300_000)));
  const { files } = await diffOf(kept);
  assert.equal(files[0]?.lines?.hunks[0]?.lines.length, 300_000);
});

const added = (path: string, size: number, pieces: readonly string[]) =>
  ({ path, from: undefined, to: { kind: "file", mode: 0o644, size, pieces } }) as const;

test("equal texts are read once, and a diff that would be too long says what it leaves out", async () => {
  await using kept = await keptRun({});
  using store = kept.open();
  const pieces = [store.packs.put(Buffer.from("a line of text\n".repeat(200_000)))];
  const small = [store.packs.put(Buffer.from("small\n"))];
  store.packs.flush();
  let reads = 0;
  const get = store.packs.get.bind(store.packs);
  store.packs.get = (id) => {
    reads += 1;
    return get(id);
  };
  const changes = Array.from({ length: 100 }, (_, at) => added(`copy-${at}`, 3_000_000, pieces));
  const files = filesOf([...changes, added("z.txt", 6, small)], store.packs);
  assert.equal(reads, 2);
  const cut = files.filter((file) => file.cut === true);
  assert.ok(cut.length > 50 && cut.length < 100, String(cut.length));
  assert.ok(cut.every(({ lines }) => lines === null));
  assert.equal(files.find(({ path }) => path === "z.txt")?.lines?.added, 1);
  const { text, left } = pipedPatch(cut.slice(0, 1));
  assert.match(text, /^# not shown: the whole diff would be too long$/m);
  assert.deepEqual(left, [cut[0]?.path]);
});

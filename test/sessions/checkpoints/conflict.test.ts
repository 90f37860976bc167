import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import test from "node:test";
import { keptRun } from "../../fixtures/kept-run.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";

const LINES = "one\ntwo\nthree\nfour\nfive\nsix\n";

test("the user's change to another file stays", async () => {
  await using kept = await keptRun({ "a.txt": LINES, "b.txt": "mine\n" });
  await kept.run(() => kept.place.write("work/a.txt", "theirs\n").then(() => undefined));
  writeFileSync(kept.place.at("work/b.txt"), "mine again\n");
  const { done, refused } = await kept.undo();
  assert.deepEqual([done, refused], [true, []]);
  assert.equal(await kept.place.read("work/a.txt"), LINES);
  assert.equal(await kept.place.read("work/b.txt"), "mine again\n");
});

test("the user's lines in the same file stay, and the run's are undone", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  const file = kept.place.at("work/a.txt");
  await kept.run(() => writeFileSync(file, LINES.replace("two", "2")));
  appendFileSync(file, "seven\n");
  const { merged } = await kept.undo();
  assert.deepEqual(merged, ["a.txt"]);
  assert.equal(readFileSync(file, "utf8"), `${LINES}seven\n`);
});

test("an undo that left something out can be redone, alone or with the undo of the rest", async () => {
  await using kept = await keptRun({ "a.txt": LINES, "b.txt": "b\n" });
  const [a, b] = [kept.place.at("work/a.txt"), kept.place.at("work/b.txt")];
  const theirs = LINES.replace("two", "2");
  await kept.run(() => {
    writeFileSync(a, theirs);
    writeFileSync(b, "changed\n");
  });
  writeFileSync(a, LINES.replace("two", "zwei"));
  assert.equal((await kept.undo({ skip: true })).refused.length, 1);
  assert.equal(readFileSync(b, "utf8"), "b\n");
  assert.deepEqual((await kept.undo({ redo: true })).refused, []);
  assert.equal(readFileSync(b, "utf8"), "changed\n");

  await kept.undo({ skip: true });
  writeFileSync(a, theirs);
  assert.deepEqual((await kept.undo()).refused, []);
  assert.equal(readFileSync(a, "utf8"), LINES);
  assert.deepEqual((await kept.undo({ redo: true })).refused, []);
  assert.deepEqual([readFileSync(a, "utf8"), readFileSync(b, "utf8")], [theirs, "changed\n"]);
});

test("a redo that left something out can be undone, and repeated", async () => {
  await using kept = await keptRun({ "a.txt": LINES, "b.txt": "b\n" });
  const [a, b] = [kept.place.at("work/a.txt"), kept.place.at("work/b.txt")];
  const theirs = LINES.replace("two", "2");
  await kept.run(() => {
    writeFileSync(a, theirs);
    writeFileSync(b, "changed\n");
  });
  await kept.undo();
  writeFileSync(a, LINES.replace("two", "zwei"));
  assert.equal((await kept.undo({ redo: true, skip: true })).refused.length, 1);
  assert.equal(readFileSync(b, "utf8"), "changed\n");
  await kept.undo({ skip: true });
  assert.equal(readFileSync(b, "utf8"), "b\n");
  writeFileSync(a, LINES);
  await kept.undo({ redo: true });
  assert.equal(readFileSync(b, "utf8"), "changed\n");
});

test("where both changed the same lines nothing is undone, and the file is named", async () => {
  await using kept = await keptRun({ "a.txt": LINES, "b.txt": "b\n" });
  const file = kept.place.at("work/a.txt");
  await kept.run(() => {
    writeFileSync(file, LINES.replace("two", "2"));
    rmSync(kept.place.at("work/b.txt"));
  });
  writeFileSync(file, LINES.replace("two", "zwei"));
  const before = pictureOf(kept.root);
  const { done, refused } = await kept.undo();
  assert.equal(done, false);
  assert.deepEqual(refused, [{ path: "a.txt", reason: "the same lines were changed since" }]);
  assert.deepEqual(pictureOf(kept.root), before);
  const skipped = await kept.undo({ skip: true });
  assert.equal(skipped.done, true);
  assert.equal(await kept.place.read("work/b.txt"), "b\n");
  assert.equal(readFileSync(file, "utf8"), LINES.replace("two", "zwei"));
  // The rest can still be undone once the user has decided.
  writeFileSync(file, LINES.replace("two", "2"));
  await kept.undo();
  assert.equal(readFileSync(file, "utf8"), LINES);
});

test("a file that the user has deleted since is not restored without asking", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "x\n"));
  rmSync(kept.place.at("work/a.txt"));
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a.txt", reason: "it was deleted since" }]);
});

test("a file that the run deleted and the user created again stays the user's", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  await kept.run(() => rmSync(kept.place.at("work/a.txt")));
  writeFileSync(kept.place.at("work/a.txt"), "mine\n");
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a.txt", reason: "something else is there now" }]);
  assert.equal(await kept.place.read("work/a.txt"), "mine\n");
});

test("the user's changes between two calls are not undone with them", async () => {
  await using kept = await keptRun({ "a.txt": LINES, "b.txt": "b\n" });
  const file = kept.place.at("work/a.txt");
  await kept.run(() => writeFileSync(file, LINES.replace("one", "1")));
  writeFileSync(file, readFileSync(file, "utf8").replace("six", "sechs"));
  writeFileSync(kept.place.at("work/b.txt"), "mine\n");
  await kept.run(() => writeFileSync(file, readFileSync(file, "utf8").replace("four", "4")));
  const { refused } = await kept.undo();
  assert.deepEqual(refused, []);
  assert.equal(readFileSync(file, "utf8"), LINES.replace("six", "sechs"));
  assert.equal(await kept.place.read("work/b.txt"), "mine\n");
});

test("a folder that the run made stays if the user has put something in it", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  await kept.run(() => {
    mkdirSync(kept.place.at("work/made/inner"), { recursive: true });
    writeFileSync(kept.place.at("work/made/run.txt"), "x");
  });
  writeFileSync(kept.place.at("work/made/mine.txt"), "y");
  const { left } = await kept.undo();
  assert.deepEqual(left, ["made"]);
  assert.equal(existsSync(kept.place.at("work/made/run.txt")), false);
  assert.equal(existsSync(kept.place.at("work/made/inner")), false);
  assert.equal(await kept.place.read("work/made/mine.txt"), "y");
});

test("nothing is written through a link that replaced a folder", async () => {
  await using kept = await keptRun({ "src/a.txt": LINES, "b.txt": "b" });
  const outside = kept.place.at("outside");
  mkdirSync(outside);
  await kept.run(() => rmSync(kept.place.at("work/src/a.txt")));
  renameSync(kept.place.at("work/src"), kept.place.at("work/was-src"));
  symlinkSync(outside, kept.place.at("work/src"));
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "src/a.txt", reason: "src is no longer a folder" }]);
  await kept.undo({ skip: true });
  assert.deepEqual(pictureOf(outside), { "": "folder 755" });
});

test("where a parent is no longer a folder, its files are refused and everything else is undone", async () => {
  await using kept = await keptRun({ "a/b/c/f.txt": LINES, "z.txt": LINES });
  await kept.run(() => {
    rmSync(kept.place.at("work/a/b/c/f.txt"));
    writeFileSync(kept.place.at("work/z.txt"), "theirs\n");
  });
  rmSync(kept.place.at("work/a"), { recursive: true });
  writeFileSync(kept.place.at("work/a"), "mine\n");
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a/b/c/f.txt", reason: "a is no longer a folder" }]);
  await kept.undo({ skip: true });
  assert.deepEqual([await kept.place.read("work/a"), await kept.place.read("work/z.txt")], ["mine\n", LINES]);
});

test("nothing is written through a link that replaced a file", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  const secret = await kept.place.write("secret", "secret\n");
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "x\n"));
  rmSync(kept.place.at("work/a.txt"));
  symlinkSync(secret, kept.place.at("work/a.txt"));
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a.txt", reason: "it was changed since" }]);
  assert.equal(await kept.place.read("secret"), "secret\n");
});

test("permissions that the user has changed since stay, and the run's content is undone", async () => {
  await using kept = await keptRun({ "a.txt": LINES });
  const file = kept.place.at("work/a.txt");
  await kept.run(() => writeFileSync(file, "x\n"));
  chmodSync(file, 0o600);
  await kept.undo();
  assert.equal(readFileSync(file, "utf8"), LINES);
  assert.equal(lstatSync(file).mode & 0o777, 0o600);
});

test("a binary that both changed is refused", async () => {
  await using kept = await keptRun({ "a.bin": "\0one" });
  const file = kept.place.at("work/a.bin");
  await kept.run(() => writeFileSync(file, "\0two"));
  writeFileSync(file, "\0three");
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a.bin", reason: "it was changed since, and is not a text file" }]);
});

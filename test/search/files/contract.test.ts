// also slow: texts that cost every parser most
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Cutter, decoded, languageOf, LANGUAGES } from "../../../src/search/files/cut-file.ts";
import { MAX_COUNT } from "../../../src/search/files/marks.ts";
import { HUGE_FILE_BYTES } from "../../../src/search/search-store.ts";
import { assertCostly, fc } from "../../fixtures/property.ts";
import { SOURCES } from "./sources.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const PATHS = [...Object.keys(SOURCES), "notes.md", "a.yaml", "a.txt", "LICENSE"];

type Cut = Awaited<ReturnType<Cutter["cut"]>>;

async function holds(cutter: Cutter, path: string, bytes: Uint8Array): Promise<Cut> {
  const file = await cutter.cut(path, bytes);
  if (file.kind === "skipped") return file;
  const text = decoded(bytes);
  assert.equal(file.pieces.map((piece) => piece.text).join(""), text);
  let line = 1;
  for (const piece of file.pieces) {
    assert.ok(piece.text.length > 0 && piece.text.length <= MAX_COUNT, `${piece.text.length} units`);
    const ends = piece.text.split("\n").length - 1;
    assert.deepEqual([piece.start, piece.end], [line, line + ends - (piece.text.endsWith("\n") ? 1 : 0)]);
    line += ends;
  }
  return file;
}

async function holdsTwice(cutter: Cutter, path: string, bytes: Uint8Array): Promise<void> {
  const file = await holds(cutter, path, bytes);
  // A difference of a million lines is not printed line by line, which would exhaust the memory.
  assert.ok(isDeepStrictEqual(await cutter.cut(path, bytes), file), `${path} is cut in two ways`);
}

const property = async (arbitrary: fc.Arbitrary<Uint8Array>): Promise<void> => {
  using cutter = new Cutter();
  await assertCostly(
    fc.asyncProperty(fc.constantFrom(...PATHS), arbitrary, (path, bytes) => holdsTwice(cutter, path, bytes)),
    40,
  );
};

test("any bytes: the chunks add up to the text, with correct lines and bounded length, and are the same twice", () =>
  property(fc.uint8Array({ maxLength: 4000 })));

test("any text with all kinds of line ends", () =>
  property(
    fc
      .array(
        fc.oneof(
          fc.constantFrom("\n", "\r\n", "\r", "\n\n", "    ", "{", "}", "# a", "def f():", "😀"),
          fc.string(),
        ),
      )
      .map((parts) => Buffer.from(parts.join(""))),
  ));

test("code of every language, cut up and joined incorrectly", () => {
  const all = Object.values(SOURCES);
  const part = fc
    .tuple(fc.constantFrom(...all), fc.nat(), fc.nat())
    .map(([text, from, size]) => text.slice(from % text.length, (from % text.length) + (size % 900)));
  return property(fc.array(part, { maxLength: 30 }).map((parts) => Buffer.from(parts.join(""))));
});

slowTest("deep nesting, long lines, and empty text", async () => {
  using cutter = new Cutter();
  const texts = [
    "(".repeat(100_000),
    "[\n".repeat(50_000),
    "{\n".repeat(HUGE_FILE_BYTES / 2),
    "x".repeat(HUGE_FILE_BYTES),
    "if (a) {\n".repeat(2000),
    "",
  ];
  for (const path of ["a.ts", "a.py", "a.txt"])
    for (const text of texts) await holds(cutter, path, Buffer.from(text));
  assert.deepEqual(cutter.missing(), []);
});

/** As titles these would take hours: the title pattern would start again at each letter. */
test("a line too long for a title is not one, whatever it contains", async () => {
  using cutter = new Cutter();
  const long = HUGE_FILE_BYTES - 100;
  const texts = [
    `# x${" ".repeat(long)}y\n`,
    `# ${"[".repeat(long)}\n`,
    `# ${"[](".repeat(long / 3)}\n`,
    `# ${"{#".repeat(long / 2)}\n`,
    `x${"[".repeat(long)}\n===\n`,
  ];
  for (const text of texts) {
    const cut = await holds(cutter, "a.md", Buffer.from(text));
    assert.ok(cut.kind === "cut" && cut.pieces.every(({ symbol }) => symbol === null));
  }
});

slowTest("a text that breaks the parser does not affect the next file", async () => {
  using cutter = new Cutter();
  const path = "store.py";
  const whole = await cutter.cut(path, Buffer.from(SOURCES[path] ?? ""));
  await cutter.cut(path, Buffer.from("/* /* \n".repeat(600)));
  assert.deepEqual(await cutter.cut(path, Buffer.from(SOURCES[path] ?? "")), whole);
  assert.deepEqual(cutter.missing(), []);
});

test("a language is recognised by name, extension or first line", () => {
  const told = ["a/B.TS", "Makefile", "Dockerfile.dev", "Gemfile", "x.h", "x", "x.unknown"].map((path) =>
    languageOf(path),
  );
  assert.deepEqual(told, ["typescript", "make", "dockerfile", "ruby", "c", "text", "text"]);
  assert.equal(languageOf("bin/run", "#!/usr/bin/env -S python3 -u"), "python");
  assert.equal(languageOf("bin/run", "#!/bin/sh"), "bash");
  assert.ok(told.every((one) => one === "dockerfile" || LANGUAGES.has(one)));
});

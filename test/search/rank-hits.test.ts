import assert from "node:assert/strict";
import { test } from "node:test";
import { rank } from "../../src/search/rank-hits.ts";
import type { ScoredChunk, Chunk } from "../../src/search/search-store.ts";
import { fc } from "../fixtures/property.ts";
import { chunk } from "./stores/words.ts";

const found = (
  path: string,
  scores: { readonly lexical?: number; readonly dense?: number },
  more: Partial<Chunk> = {},
): ScoredChunk => ({
  chunk: chunk(path, more.text ?? `text of ${path}`, more),
  lexical: scores.lexical ?? null,
  dense: scores.dense ?? null,
});

const pathsOf = (candidates: readonly ScoredChunk[], query: string, limit = 10): readonly string[] =>
  rank(candidates, query, limit).map(({ path }) => path);

const shown = (lines: readonly string[]): readonly string[] =>
  rank([found("a.ts", { lexical: 1 }, { text: lines.join("\n") })], "crocodile", 1)[0]?.preview.split("\n") ??
  [];

const KINDS = [
  found("a_test.go", { lexical: 9 }, { role: "test" }),
  found("README.md", { lexical: 9.5 }, { role: "docs" }),
  found("a.go", { lexical: 4 }),
] as const;

test("source files come before tests and documents, unless those are asked for", () => {
  assert.deepEqual(pathsOf(KINDS, "close the store"), ["a.go", "a_test.go", "README.md"]);
  assert.equal(pathsOf(KINDS, "tests for closing the store")[0], "a_test.go");
  assert.equal(pathsOf(KINDS, "where is closing tested")[0], "a_test.go");
  assert.equal(pathsOf(KINDS, "documentation of the store")[0], "README.md");
  // A mere mention among other words is not a request.
  assert.equal(pathsOf(KINDS, "close the store when a test times out")[0], "a.go");
  // Nor is a statement in a later sentence; a question in it is.
  assert.equal(pathsOf(KINDS, "close the store. This renews its tests for other stores")[0], "a.go");
  assert.equal(pathsOf(KINDS, "it is closed. Where are the tests for that?")[0], "a_test.go");
});

test("vectors can move an answer up, and add one that words do not find", () => {
  const candidates = [
    found("one.ts", { lexical: 5, dense: 0.2 }),
    found("two.ts", { lexical: 4.9, dense: 0.9 }),
    found("far.ts", { lexical: 0.1, dense: 0.1 }),
    found("three.ts", { dense: 0.8 }),
  ];
  assert.deepEqual(pathsOf(candidates, "x y"), ["two.ts", "one.ts", "far.ts", "three.ts"]);
  assert.equal(rank(candidates, "x y", 10)[3]?.why, "near in meaning");
});

test("parts of one definition are one result, and other files come before further regions of the same file", () => {
  const big = { symbol: "Store.put" };
  const candidates = [
    found("a.ts", { lexical: 9 }, { ...big, start: 1, text: "one\ntwo" }),
    found("a.ts", { lexical: 8.9 }, { ...big, start: 3, text: "three\nfour" }),
    found("a.ts", { lexical: 8.8 }, { symbol: "Store.get", start: 50, text: "five" }),
    found("b.ts", { lexical: 7 }),
  ];
  const hits = rank(candidates, "put", 10).map(({ path, start }) => `${path}:${start}`);
  assert.deepEqual(hits, ["a.ts:1", "b.ts:1", "a.ts:50"]);
});

test("a preview begins shortly before the first matching line, and not with an empty line", () => {
  const lines = Array.from({ length: 40 }, (_, nth) => `line ${nth}`);
  assert.deepEqual(shown(lines.with(20, "a crocodile"))[2], "a crocodile");
  assert.deepEqual(shown(lines.with(0, "a crocodile"))[0], "a crocodile");
  assert.deepEqual(shown(lines.with(39, "a crocodile")).at(-1), "a crocodile");
  assert.deepEqual(shown(lines.with(18, "").with(19, " ").with(20, "a crocodile"))[0], "a crocodile");
  assert.deepEqual(shown(["", "", "a crocodile", "line"]), ["a crocodile", "line"]);
  assert.deepEqual(shown(["", "", ""]), ["", ""]);
});

test("a preview shows the lines with the query's words, and the reason says where they are", () => {
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at}`);
  lines[30] = "  const cookie = parse(header);";
  const text = lines.join("\n");
  const [hit] = rank(
    [found("src/http/cookie.ts", { lexical: 1 }, { text, symbol: "readAll", start: 101 })],
    "how are cookies parsed when reading the header",
    5,
  );
  assert.ok(hit);
  assert.match(hit.preview, /cookie = parse/);
  assert.equal(hit.preview.split("\n").length, 10);
  assert.equal(hit.why, "name: reading; path: cookies; text: parsed, header");
  assert.deepEqual([hit.start, hit.end, hit.score], [101, 140, 1]);
});

test("the order does not depend on the order of candidates, and scores fall from one", () => {
  const some = fc.array(
    fc.record({
      path: fc.constantFrom("a.ts", "b.ts", "c.md"),
      start: fc.integer({ min: 1, max: 500 }),
      lexical: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
      dense: fc.option(fc.double({ min: -1, max: 1, noNaN: true }), { nil: undefined }),
    }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(some, fc.integer({ min: 1, max: 12 }), (made, limit) => {
      const unique = [...new Map(made.map((one) => [`${one.path}:${one.start}`, one])).values()];
      const candidates = unique.map(({ path, start, lexical, dense }) =>
        found(
          path,
          { ...(lexical === undefined ? {} : { lexical }), ...(dense === undefined ? {} : { dense }) },
          { start, role: path.endsWith("md") ? "docs" : "source" },
        ),
      );
      const hits = rank(candidates, "text of a", limit);
      assert.deepEqual(rank(candidates.toReversed(), "text of a", limit), hits);
      assert.ok(hits.length <= limit);
      const scores = hits.map(({ score }) => score);
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
      );
      assert.ok(scores.every((score) => score >= 0 && score <= 1));
    }),
  );
});

test("within a file the chunk that defines a spelled-out name is shown first, and imports last; the order of files stays", () => {
  const candidates = [
    found("a.ts", { lexical: 9 }, { kind: "imports", start: 1, text: "import parseBody" }),
    found("a.ts", { lexical: 8 }, { symbol: "ParseBody", start: 20, text: "interface" }),
    found("a.ts", { lexical: 4 }, { symbol: "Body.parseBody", start: 90, text: "function" }),
    found("b.ts", { lexical: 8.5 }, { symbol: "parseBody", start: 1 }),
  ];
  const hits = (query: string): readonly string[] =>
    rank(candidates, query, 10).map(({ path, start }) => `${path}:${start}`);
  assert.deepEqual(hits("parseBody drops files"), ["a.ts:90", "b.ts:1", "a.ts:20", "a.ts:1"]);
  assert.deepEqual(hits("drop files").slice(0, 2), ["a.ts:20", "b.ts:1"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { lookupIn, parseQuery } from "../../src/search/ranked-query.ts";
import { rank } from "../../src/search/rank-hits.ts";
import { Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { Candidate, Chunk } from "../../src/search/search-store.ts";
import { chunk } from "./stores/words.ts";

const found = (path: string, lexical: number, more: Partial<Chunk> = {}): Candidate => ({
  chunk: chunk(path, more.text ?? `text of ${path}`, more),
  lexical,
  dense: null,
});

const placesFor = (query: string, candidates: readonly Candidate[]): readonly string[] =>
  rank(candidates, query, 10).map(({ path, start }) => `${path}:${start}`);

const asked = (text: string) => parseQuery(text, new Tokenizer(), WEIGHTS);
const said = (text: string): readonly string[] => asked(text).words.map((each) => each.original);

const READER = [
  found("stream/Writer.java", 9, { start: 5, symbol: "Writer.flush" }),
  found("stream/Reader.java", 8, { start: 900, symbol: "Reader.skip, Reader.trim" }),
  found("bind/TreeReader.java", 7, { start: 30, symbol: "TreeReader.peek" }),
  found("stream/Reader.java", 2, { start: 40, symbol: "Reader.peek, Reader.doPeek" }),
  found("stream/Reader.java", 1, { start: 10, symbol: "Reader", kind: "class" }),
  found("stream/Reader.java", 3, { start: 60, symbol: "Reader", kind: "class" }),
];

for (const query of ["Reader.peek", "Reader.peek()", "`Reader::peek`", "stream.Reader#peek", "reader.peek"])
  test(`${query} is the definition, however much others use it`, () => {
    const places = placesFor(query, READER);
    assert.deepEqual(places.slice(0, 2), ["stream/Reader.java:40", "bind/TreeReader.java:30"]);
    assert.equal(places.length, READER.length, "nothing is lost");
  });

test("one name is whatever is called so, the better one first", () => {
  const places = placesFor("peek", READER);
  assert.deepEqual(places.slice(0, 2), ["bind/TreeReader.java:30", "stream/Reader.java:40"]);
});

test("a class is where it begins", () => {
  for (const query of ["Reader", "class Reader"])
    assert.deepEqual(placesFor(query, READER).slice(0, 2), [
      "stream/Reader.java:10",
      "stream/Reader.java:60",
    ]);
});

const FILES = [
  found("src/hash.c", 9, { start: 1 }),
  found("src/dict.c", 6, { start: 400, text: "a\nb\nc" }),
  found("src/dict.c", 2, { start: 1 }),
  found("deps/dict.c", 8, { start: 1 }),
  found("dict.c", 1, { start: 1 }),
];

test("a path is that file, from its beginning or from the line that is asked for", () => {
  assert.deepEqual(placesFor("src/dict.c", FILES).slice(0, 2), ["src/dict.c:1", "src/dict.c:400"]);
  assert.equal(placesFor("./src/dict.c:402", FILES)[0], "src/dict.c:400");
  assert.equal(placesFor("src/dict.c:7:1", FILES)[0], "src/dict.c:1");
  assert.equal(placesFor("dict.c", FILES)[0], "dict.c:1", "the whole path before the end of another");
  assert.equal(placesFor("DEPS/DICT.C", FILES)[0], "deps/dict.c:1");
});

test("scores tell the order", () => {
  for (const [query, candidates] of [
    ["Reader.peek", READER],
    ["src/dict.c", FILES],
    ["nothing_of_it", FILES],
  ] as const) {
    const scores = rank(candidates, query, 10).map(({ score }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
    assert.ok(scores.every((score) => score > 0 && score <= 1));
  }
});

test("a heading is no definition", () => {
  const candidates = [
    found("docs/cache.md", 1, { symbol: "cache", kind: "section", role: "docs" }),
    found("src/other.ts", 2, { symbol: "store" }),
    found("src/cache.ts", 1, { symbol: "cache" }),
  ];
  assert.deepEqual(placesFor("cache", candidates), ["src/cache.ts:1", "src/other.ts:1", "docs/cache.md:1"]);
});

test("what has several words is a question", () => {
  for (const query of ["close the store", "Reader peek", "", "  ", "x".repeat(300)])
    assert.equal(lookupIn(query), null, query);
  assert.deepEqual(lookupIn("a/b-c.d"), { path: "a/b-c.d", line: null, names: [] });
});

test("a name may be a word that a question would not count", () => {
  assert.deepEqual(said("Map.get").slice(0, 2), ["Map", "get"]);
  assert.deepEqual(said("get"), ["get"]);
  assert.deepEqual(said("how is it done"), []);
});

test("a file that is named by its path is worth all that its role is worth", () => {
  assert.equal(asked("CHANGES.rst").prior.docs, 1);
  assert.equal(asked("tests/store_test.py").prior.test, 1);
  assert.equal(asked("Reader.peek").prior.config, WEIGHTS.role.config);
});

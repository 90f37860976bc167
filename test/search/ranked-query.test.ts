import assert from "node:assert/strict";
import { test } from "node:test";
import { CHANGE_WORDS, lookupIn, OPENING_WORDS, parseQuery, roleOf } from "../../src/search/ranked-query.ts";
import { STOP_WORDS, Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { ScoredChunk, Chunk, Role } from "../../src/search/search-store.ts";
import { rank } from "../../src/search/rank-hits.ts";
import { chunk } from "./stores/words.ts";

/** Round numbers that can be told apart. */
const WORTH = { ...WEIGHTS, firstSentence: 1, again: 0, joined: 0.1, change: 0.5, opening: 0.25 };

const weigh = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    parseQuery(text, new Tokenizer(), WORTH).words.map(({ word, weight }) => [word, weight]),
  );

test("words for changes weigh less than the changed thing, in all their forms", () => {
  assert.deepEqual(weigh("cache: added, supporting, fixes"), { cach: 1, ad: 0.5, support: 0.5, fix: 0.5 });
  assert.equal(weigh("the cache handles locks")["handl"], 0.5);
});

test("a verb at the start of a query weighs least; later it may be a name", () => {
  const opens = weigh("remove cache");
  assert.deepEqual([opens["remov"], opens["cach"]], [0.25, 1]);
  assert.equal(weigh("cache: remove")["remov"], 1);
  // Elsewhere such a word weighs more than at the start, and less than others.
  assert.deepEqual([weigh("add cache")["add"], weigh("cache: add")["add"]], [0.25, 0.5]);
  // The start of a later sentence is not the start of the query.
  assert.equal(weigh("cache. Remove it")["remov"], 1);
  assert.equal(weigh("cache\nremove it")["remov"], 1);
});

test("names that contain such words keep their weight, and so do two joined words", () => {
  const named = weigh("addHandler fails");
  assert.deepEqual([named["add"], named["handler"], named["addhandler"]], [1, 1, 1]);
  assert.equal(weigh("cache: add handler")["addhandler"], 0.1);
});

test("a query of such words alone still searches for them", () => {
  assert.deepEqual(Object.keys(weigh("fix update")), ["fix", "updat", "fixupdate"]);
  assert.ok(Object.values(weigh("fix update")).every((weight) => weight > 0));
});

test("each word is in one list: words that are never searched for have no weight", () => {
  const stopped = [...STOP_WORDS].filter((word) => OPENING_WORDS.has(word));
  assert.deepEqual(stopped, []);
  assert.ok([...CHANGE_WORDS].every((word) => OPENING_WORDS.has(word)));
  assert.ok(WEIGHTS.opening < WEIGHTS.change && WEIGHTS.change < 1);
});

const PATHS: Readonly<Record<Role, readonly string[]>> = {
  source: [
    "src/main.rs",
    "cmd/launch/claude.go",
    "app/Models/User.php",
    "lib/tester.rb",
    "src/latest.ts",
    "src/contest/vote.py",
    "src/helper/testing/index.ts",
    "bin/deploy",
    "src/API.ts",
    "src/documents/page.ts",
    "server/inspect.go",
  ],
  test: [
    "test/unit/a.ts",
    "pkg/server_test.go",
    "src/app.test.tsx",
    "tests/test_views.py",
    "spec/models/user_spec.rb",
    "src/test/java/com/x/GsonTest.java",
    "Jellyfin.Api.Tests/UserTests.cs",
    "runtime-tests/bun/index.ts",
    "conftest.py",
    "a/testdata/x.go",
    "test/x.bats",
    "src/__tests__/a.js",
  ],
  example: ["examples/chat.rs", "playground/css/main.js", "benchmarks/fast.go"],
  docs: ["README.md", "docs/guide.html", "LICENSE", "CHANGELOG", "RELEASE-NOTES", "notes/x.rst"],
  vendored: [
    "vendor/github.com/x/y.go",
    "third_party/zlib/inflate.c",
    "deps/lua/src/lua.c",
    "web/jquery.min.js",
  ],
  config: [
    "package.json",
    ".github/workflows/ci.yml",
    "Makefile",
    "a/CMakeLists.txt",
    "x.tmTheme",
    ".eslintrc",
    "pkg/BUILD",
    "Justfile",
  ],
};

for (const [role, paths] of Object.entries(PATHS))
  test(`files of role ${role} are recognised by path`, () => {
    for (const path of paths) assert.equal(roleOf(path), role, path);
  });

const found = (path: string, lexical: number, more: Partial<Chunk> = {}): ScoredChunk => ({
  chunk: chunk(path, more.text ?? `text of ${path}`, more),
  lexical,
  dense: null,
});

const placesFor = (query: string, candidates: readonly ScoredChunk[]): readonly string[] =>
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
  test(`${query} finds the definition first, however often others use it`, () => {
    const places = placesFor(query, READER);
    assert.deepEqual(places.slice(0, 2), ["stream/Reader.java:40", "bind/TreeReader.java:30"]);
    assert.equal(places.length, READER.length, "nothing is lost");
  });

test("a single name finds what is named so, the best first", () => {
  const places = placesFor("peek", READER);
  assert.deepEqual(places.slice(0, 2), ["bind/TreeReader.java:30", "stream/Reader.java:40"]);
});

test("a class is found at its beginning", () => {
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

test("a path finds that file, at its beginning or at the requested line", () => {
  assert.deepEqual(placesFor("src/dict.c", FILES).slice(0, 2), ["src/dict.c:1", "src/dict.c:400"]);
  assert.equal(placesFor("./src/dict.c:402", FILES)[0], "src/dict.c:400");
  assert.equal(placesFor("src/dict.c:7:1", FILES)[0], "src/dict.c:1");
  assert.equal(placesFor("dict.c", FILES)[0], "dict.c:1", "a whole path comes before the end of another");
  assert.equal(placesFor("DEPS/DICT.C", FILES)[0], "deps/dict.c:1");
});

test("scores follow the order", () => {
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

test("a heading does not count as a definition", () => {
  const candidates = [
    found("docs/cache.md", 1, { symbol: "cache", kind: "section", role: "docs" }),
    found("src/other.ts", 2, { symbol: "store" }),
    found("src/cache.ts", 1, { symbol: "cache" }),
  ];
  assert.deepEqual(placesFor("cache", candidates), ["src/cache.ts:1", "src/other.ts:1", "docs/cache.md:1"]);
});

test("several words are a question, not a name", () => {
  for (const query of ["close the store", "Reader peek", "", "  ", "x".repeat(300)])
    assert.equal(lookupIn(query), null, query);
  assert.deepEqual(lookupIn("a/b-c.d"), { path: "a/b-c.d", line: null, names: [] });
});

test("a name may be a word that a question would ignore", () => {
  assert.deepEqual(said("Map.get").slice(0, 2), ["Map", "get"]);
  assert.deepEqual(said("get"), ["get"]);
  assert.deepEqual(said("how is it done"), []);
});

test("a file named by its path gets the full weight of its role", () => {
  assert.equal(asked("CHANGES.rst").prior.docs, 1);
  assert.equal(asked("tests/store_test.py").prior.test, 1);
  assert.equal(asked("Reader.peek").prior.config, WEIGHTS.role.config);
});

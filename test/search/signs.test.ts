import assert from "node:assert/strict";
import { test } from "node:test";
import { areAdjacent, rank, shareByEnding } from "../../src/search/rank-hits.ts";
import { restOfRequest } from "../../src/search/ranked-query.ts";
import { Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { ScoredChunk, Role } from "../../src/search/search-store.ts";
import { chunk } from "./stores/words.ts";

const said = (text: string) => restOfRequest(text, new Tokenizer());
const found = (path: string, lexical: number, text = "nothing of it"): ScoredChunk => ({
  chunk: chunk(path, text, { symbol: null }),
  lexical,
  dense: null,
});
const placed = (path: string, score: number, role: Role = "source") => ({
  chunk: chunk(path, "x", { role }),
  score,
});
const pathsOf = (query: string, ...candidates: readonly ScoredChunk[]): readonly string[] =>
  rank(candidates, query, 10).map(({ path }) => path);

test("words before a colon name a place, neighbouring words form pairs, and code names are recognised", () => {
  assert.deepEqual(said("trie-router: count every slash").scope, ["trie", "router"]);
  assert.deepEqual(said("count every slash: all").scope.length > 0, true);
  assert.deepEqual(said("std::move is missing").scope, []);
  assert.deepEqual(said("one\ntwo: three").scope, []);
  const pairs = said("cache directories of the serve-static handler").pairs;
  assert.deepEqual(pairs, [
    ["cach", "director"],
    ["serv", "static"],
    ["static", "handler"],
  ]);
  assert.deepEqual(said("call parseBody or flush() with `Vary` and snake_case, Twice").spelled, [
    "Vary",
    "parseBody",
    "flush",
    "snake_case",
  ]);
});

test("the signs of an empty or endless text are bounded", () => {
  assert.deepEqual(said(""), { scope: [], pairs: [], spelled: [] });
  const much = said("oneTwo  threeFour   ".repeat(5000));
  assert.deepEqual([much.pairs.length, much.spelled.length], [64, 2]);
  assert.equal(said(Array.from({ length: 99 }, (_, at) => `name_${at}`).join(" ")).spelled.length, 32);
});

test("a pair matches separate, joined and inflected words, but not across a word or in reverse order", () => {
  const pair = ["cach", "director"] as const;
  for (const text of [
    "cachedirectory",
    "cache_directories",
    "caching directory",
    "cache: directory",
    "the cache/directory",
  ])
    assert.ok(areAdjacent(text, pair), text);
  for (const text of [
    "directory cache",
    "cache the directory",
    "cache",
    "",
    "cache 2 directory",
    "cache;\n\n  directory",
  ])
    assert.ok(!areAdjacent(text, pair), text);
  // An earlier match that is no pair does not hide a later one.
  assert.ok(areAdjacent("cache misses; cache directory", pair));
});

test("files in the named place come before files named like it, and both come before others", () => {
  const [door, room, other] = [found("mlx.go", 5), found("mlx/array.go", 4), found("llm/array.go", 4.5)];
  assert.deepEqual(pathsOf("mlx: read scalar items", door, room, other), [
    "mlx/array.go",
    "llm/array.go",
    "mlx.go",
  ]);
  assert.deepEqual(pathsOf("read scalar items", door, room, other), [
    "mlx.go",
    "llm/array.go",
    "mlx/array.go",
  ]);
});

test("a text with the query's pairs or code names comes before a slightly better one without", () => {
  const plain = found("a.go", 5, "draft here, and the cache there");
  const pair = found("b.go", 4.8, "settles the DraftCache");
  assert.deepEqual(pathsOf("draft caches", plain, pair), ["b.go", "a.go"]);
  assert.deepEqual(pathsOf("draft the caches", plain, pair), ["a.go", "b.go"]);
  const spelled = found("c.go", 4.8, "func parseBody() {}");
  assert.deepEqual(pathsOf("why parseBody fails", plain, spelled), ["c.go", "a.go"]);
  assert.deepEqual(pathsOf("why parsebody fails", plain, spelled), ["a.go", "c.go"]);
});

test("a file that the query calls by its full name comes before an equal one", () => {
  const candidates = [found("aa/array_list.go", 5), found("bb/array.go", 5)];
  assert.deepEqual(pathsOf("array overflow", ...candidates), ["bb/array.go", "aa/array_list.go"]);
});

test("only the texts of the first files are read", () => {
  const { files } = WEIGHTS.signs;
  const before = Array.from({ length: files }, (_, at) => found(`f${String(at).padStart(3, "0")}.go`, 5));
  const last = found("last.go", 4.9, "parseBody");
  const query = "why parseBody fails";
  assert.equal(rank([...before, last], query, 1)[0]?.path, "f000.go");
  assert.equal(rank([...before.slice(1), last], query, 1)[0]?.path, "last.go");
});

test("the file that defines a spelled-out name comes before one that uses it as often", () => {
  const uses = found("a.go", 5, "parseBody(request)");
  const defines: ScoredChunk = {
    chunk: chunk("b.go", "func parseBody() {}", { symbol: "Body.parseBody" }),
    lexical: 4.5,
    dense: null,
  };
  assert.deepEqual(pathsOf("why parseBody fails", uses, defines), ["b.go", "a.go"]);
  assert.deepEqual(pathsOf("why parsing fails", uses, defines), ["a.go", "b.go"]);
});

test("if most results are in one language, its files come before slightly better ones", () => {
  const few = [found("a.sh", 5), found("b.go", 4.5)];
  assert.deepEqual(pathsOf("drop files", ...few), ["a.sh", "b.go"]);
  const more = ["c.go", "d.go", "e.go"].map((path) => found(path, 3));
  assert.deepEqual(pathsOf("drop files", ...few, ...more).slice(0, 2), ["b.go", "a.sh"]);
});

test("shares count each source file once, by its best chunk; other files have none", () => {
  const testing = placed("a_test.go", 9, "test");
  const of = shareByEnding([
    placed("a.go", 2),
    placed("a.go", 3),
    placed("a.go", 1),
    placed("b.SH", 1),
    placed("run", 1),
    testing,
  ]);
  assert.deepEqual(
    ["z.go", "z.sh", "z", "z.py"].map((path) => of(placed(path, 1).chunk)),
    [0.6, 0.4, 0.4, 0],
  );
  assert.equal(of(testing.chunk), 0);
  assert.equal(shareByEnding([])(placed("a.go", 1).chunk), 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { preview, rank, matchedPlaces } from "../../src/search/rank-hits.ts";
import { bestRegions, parseQuery } from "../../src/search/ranked-query.ts";
import { Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { ScoredChunk, Chunk } from "../../src/search/search-store.ts";
import { chunk } from "./stores/words.ts";

const tokenizer = new Tokenizer();
const asked = (text: string) => parseQuery(text, tokenizer, WEIGHTS);
const shown = (text: string, query: string): readonly string[] =>
  preview(text, asked(query), tokenizer).split("\n");
const found = (lexical: number, more: Partial<Chunk>, text: string): ScoredChunk => ({
  chunk: chunk("a.ts", text, more),
  lexical,
  dense: null,
});
const places = (...candidates: readonly ScoredChunk[]): readonly number[] =>
  rank(candidates, "put", 10).map(({ start }) => start);

test("a preview can reach the last line, and is the earliest of equal ones", () => {
  const lines = Array.from({ length: 40 }, (_, at) => `row ${at}`);
  assert.equal(shown(lines.with(39, "the cookie").join("\n"), "cookie").at(-1), "the cookie");
  const twice = lines.with(12, "first cookie").with(32, "second cookie");
  assert.deepEqual(shown(twice.join("\n"), "cookie"), twice.slice(10, 20));
});

test("a long line of a preview is cut, with a mark", () => {
  assert.deepEqual(shown(`${"x".repeat(240)}\n${"y".repeat(241)}\n`, "x"), [
    "x".repeat(240),
    `${"y".repeat(240)}…`,
  ]);
});

test("the first of many matching words are named and the others counted", () => {
  const words = "alpha bravo charlie delta echo foxtrot golf hotel india juliett".split(" ");
  const told = (count: number): string => {
    const text = words.slice(0, count).join(" ");
    return matchedPlaces(chunk("a.ts", text), asked(text), tokenizer);
  };
  assert.equal(told(8), `text: ${words.slice(0, 8).join(", ")}`);
  assert.equal(told(10), `text: ${words.slice(0, 8).join(", ")} and 2 more`);
});

test("parts of one definition are one result, whichever is better", () => {
  const [one, two] = [
    { symbol: "Store.put", start: 1 },
    { symbol: "Store.put", start: 3 },
  ];
  assert.deepEqual(places(found(9, two, "three\nfour"), found(8, one, "one\ntwo")), [3]);
  assert.deepEqual(
    places(found(9, two, "three\nfour"), found(8, { ...one, symbol: null }, "one\ntwo")),
    [3, 1],
  );
});

test("neighbouring chunks without a name are separate results", () => {
  assert.deepEqual(places(found(9, { start: 1 }, "one\ntwo"), found(8, { start: 3 }, "three\nfour")), [1, 3]);
});

test("a word at the start of a sentence does not name a definition", () => {
  const [better, named] = [
    chunk("a.ts", "x", { start: 1 }),
    chunk("a.ts", "y", { start: 9, symbol: "Cache" }),
  ];
  const first = (text: string, symbol: string): number | undefined => {
    const other = { ...named, symbol };
    return bestRegions(
      [
        { chunk: better, score: 2 },
        { chunk: other, score: 1 },
      ],
      text,
    )[0]?.chunk.start;
  };
  assert.equal(first("Cache of files is lost", "Cache"), 1);
  assert.equal(first("FileCache of files is lost", "FileCache"), 9);
});

test("a chunk with a negative vector score is not an answer", () => {
  const against = { chunk: chunk("b.ts", "y"), lexical: null, dense: -0.9 };
  const near = { chunk: chunk("a.ts", "x"), lexical: null, dense: 0.1 };
  assert.deepEqual(
    rank([against, near], "put", 10).map(({ path }) => path),
    ["a.ts"],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { CHANGE_WORDS, OPENING_WORDS, parseQuery } from "../../src/search/ranked-query.ts";
import { STOP_WORDS, Tokenizer } from "../../src/search/tokens.ts";
import { WEIGHTS } from "../../src/search/weights.ts";

/** With round numbers, so that each can be told from the others. */
const WORTH = { ...WEIGHTS, firstSentence: 1, again: 0, joined: 0.1, change: 0.5, opening: 0.25 };

const weigh = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    parseQuery(text, new Tokenizer(), WORTH).words.map(({ word, weight }) => [word, weight]),
  );

test("words of changes weigh less than what is changed, in all their forms", () => {
  assert.deepEqual(weigh("cache: added, supporting, fixes"), { cach: 1, ad: 0.5, support: 0.5, fix: 0.5 });
  assert.equal(weigh("the cache handles locks")["handl"], 0.5);
});

test("a verb that opens a query weighs least; further on it may be a name", () => {
  const opens = weigh("remove cache");
  assert.deepEqual([opens["remov"], opens["cach"]], [0.25, 1]);
  assert.equal(weigh("cache: remove")["remov"], 1);
  // Such a word weighs more where it does not open, and less than others.
  assert.deepEqual([weigh("add cache")["add"], weigh("cache: add")["add"]], [0.25, 0.5]);
  // A later sentence does not open a query.
  assert.equal(weigh("cache. Remove it")["remov"], 1);
  assert.equal(weigh("cache\nremove it")["remov"], 1);
});

test("names that have such words in them keep their weight, and so do two words as one", () => {
  const named = weigh("addHandler fails");
  assert.deepEqual([named["add"], named["handler"], named["addhandler"]], [1, 1, 1]);
  assert.equal(weigh("cache: add handler")["addhandler"], 0.1);
});

test("a query of such words alone still looks for them", () => {
  assert.deepEqual(Object.keys(weigh("fix update")), ["fix", "updat", "fixupdate"]);
  assert.ok(Object.values(weigh("fix update")).every((weight) => weight > 0));
});

test("a word is of one list: what is never looked for has no weight", () => {
  const stopped = [...STOP_WORDS].filter((word) => OPENING_WORDS.has(word));
  assert.deepEqual(stopped, []);
  assert.ok([...CHANGE_WORDS].every((word) => OPENING_WORDS.has(word)));
  assert.ok(WEIGHTS.opening < WEIGHTS.change && WEIGHTS.change < 1);
});

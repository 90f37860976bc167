import assert from "node:assert/strict";
import test from "node:test";
import type { Index, IndexHit } from "../../src/core/ports.ts";
import { semanticSearchTool } from "../../src/tools/semantic-search.ts";
import { called } from "../fixtures/call.ts";

const HIT: IndexHit = { path: "src/a.ts", start: 3, end: 9, symbol: "parse", score: 0.9, preview: "parse(" };

function indexOf(hits: readonly IndexHit[]): Index & { readonly asked: readonly [string, number][] } {
  const asked: [string, number][] = [];
  return { asked, search: (query, limit) => (asked.push([query, limit]), Promise.resolve(hits)) };
}

test("five places are asked for, and shown with their lines, symbol and a bounded preview", async () => {
  const index = indexOf([HIT, { ...HIT, symbol: null, preview: "é".repeat(900) }]);
  const { text } = await called(semanticSearchTool(index), { query: "where is it parsed" });
  assert.equal(text, `src/a.ts:3-9 parse\nparse(\n\nsrc/a.ts:3-9\n${"é".repeat(499)}…`);
  assert.deepEqual(index.asked, [["where is it parsed", 5]]);
});

test("nothing found is said in always the same words", async () => {
  const { kind, text } = await called(semanticSearchTool(indexOf([])), { query: "x", limit: 3 });
  assert.deepEqual([kind, text], ["ok", "nothing in the index fits; try grep"]);
});

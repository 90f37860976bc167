import assert from "node:assert/strict";
import test from "node:test";
import { batchTable } from "../../src/render/batch-results.ts";
import { stderr } from "../../src/render/tty/output.ts";

const spentOf = (count: number): string => {
  const usage = {
    requests: count,
    prompt_tokens: 10,
    completion_tokens: 2,
    cached_tokens: null,
    cost: null,
  };
  const end = { rows: count, ended: [], usage, spent: undefined, signal: undefined };
  return batchTable(end, stderr).split("\n").at(-1) ?? "";
};

test("a batch of one row and one request is counted in the singular", () => {
  assert.equal(spentOf(1), "1 row, 1 request, tokens: 12");
  assert.equal(spentOf(2), "2 rows, 2 requests, tokens: 12");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { cuttingFor } from "../../../src/search/files/cutting.ts";

const program = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

test("a lost worker thread is reported to waiting and to later requests", { timeout: 20_000 }, async () => {
  for (const [text, why] of [
    ["process.exit(3)", /a worker thread that splits files into chunks died: it exited with code 3/],
    ["throw new Error('no memory')", /a worker thread that splits files into chunks died: no memory/],
  ] as const) {
    await using cutting = cuttingFor(48, program(text));
    await assert.rejects(cutting.cut("a.ts", Buffer.from("a")), why);
    await assert.rejects(cutting.cut("b.ts", Buffer.from("b")), why);
  }
});

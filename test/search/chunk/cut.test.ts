import assert from "node:assert/strict";
import { test } from "node:test";
import { Cutter } from "../../../src/search/chunk/cut.ts";

test("a class with its methods, and the imports apart", async () => {
  using cutter = new Cutter();
  const text = `import a from "a";\n\n/** Holds. */\nexport class Store {\n  close() {}\n}\n\nexport const f = () => 1;\n`;
  const file = await cutter.cut("src/store.ts", Buffer.from(text));
  assert.ok(file.kind === "cut");
  assert.deepEqual(
    file.pieces.map(({ start, end, kind, symbol }) => ({ start, end, kind, symbol })),
    [
      { start: 1, end: 2, kind: "imports", symbol: null },
      { start: 3, end: 8, kind: "code", symbol: "Store, Store.close, f" },
    ],
  );
});

import assert from "node:assert/strict";
import test from "node:test";
import { Output } from "../../../src/render/tty/output.ts";
import { IndexProgress } from "../../../src/app/search/search-progress.ts";
import "../../fakes/terminal.ts";

/** What stands in the line of a terminal of so many columns, the last for each size of it. */
function shown(columns: number): string {
  const lines: string[] = [];
  const terminal = { isTTY: true, columns, write: (text: string) => lines.push(text) };
  new IndexProgress(new Output(terminal as never), false, "indexing", "files").take({
    done: 3000,
    total: 3000,
  });
  return lines.at(-1)?.replace("\r\u001B[2K", "") ?? "";
}

test("in a narrow terminal the bar goes first, and how far it is stays", () => {
  assert.equal(shown(100), `indexing [${"#".repeat(24)}] 100 % 3000 of 3000 files`);
  assert.equal(shown(40), "indexing 100 % 3000 of 3000 files");
  assert.equal(shown(30), "indexing 100 % 3000 of 3000 f");
});

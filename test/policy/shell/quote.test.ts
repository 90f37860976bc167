// also slow: all cases of its properties
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { anyText, fc, part } from "../../fixtures/property.ts";
import { shellText } from "../../../src/policy/shell/shell-syntax.ts";
import { readUnbash } from "../../../src/policy/shell/unbash-reader.ts";

/** The words of the one command in a text, or null when it is not one of plain words. */
function wordsOf(text: string): readonly string[] | null {
  const { tree, errors } = readUnbash(text);
  const [item, ...more] = tree.items;
  if (errors.length > 0 || more.length > 0 || item?.node.kind !== "simple") return null;
  const words = item.node.words.map(({ pieces: [piece, ...others] }) =>
    piece === undefined ? "" : piece.kind === "text" && others.length === 0 ? piece.text : null,
  );
  return words.includes(null) ? null : words.map((word) => word ?? "");
}

const word = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc
    .array(fc.constantFrom(..."'\"\\$`!~*?[]{}()<>|&;#= \t\nab-".split("")), { maxLength: 8 })
    .map((letters) => letters.join("")),
);

test("a shell reads back the quoted words", () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
      assert.deepEqual(wordsOf(shellText(["echo", ...words])), ["echo", ...words]);
    }),
    { numRuns: part(1500) },
  );
});

const hard = fc.oneof(
  word,
  fc.constantFrom(
    "",
    "~",
    "~root/x",
    "-n",
    "!!",
    "a'b!c",
    "'\n!",
    "=ls",
    "C:~",
    "a:~/x",
    "{a,b}",
    "\u001b[31m",
    "\r\n",
  ),
  anyText({ maxLength: 8 }).map((text) => text.toWellFormed().replaceAll("\0", "")),
);

for (const shell of ["bash", "sh"])
  test(`${shell} returns the bytes of the quoted words`, () => {
    const lists = fc.sample(fc.array(hard, { minLength: 1, maxLength: 200 }), 60);
    // One argument may be 128 KiB long.
    for (let at = 0; at < lists.length; at += 10) {
      const some = lists.slice(at, at + 10);
      const text = some.map((words) => `printf '%s\\0' ${shellText(words)}`).join("\n");
      const out = execFileSync(shell, ["-c", text], { encoding: "utf8" });
      assert.deepEqual(out.split("\0").slice(0, -1), some.flat());
    }
  });

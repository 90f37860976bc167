import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../fixtures/property.ts";
import { awkDeeds } from "../../../src/policy/programs/awk-program.ts";
import { filterNames } from "../../../src/policy/programs/data-programs.ts";
import { sedDeeds } from "../../../src/policy/programs/sed-program.ts";

const SED_PARTS = [
  "s/a/b/",
  "/",
  "[",
  "]",
  "\\",
  "\n",
  ";",
  "{",
  "}",
  "a ",
  "i\\",
  "p",
  "1",
  ",",
  "$",
  "#",
  "y/a/b/",
  "b x",
  " ",
];
const AWK_PARTS = [
  "{",
  "}",
  "print ",
  "printf ",
  "(",
  ")",
  "/",
  "[",
  "]",
  '"',
  "\\",
  "#",
  "\n",
  ";",
  ",",
  "a ",
  "$1",
  "getline ",
  "if(x)",
];
const JQ_PARTS = [
  '"',
  "\\(",
  "(",
  ")",
  "#",
  "\n",
  "\\",
  ".",
  "a",
  " ",
  ":",
  "{",
  "}",
  ",",
  "|",
  "[",
  "]",
  "$",
];

const scriptOf = (parts: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((chosen) => chosen.join(""));

describe("the small languages", () => {
  test("a sed command on its own line is found, whatever precedes it", () => {
    fc.assert(
      fc.property(scriptOf(SED_PARTS), (before) => {
        const deeds = sedDeeds(`${before}\nw out`);
        const isText = /(?:^|[^\\])\\\n?$/.test(before) || before.endsWith("\\");
        return isText || deeds === null || deeds.some(({ kind }) => kind === "write");
      }),
    );
  });

  test("an awk rule on its own line is found, whatever complete program precedes it", () => {
    fc.assert(
      fc.property(scriptOf(AWK_PARTS), (before) => {
        const deeds = awkDeeds(`${before}\nEND { system("id") }`);
        const found = deeds?.some(({ kind }) => kind === "command" || kind === "unknown") ?? true;
        return before.endsWith("\\") || found;
      }),
    );
  });

  test("a name on its own line is found, whatever filter precedes it", () => {
    fc.assert(
      fc.property(scriptOf(JQ_PARTS), (before) => {
        const names = filterNames(`${before}\n| env |\n${before}`);
        const open = filterNames(before) === null;
        return open || names === null || names.includes("env");
      }),
    );
  });

  test("an unterminated text is not understood", () => {
    assert.deepEqual([sedDeeds("s/a/b"), awkDeeds('{ print "a }'), filterNames('"a')], [null, null, null]);
  });
});

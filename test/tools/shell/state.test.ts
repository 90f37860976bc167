import assert from "node:assert/strict";
import test from "node:test";
import { stateIn } from "../../../src/tools/shell/state.ts";
import { fc } from "../../fixtures/property.ts";

const before = { folder: "/repo", env: { OLD: "1", KEPT: "2" } };
const read = (...fields: readonly string[]): ReturnType<typeof stateIn> =>
  stateIn(Buffer.from(fields.map((field) => `${field}\0`).join("")), before);

test("what a shell left is laid over what was there before", () => {
  assert.deepEqual(read("/repo/a", "NEW=a=b\nc", "OLD", "END"), {
    folder: "/repo/a",
    env: { KEPT: "2", NEW: "a=b\nc" },
  });
});

test("names that are no identifiers, functions, and what bash sets itself are dropped", () => {
  const dropped = ["BASH_FUNC_f%%=() { x; }", "a-b=1", "=x", "1A=x", "PWD=/", "OLDPWD=/", "SHLVL=9", "_=x"];
  const own = ["BASH_ENV=/tmp/x", "SHELLOPTS=xtrace", "__h_code=0", "KEPT=3"];
  assert.deepEqual(read("/repo", ...dropped, ...own, "END"), {
    folder: "/repo",
    env: { OLD: "1", KEPT: "3" },
  });
});

const REFUSED: readonly (readonly [readonly string[], string])[] = [
  [["/repo", "A=1"], "it was not written whole"],
  [["END"], "it was not written whole"],
  [[], "it was not written whole"],
  [["repo", "END"], "its folder is no path"],
  [["/repo/../etc", "END"], "its folder is no path"],
  [["/repo//x", "END"], "its folder is no path"],
  [[`/${"x".repeat(4096)}`, "END"], "its folder is no path"],
  [["/repo", `A=${"x".repeat(70_000)}`, "END"], "it is more than 64 KiB"],
];

for (const [fields, why] of REFUSED)
  test(`nothing is kept when ${why}: ${fields.join(" ").slice(0, 30)}`, () => {
    assert.equal(read(...fields), why);
  });

test("nothing is kept of what is no UTF-8", () => {
  assert.equal(stateIn(Buffer.from("/repo/\xFF\0END\0", "latin1"), before), "it is no UTF-8");
});

test("whatever the bytes are, the answer is a state within its bounds, or a reason", () => {
  const field = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("/a", "A=1", "END", "OLD", "\0"));
  fc.assert(
    fc.property(fc.array(field, { maxLength: 6 }), (fields) => {
      const state = stateIn(Buffer.from(fields.join("\0")), before);
      if (typeof state === "string") return;
      assert.ok(state.folder.startsWith("/"));
      for (const name of Object.keys(state.env)) assert.match(name, /^[A-Za-z_]\w*$/);
    }),
  );
});

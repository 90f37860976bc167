import assert from "node:assert/strict";
import test from "node:test";
import { envOver, exportedIn, stateIn } from "../../src/tools/shell-command.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { anyText, fc } from "../fixtures/property.ts";

const written = (...fields: readonly string[]): Buffer =>
  Buffer.from(fields.map((field) => `${field}\0`).join(""));
const read = (...fields: readonly string[]): ReturnType<typeof stateIn> =>
  stateIn(written("token", ...fields), "token");

test("what a shell left is its folder and what it exported", () => {
  assert.deepEqual(read("/repo/a", "NEW=a=b\nc", "EMPTY=", "END"), {
    folder: "/repo/a",
    exported: new Map([
      ["NEW", "a=b\nc"],
      ["EMPTY", ""],
    ]),
  });
});

test("what another call left is nothing", () => {
  assert.equal(stateIn(written("other", "/repo/a", "END"), "token"), undefined);
  assert.equal(stateIn(written("", "/repo/a", "END"), "token"), undefined);
});

test("names that are no identifiers, functions, and what bash sets itself are dropped", () => {
  const dropped = ["BASH_FUNC_f%%=() { x; }", "a-b=1", "=x", "1A=x", "PWD=/", "OLDPWD=/", "SHLVL=9", "_=x"];
  const own = ["BASH_ENV=/tmp/x", "SHELLOPTS=xtrace", "__h_code=0", "NAME", "", "KEPT=3"];
  assert.deepEqual(exportedIn([...dropped, ...own]), new Map([["KEPT", "3"]]));
});

const REFUSED: readonly (readonly [readonly string[], string])[] = [
  [["/repo", "A=1"], "they were not completely written"],
  [["END"], "they were not completely written"],
  [[], "they were not completely written"],
  [["repo", "END"], "the folder is not a path"],
  [["/repo/../etc", "END"], "the folder is not a path"],
  [["/repo//x", "END"], "the folder is not a path"],
  [[`/${"x".repeat(4096)}`, "END"], "the folder is not a path"],
];

for (const [fields, why] of REFUSED)
  test(`nothing is kept when ${why}: ${fields.join(" ").slice(0, 30)}`, () => {
    assert.equal(read(...fields), why);
  });

test("nothing is kept of a list of names that nothing was written after", () => {
  assert.equal(stateIn(Buffer.from("HOME\nPATH\n"), "token"), "they were not completely written");
  assert.equal(stateIn(Buffer.from(""), "token"), "they were not completely written");
});

test("nothing is kept of what is no UTF-8", () => {
  assert.equal(stateIn(Buffer.from("token\0/repo/\xFF\0END\0", "latin1"), "token"), "they are not UTF-8");
});

test("kept is what differs from the box's own, and of that what is unchanged or may be kept", async () => {
  const context = fakeToolContext({ refused: () => Promise.resolve(new Set(["LANG", "CHANGED"])) });
  context.shell.move("/repo", { OLD: "1", CHANGED: "1", GONE: "1" });
  const own = new Map(Object.entries({ HOME: "/home/box", LANG: "C" }));
  const left = { HOME: "/home/box", LANG: "x", OLD: "1", CHANGED: "2", NEW: "1" };
  assert.deepEqual(await envOver(own, new Map(Object.entries(left)), context), {
    env: { OLD: "1", NEW: "1" },
    refused: ["LANG", "CHANGED"],
  });
});

test("whatever the bytes are, the answer is a state within its bounds, or a reason, or nothing", () => {
  const field = fc.oneof(anyText(), fc.constantFrom("/a", "A=1", "END", "token", "\0"));
  fc.assert(
    fc.property(fc.array(field, { maxLength: 6 }), (fields) => {
      const state = stateIn(Buffer.from(fields.join("\0")), "token");
      if (typeof state !== "object") return;
      assert.ok(state.folder.startsWith("/"));
      for (const name of state.exported.keys()) assert.match(name, /^[A-Za-z_]\w*$/);
    }),
  );
});

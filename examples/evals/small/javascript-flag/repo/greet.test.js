import assert from "node:assert/strict";
import test from "node:test";
import { execFileSync } from "node:child_process";

const greet = (...words) => execFileSync(process.execPath, ["greet.js", ...words], { encoding: "utf8" });

test("as before", () => {
  assert.equal(greet(), "Hello, world!\n");
  assert.equal(greet("Ann"), "Hello, Ann!\n");
});
test("--shout", () => {
  assert.equal(greet("--shout", "Ann"), "HELLO, ANN!\n");
  assert.equal(greet("Ann", "--shout"), "HELLO, ANN!\n");
  assert.equal(greet("--shout"), "HELLO, WORLD!\n");
});

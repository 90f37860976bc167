import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc } from "../fixtures/property.ts";
import { candidateLine, word } from "../../src/core/wording.ts";

test("a word of plain letters is offered with one line about it", () => {
  assert.equal(candidateLine(word("1ng41dkw23pc", "fix the sum")), "1ng41dkw23pc\tfix the sum");
  assert.equal(candidateLine(word("registry/qwen3:8b-q4_K_M")), "registry/qwen3:8b-q4_K_M");
  assert.equal(candidateLine(word("--mode=read-only")), "--mode=read-only");
});

test("a word that a shell would read is not offered", () => {
  for (const value of [
    "$(id)",
    "`id`",
    "a b",
    "a;b",
    "a'b",
    'a"b',
    "a\\b",
    "~root",
    "a\nb",
    "a*",
    "{a,b}",
    "",
    "=a",
  ])
    assert.equal(candidateLine(word(value)), undefined, value);
  assert.equal(candidateLine(word("a".repeat(201))), undefined);
});

test("whatever is told of a word is one short line that no terminal obeys", () => {
  fc.assert(
    fc.property(anyText({ maxLength: 300 }), (about) => {
      const line = candidateLine(word("id", about)) ?? "";
      assert.match(line, /^id(?:\t[^\p{Cc}\u202A-\u202E\u2066-\u2069]+)?$/u);
      assert.ok(line.length <= 63);
    }),
  );
  assert.equal(candidateLine(word("id", "a\nfiles\u001B]52;c;x\u0007\tb"))?.split(/[\n\t]/).length, 2);
});

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { judgedText } from "../../src/tools/shell-command.ts";
import { fc } from "../fixtures/property.ts";

test("a command is judged with the variables that earlier calls exported", () => {
  assert.equal(judgedText("make $T", {}), "make $T");
  assert.equal(
    judgedText("make $T", { T: "it's", A: "$(x)\n" }),
    `export T="it's"\nexport A='$(x)\n'\nmake $T`,
  );
});

test("whatever a value is, bash reads it back from the judged text", () => {
  const value = fc.string({ unit: fc.constantFrom("'", '"', "\\", "$", "`", "\n", "!", "a", "é", " ", "*") });
  const values = fc.sample(value, 400);
  const texts = values.map((text) => judgedText('printf "%s\\0" "$V"', { V: text }));
  const { stdout } = spawnSync("bash", ["-c", texts.join("\n")]);
  assert.deepEqual(stdout.toString().split("\0").slice(0, -1), values);
});

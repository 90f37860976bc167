import assert from "node:assert/strict";
import test from "node:test";
import { lastStates } from "../../src/core/visible.ts";

const LEFT: Readonly<Record<string, string>> = {
  "10%\r50%\r100%\ndone": "100%\ndone",
  "10%\r100%\r\n": "100%\n",
  "10%\r100%\r": "100%",
  "a\r\r\nb\r\n": "a\nb\n",
  "\r\r\n": "\n",
  plain: "plain",
};

for (const [text, left] of Object.entries(LEFT))
  test(`${JSON.stringify(text)} is left as ${JSON.stringify(left)}`, () => {
    assert.equal(lastStates(text), left);
  });

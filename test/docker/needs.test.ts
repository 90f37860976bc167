import assert from "node:assert/strict";
import test from "node:test";
import { readCheck } from "../../src/docker/images/needs.ts";

const CHECKS: Readonly<
  Record<string, readonly [stdout: string, exit_code: number | null, missing: readonly string[]]>
> = {
  "with all": ["v24.21.0\n", 0, []],
  "whose node is too old": ["v18.1.0\n", 0, ["node 20 or later (it has 18.1.0)"]],
  "without node": ["no node\n", 127, ["node"]],
  "whose node does not run": ["", 1, ["a node that says its version"]],
  "whose sh says nothing": ["", 0, ["a node that says its version"]],
  "whose sh never ends": ["", null, ["a sh that ends within 30 s"]],
};

for (const [name, [stdout, exit_code, missing]] of Object.entries(CHECKS))
  test(`an image ${name} lacks ${missing.join() || "nothing"}`, () => {
    assert.deepEqual(readCheck({ stdout, exit_code }).missing, missing);
  });

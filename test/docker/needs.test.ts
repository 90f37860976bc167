import assert from "node:assert/strict";
import test from "node:test";
import { readCheck } from "../../src/docker/images/image-needs.ts";

const CHECKS: Readonly<
  Record<string, readonly [stdout: string, exit_code: number | null, missing: readonly string[]]>
> = {
  "with all": ["v24.21.0\nready\n", 0, []],
  "without node": ["no node\nready\n", 0, []],
  "without a shell": ["no sh\nready\n", 0, ["sh"]],
  "whose node does not run": ["ready\n", 0, []],
  "whose sh says nothing": ["", 0, ["a sh that works"]],
  "whose sh never ends": ["", null, ["a sh that ends within 30 s"]],
};

for (const [name, [stdout, exit_code, missing]] of Object.entries(CHECKS))
  test(`an image ${name} lacks ${missing.join() || "nothing"}`, () => {
    assert.deepEqual(readCheck({ stdout, exit_code }).missing, missing);
  });

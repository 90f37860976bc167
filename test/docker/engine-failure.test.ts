import assert from "node:assert/strict";
import test from "node:test";
import { engineFailure } from "../../src/docker/engine-failure.ts";

test("what can be done fits what the engine says", () => {
  const rows: readonly (readonly [said: unknown, remedy: RegExp])[] = [
    [
      new Error(
        "(HTTP code 400) bad parameter - Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available ",
      ),
      /^harness config set cpus 2$/,
    ],
    [Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }), /start it again/],
    [new Error("(HTTP code 500) server error - no space left"), /^harness doctor$/],
  ];
  for (const [said, remedy] of rows) assert.match(engineFailure("making the box", said).remedy, remedy);
});

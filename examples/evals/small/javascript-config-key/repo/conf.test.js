import assert from "node:assert/strict";
import test from "node:test";
import { readFileSync } from "node:fs";

test("the setting", () => {
  assert.deepEqual(JSON.parse(readFileSync("conf.json", "utf8")), {
    name: "service",
    debug: false,
    port: 8080,
    tags: ["debug", "true"],
  });
});

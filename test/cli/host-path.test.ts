import assert from "node:assert/strict";
import test from "node:test";
import { hostPath } from "../../src/config/places.ts";

const PATHS: Readonly<Record<string, string>> = {
  "/usr/bin:/bin": "/usr/bin:/bin",
  ":/usr/bin": "/usr/bin",
  "/usr/bin:": "/usr/bin",
  "/a b::/c": "/a b:/c",
  ".:node_modules/.bin:./bin:../bin:/bin": "/bin",
  "~/bin:$HOME/bin:/bin": "/bin",
  "": "",
};

for (const [given, kept] of Object.entries(PATHS))
  test(`of PATH ${JSON.stringify(given)} only entries independent of the current folder are kept`, () => {
    assert.equal(hostPath(given), kept);
  });

test("a missing PATH yields an empty one", () => {
  assert.equal(hostPath(), "");
});

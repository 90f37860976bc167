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
  test(`of PATH ${JSON.stringify(given)} what does not depend on the current folder is kept`, () => {
    assert.equal(hostPath(given), kept);
  });

test("without PATH there is none", () => {
  assert.equal(hostPath(), "");
});

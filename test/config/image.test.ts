import assert from "node:assert/strict";
import test from "node:test";
import { readLayer } from "../../src/config/config-layers.ts";
import { refusalOf } from "../fixtures/refusal.ts";

const NAMES = [
  "debian",
  "debian:bookworm",
  "harness-sandbox:33570711fdb5",
  "a/b/c:1",
  "registry.example:5000/team/my_box__x:v1.2-rc",
  "localhost:5000/x",
  `debian@sha256:${"a".repeat(64)}`,
  `debian:12@sha256:${"0".repeat(64)}`,
  `sha256:${"0".repeat(64)}`,
  "33570711fdb5",
];

for (const image of NAMES)
  test(`${image} is the name of an image`, () => {
    assert.deepEqual(
      readLayer({ image }, () => "here"),
      { image },
    );
  });

const OTHERS = [
  " ",
  "a b",
  "UPPER",
  "-x",
  "../x",
  "../../containers/json",
  "a/../b",
  "a//b",
  "/a",
  "a/",
  "http://x",
  "%2e%2e",
  "x?y=1",
  "x#y",
  "x\u001B[31m",
  "debian:",
  "debian@sha256:abc",
];

for (const image of OTHERS)
  test(`${JSON.stringify(image)} is no name of an image`, async () => {
    const [exit, message] = await refusalOf(() => readLayer({ image }, () => "here"));
    assert.equal(exit, 2);
    assert.match(message, /^here: image: expected an image's name such as debian:bookworm/);
  });

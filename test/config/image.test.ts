import assert from "node:assert/strict";
import test from "node:test";
import { readLayer } from "../../src/config/setting-rules.ts";
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
  test(`${JSON.stringify(image)} is not the name of an image`, async () => {
    const [exit, message] = await refusalOf(() => readLayer({ image }, () => "here"));
    assert.equal(exit, 2);
    assert.match(message, /^here: image: expected an image's name such as debian:bookworm/);
  });

const readRegistry = (registry: string): unknown =>
  readLayer({ kubernetes: { registry } }, () => "here").kubernetes?.registry;

for (const registry of ["registry.example/team/env", "127.0.0.1:5000/x", "localhost/x", "box:5000/a/b-c_d"])
  test(`${registry} is a repository of a registry`, () => {
    assert.equal(readRegistry(registry), registry);
  });

const NO_REPOSITORIES = [
  "registry.example",
  "team/env",
  "registry.example/team/env:1",
  `registry.example/env@sha256:${"a".repeat(64)}`,
  "https://registry.example/env",
  "me:word@registry.example/env",
  "registry.example/../env",
  "registry.example/Env",
];

for (const registry of NO_REPOSITORIES)
  test(`${registry} is not a repository of a registry`, async () => {
    const [, message] = await refusalOf(() => Promise.resolve(readRegistry(registry)));
    assert.match(message, /kubernetes\.registry.*expected a repository in a registry/);
  });

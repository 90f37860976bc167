import assert from "node:assert/strict";
import test from "node:test";
import { keptEnvironments } from "../../../src/render/lists/environment-lines.ts";

const listed = (id: string) => ({
  id,
  workspace: `/w/${id}\u001B[2J`,
  name: "",
  state: "ready",
  made: null,
  bytes: 3 * 2 ** 20,
  system_bytes: null,
});

test("an ending names the environments that stay, and what removes them", () => {
  assert.equal(
    keptEnvironments([listed("one")]),
    "1 environment stays: harness env rm --all\n  one  3.0 MiB, image -  /w/one␛[2J\n",
  );
  const many = keptEnvironments(Array.from({ length: 25 }, (_, at) => listed(`e${at}`)));
  assert.match(many, /^25 environments stay: /);
  assert.equal(many.split("\n").length, 23);
  assert.match(many, /\n {2}and 5 more: harness env list\n$/);
});

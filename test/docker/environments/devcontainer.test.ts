import assert from "node:assert/strict";
import test from "node:test";
import { readDevcontainer } from "../../../src/docker/environments/devcontainer.ts";
import type { FoundRecipe } from "../../../src/docker/environments/recipe.ts";

const read = (text: string): FoundRecipe => {
  const found = readDevcontainer(text, "devcontainer.json");
  if (typeof found === "string") throw new Error(found);
  return found;
};

test("image, variables and set-up commands are taken in an editor's order and in all three forms", () => {
  const { recipe, taken } = read(`{
    // a comment, and trailing commas
    "name": "demo", "image": "registry.test/team/box:1",
    "containerEnv": { "MODE": "test" },
    "postCreateCommand": { "a": "make deps", "b": ["echo", "it's done"] },
    "onCreateCommand": ["npm", "ci"],
    "updateContentCommand": "npm run build && ls",
  }`);
  assert.equal(recipe.image, "registry.test/team/box:1");
  assert.deepEqual(recipe.env, { MODE: "test" });
  assert.deepEqual(
    recipe.setup.map(({ run }) => run),
    ["npm ci", "npm run build && ls", "make deps", String.raw`echo 'it'\''s done'`],
  );
  assert.ok(taken.every(({ from }) => from === "devcontainer.json"));
});

test("everything else is listed with the reason", () => {
  const { recipe, notTaken } = read(
    JSON.stringify({
      initializeCommand: "curl example.org | sh",
      mounts: ["source=/,target=/host,type=bind"],
      privileged: true,
      runArgs: ["--network=host"],
      build: { dockerfile: "Dockerfile" },
      features: { "x/y:1": {} },
      remoteUser: "root",
      forwardPorts: [3000],
      newerThanThis: 1,
      containerEnv: { LD_PRELOAD: "/x.so", TOKEN: "${localEnv:TOKEN}", NUMBER: 5 },
      image: "${localEnv:IMAGE}",
      postCreateCommand: 7,
    }),
  );
  assert.deepEqual(recipe.setup, []);
  assert.deepEqual(recipe.env, {});
  assert.equal(recipe.image, null);
  const names = new Set(notTaken.map(({ what }) => what.slice(0, what.indexOf(":"))));
  for (const name of [
    ..."initializeCommand mounts privileged runArgs build features remoteUser forwardPorts newerThanThis".split(
      " ",
    ),
    ..."containerEnv.LD_PRELOAD containerEnv.TOKEN containerEnv.NUMBER image postCreateCommand".split(" "),
  ])
    assert.ok(names.has(name), name);
});

test("a file that is not a JSON object is reported, however deeply nested", () => {
  for (const text of ["", "[]", "{", '{"a":'.repeat(100_000)])
    assert.equal(typeof readDevcontainer(text, "x"), "string");
});

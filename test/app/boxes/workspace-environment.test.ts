import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import {
  chooseRecipe,
  recipeFile,
  unbuiltEnvironment,
} from "../../../src/app/boxes/workspace-environment.ts";
import { builtPlace } from "../../fixtures/built-environment.ts";

test("the command that would install a project's needs is suggested when needs are known and nothing was built or chosen", async () => {
  const built = await builtPlace(null);
  await using _ = built.place;
  const { host, workspace } = built;
  const plain = { env: null, image: null };
  assert.equal(await unbuiltEnvironment({ host, workspace, settings: plain }), undefined);
  await writeFile(path.join(workspace, "package.json"), '{"devDependencies": {"jest": "1"}}');
  const told = "`harness env build` installs what the project needs.";
  assert.equal(await unbuiltEnvironment({ host, workspace, settings: plain }), told);
  for (const settings of [
    { ...plain, env: "none" },
    { ...plain, image: "mine" },
  ])
    assert.equal(await unbuiltEnvironment({ host, workspace, settings }), undefined);
});

test("a recipe may add to what the project's files say: its commands come last, its versions count", async () => {
  const built = await builtPlace(null);
  await using _ = built.place;
  const { host, workspace } = built;
  await writeFile(path.join(workspace, "package.json"), '{"devDependencies": {"jest": "1"}}');
  await writeFile(path.join(workspace, ".nvmrc"), "20");
  const own = {
    detected: true,
    packages: ["libpq-dev"],
    toolchains: { node: "22", go: null },
    registries: ["npm", "r.example"],
    setup: [{ run: "make deps", folder: "tools" }],
    folders: ["deps"],
  };
  await writeFile(recipeFile(host, "own"), JSON.stringify(own));
  const { recipe, projects } = await chooseRecipe(host, workspace, "own");
  const { packages, toolchains, registries, setup, folders } = recipe;
  assert.deepEqual(
    { packages, toolchains, registries, folders },
    {
      packages: ["libpq-dev"],
      toolchains: { node: "22", go: null },
      registries: ["npm", "r.example"],
      folders: ["node_modules", "deps"],
    },
  );
  assert.deepEqual(setup, [
    { run: "npm install --no-package-lock --ignore-scripts", folder: "." },
    { run: "make deps", folder: "tools" },
  ]);
  assert.deepEqual(projects, ["node in .", recipeFile(host, "own")]);
  assert.equal("detected" in recipe, false);
  const folder = Array.from({ length: 60 }, (_each, at) => `f${at}`);
  await writeFile(recipeFile(host, "own"), JSON.stringify({ ...own, folders: folder }));
  await assert.rejects(chooseRecipe(host, workspace, "own"), /own\.json: folders: /);
});

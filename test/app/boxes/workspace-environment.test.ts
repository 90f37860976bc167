import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { unbuiltEnvironment } from "../../../src/app/boxes/workspace-environment.ts";
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

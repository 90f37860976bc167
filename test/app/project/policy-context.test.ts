import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { lazyJudge } from "../../../src/app/project/policy-context.ts";
import { noteBuilt } from "../../fixtures/built-environment.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { filesOf, finishRecord } from "../../../src/docker/environments/recipe.ts";

test("npx of a package installed in the workspace is judged as that program, and of anything else as an installation", async () => {
  await using place = await scratch();
  for (const name of [
    "w/node_modules/.bin/tsc",
    "w/node_modules/.bin/own",
    "w/web/src/x",
    "node_modules/.bin/jest",
  ])
    await place.write(name, "");
  await symlink("../eslint/bin.js", place.at("w/node_modules/.bin/eslint"));
  const env = { PATH: process.env["PATH"], HOME: place.at("home") };
  const judge = await lazyJudge(
    hostFrom(env),
    { mode: "workspace-write", allow_domains: [] },
    place.at("w"),
  )();
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["npx tsc --noEmit", "allow", true],
    ["npx eslint src", "allow", true],
    ["cd web && npx tsc --noEmit", "allow", true],
    ["npx tsc --outDir /etc", "ask", false],
    ["npx own --flag", "ask", true],
    // Not there, of another version, above the workspace, or by a path.
    ["npx prettier .", "ask", false],
    ["npx tsc@5 --noEmit", "ask", false],
    ["npx jest", "ask", false],
    ["npx ../x", "ask", false],
    ["npx -y tsc", "ask", false],
  ];
  for (const [command, decision, contained] of rows) {
    const judged = judge.judge({ commands: [command], reads: [], writes: [], hosts: [] });
    assert.deepEqual([judged.decision, judged.contained], [decision, contained], command);
  }
});

test("npx of a program that the environment has is judged as that program", async () => {
  await using place = await scratch();
  const [host, workspace] = [hostFrom({ HOME: place.at("home") }), place.at("w")];
  const record = await noteBuilt({ place, host, workspace }, "", null);
  const programs = [`${workspace}/node_modules/.bin/mocha`];
  const installed = { total: 0, new: 0, packages: [], programs };
  await finishRecord(filesOf(host.places.state, workspace, ""), { ...record, installed });
  const verdict = async (command: string, env: string | null): Promise<string> => {
    const judge = await lazyJudge(host, { mode: "workspace-write", allow_domains: [], env }, workspace)();
    return judge.judge({ commands: [command], reads: [], writes: [], hosts: [] }).decision;
  };
  assert.equal(await verdict("npx mocha test", null), "allow");
  assert.equal(await verdict("npx jest", null), "ask");
  assert.equal(await verdict("npx mocha test", "none"), "ask");
});

test("uv run of a program in the virtual environment of the workspace or the environment installs nothing", async () => {
  await using place = await scratch();
  const [host, workspace] = [hostFrom({ HOME: place.at("home") }), place.at("w")];
  await place.write("w/tools/.venv/bin/ruff", "");
  const record = await noteBuilt({ place, host, workspace }, "", null);
  const programs = ["pytest", "python", "serve"].map((name) => `${workspace}/.venv/bin/${name}`);
  const installed = { total: 0, new: 0, packages: [], programs };
  await finishRecord(filesOf(host.places.state, workspace, ""), { ...record, installed });
  const judge = await lazyJudge(host, { mode: "workspace-write", allow_domains: [] }, workspace)();
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["uv run pytest -q", "allow", true],
    ["uv run --frozen --group dev pytest -q", "allow", true],
    ["cd tools && uv run ruff check .", "allow", true],
    ["uv run serve --port 1", "ask", true],
    ["uv run python tool.py", "ask", true],
    ["uv run pytest --junitxml=/etc/x", "ask", false],
    // Not there, or something is installed first.
    ["uv run mypy .", "ask", false],
    ["uv run --with rich pytest", "ask", false],
    ["uv run ruff check .", "ask", false],
    ["npx pytest", "ask", false],
    ["uv run git push --force", "deny", false],
  ];
  for (const [command, decision, contained] of rows) {
    const judged = judge.judge({ commands: [command], reads: [], writes: [], hosts: [] });
    assert.deepEqual([judged.decision, judged.contained], [decision, contained], command);
  }
});

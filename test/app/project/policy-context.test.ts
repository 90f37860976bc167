import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { lazyJudge } from "../../../src/app/project/policy-context.ts";
import { noteBuilt } from "../../fixtures/built-environment.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { filesOf, finishRecord } from "../../../src/docker/environments/environment-record.ts";

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

interface Verdicts {
  readonly judged: (command: string, granted?: readonly string[]) => Promise<string>;
}

/** Verdicts in a workspace whose environment has these programs and folders. */
async function inEnvironment(
  {
    programs = [],
    folders = [],
  }: { readonly programs?: readonly string[]; readonly folders?: readonly string[] },
  work: (verdicts: Verdicts) => Promise<void>,
): Promise<void> {
  await using place = await scratch();
  const [host, workspace] = [hostFrom({ HOME: place.at("home") }), place.at("w")];
  await place.write("w/pyproject.toml", "");
  const record = await noteBuilt({ place, host, workspace }, "", null);
  const paths = programs.map((name) => `${workspace}/${name}`);
  await finishRecord(filesOf(host.places.state, workspace, ""), {
    ...record,
    recipe: { ...record.recipe, folders: [...folders] },
    installed: { total: 0, new: 0, packages: [], programs: paths },
  });
  await work({
    judged: async (command, granted = []) => {
      const judge = await lazyJudge(
        host,
        { mode: "workspace-write", allow_domains: [...granted] },
        workspace,
      )();
      const { decision, contained } = judge.judge({ commands: [command], reads: [], writes: [], hosts: [] });
      return `${decision}${contained ? ", contained" : ""}`;
    },
  });
}

test("where a registry is granted, uv run may install what the project names by now, so it asks", () =>
  inEnvironment({ programs: [".venv/bin/pytest"] }, async ({ judged }) => {
    assert.equal(await judged("uv run pytest -q"), "allow, contained");
    assert.equal(await judged("uv run pytest -q", ["pip"]), "ask, contained");
    assert.equal(await judged("uv run pytest -q", ["mirror.example"]), "ask, contained");
    assert.equal(await judged("uv run --no-sync pytest -q", ["pip"]), "allow, contained");
    assert.equal(await judged("uv run pytest --junitxml=/etc/x"), "ask");
  }));

test("tox and nox install, except if the environment has their folder or their words say otherwise", async () => {
  await inEnvironment({ programs: [".venv/bin/tox"] }, async ({ judged }) => {
    for (const command of ["tox", "tox -e py", "nox -s tests", "tox -- -l", "tox -e $(list)"])
      assert.equal(await judged(command), "ask", command);
    for (const command of ["tox list", "tox -l", "nox -R", "nox --no-venv -s tests", "nox --list"])
      assert.equal(await judged(command), "ask, contained", command);
  });
  await inEnvironment({ folders: [".tox", "tools/.nox"] }, async ({ judged }) => {
    for (const command of ["tox", "tox -e py", "tox run -e lint -- -x", "cd src && tox", "cd tools && nox"])
      assert.equal(await judged(command), "ask, contained", command);
    assert.equal(await judged("tox", ["pip"]), "ask, contained");
    assert.equal(await judged("nox"), "ask");
    assert.equal(await judged("tox --workdir /etc/x"), "ask");
  });
});

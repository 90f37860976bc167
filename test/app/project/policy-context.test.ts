import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { lazyJudge } from "../../../src/app/project/policy-context.ts";
import { scratch } from "../../fixtures/scratch.ts";

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

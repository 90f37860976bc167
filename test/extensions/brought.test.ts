import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { broughtBy, projectOf } from "../../src/extensions/brought.ts";
import { PROTECTED } from "../../src/core/file-names.ts";
import { scratch } from "../fixtures/scratch.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
const SOURCES = globSync("src/**/*.ts", { cwd: ROOT })
  .filter((file) => !file.endsWith(".generated.ts"))
  .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), "utf8") }));

const filesWith = (pattern: RegExp): readonly string[] =>
  SOURCES.filter(({ text }) => pattern.test(text)).map(({ file }) => file);

/** Files that name what a project brings and reach files, each with what it is about. */
const KNOWN: Readonly<Record<string, string>> = {
  "src/extensions/brought.ts": "the one reader",
  "src/sessions/checkpoints/entry.ts": "names that are left out of what is kept",
  "src/docker/attack/battery.ts": "a workspace of our own, made to be attacked",
  "src/boxes/workspace/box-workspace.ts": "the user's own folder, which is no workspace",
};

test("only known files read what a project brings", () => {
  const reads = /from "(?:node:fs(?:\/promises)?|[./]+platform\/safe-files\.ts)"|readConfigText/;
  const names = /["'`/]\.(?:harness|devcontainer)(?![\w-])/;
  const both = filesWith(names).filter((file) => filesWith(reads).includes(file));
  assert.deepEqual(both.toSorted(), Object.keys(KNOWN).toSorted());
});

test("settings and rules of a project are loaded in one place each, according to trust", () => {
  // The first run, and who asks which engine is meant, read what the user has set, and nothing of a project.
  const own = ["src/app/host.ts", "src/app/first-run.ts"];
  assert.deepEqual(
    filesWith(/(?<!function )\bloadConfig\(/).toSorted(),
    [...own, "src/cli/settings.ts"].toSorted(),
  );
  for (const file of own) {
    const text = readFileSync(path.join(ROOT, file), "utf8");
    assert.equal(text.match(/\bloadConfig\(/g)?.length, 1, file);
    assert.match(text, /loadConfig\(\{ env(?:: host\.env)?, project: undefined,/, file);
  }
  assert.deepEqual(filesWith(/(?<!function )\bloadRules\(/), ["src/app/project/policy-context.ts"]);
  for (const file of ["src/cli/settings.ts", "src/app/project/policy-context.ts"])
    assert.match(readFileSync(path.join(ROOT, file), "utf8"), /project = await projectText\(host/);
  assert.deepEqual(
    filesWith(/\btrusted: true\b/).filter((file) => !file.includes("session-state")),
    [],
  );
  assert.deepEqual(filesWith(/\b(?:recordTrusted|trustByHash)\(/).toSorted(), [
    "src/app/project/project-trust.ts",
    "src/cli/commands/trust.ts",
    "src/extensions/trust.ts",
  ]);
});

test("every name that is read is protected from boxes", async () => {
  const files = [
    ".harness/config.json",
    ".harness/policy.toml",
    ".harness/env.json",
    ".devcontainer/devcontainer.json",
  ];
  await using place = await scratch(Object.fromEntries(files.map((file) => [`w/${file}`, "{}"])));
  const found = await broughtBy(projectOf(place.at("w"), place.at("home")));
  assert.deepEqual(
    found.map((each) => each.usable && each.files[0].path),
    files,
  );
  const closed = new Set(PROTECTED.filter(({ where }) => where === "anywhere").map(({ name }) => name));
  for (const file of [...files, ".devcontainer.json"]) assert.ok(closed.has(file.split("/")[0] ?? ""), file);
});

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { ROOT } from "./package.ts";

const DIST = path.join(ROOT, "dist");
assert.ok(existsSync(path.join(DIST, "main.js")), "not built, so not tested: npm run build");

/** The shared files of the bundle, by their groups, that are there before a command's first line runs. */
function groupsOf(entry: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [path.join(DIST, entry)];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, next = ""] of text.matchAll(/(?:^|;)import(?:[^"'();]*from)?"(\.[^"]+)"/gm))
      open.push(path.resolve(path.dirname(file), next));
  }
  return new Set([...seen].map((file) => path.basename(file).replace(/-[\w-]{8}\.js$/, "")));
}

/** What each of these has no need of, and would wait for. */
const WITHOUT: readonly (readonly [entry: string, ...groups: readonly string[]])[] = [
  ["main.js", "start", "schemas", "lib"],
  ["commands/config/list.js", "agent", "box", "engine", "events", "models", "policy", "render", "sessions"],
  ["commands/policy/check.js", "agent", "box", "engine", "events", "models", "run", "sessions"],
  ["commands/policy/path.js", "agent", "box", "engine", "events", "models", "run", "sessions"],
  ["commands/search.js", "agent", "box", "engine", "events", "models", "policy", "render", "run", "sessions"],
  ["commands/sessions/list.js", "agent", "box", "engine", "events", "models", "policy", "run"],
  ["commands/sandbox/exec.js", "agent", "events", "models", "policy", "render", "run", "sessions"],
  ["commands/undo.js", "agent", "events", "models", "policy", "run"],
];

for (const [entry, ...groups] of WITHOUT)
  test(`${entry} loads nothing of ${groups.join(", ")}`, () => {
    const loaded = groupsOf(entry);
    assert.ok(loaded.size > 1, [...loaded].join(" "));
    assert.deepEqual(
      groups.filter((group) => loaded.has(group)),
      [],
    );
  });

test("a run loads what it needs before its first request from files that are shared", () => {
  const loaded = groupsOf("commands/run.js");
  for (const group of ["start", "schemas", "lib"]) assert.ok(loaded.has(group), [...loaded].join(" "));
});

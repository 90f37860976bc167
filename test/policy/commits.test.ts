import assert from "node:assert/strict";
import test from "node:test";
import type { GitEntry } from "../../src/core/run-record.ts";
import { commitHandoff, mergedHandoff } from "../../src/policy/handoff-paths.ts";

const entry = (path: string, more: Partial<GitEntry> = {}): GitEntry => ({
  path,
  what: "added",
  kind: "file",
  mode: 0o644,
  oldMode: 0,
  ...more,
});

const tiers = (...entries: readonly GitEntry[]): Readonly<Record<string, string>> =>
  Object.fromEntries(commitHandoff(entries, "/w").map(({ path, tier }) => [path, tier]));

test("what a commit brings into the folder is rated by what the host would do with it", () => {
  assert.deepEqual(
    tiers(
      entry("src/a.ts"),
      entry(".EnvRc"),
      entry("sub/.GIT/config"),
      entry("git~1/hooks/x"),
      entry("lib", { kind: "repository" }),
      entry("out", { kind: "link", target: "../../etc" }),
      entry("odd", { kind: "link" }),
      entry("in", { kind: "link", target: "src/a.ts" }),
      entry("Makefile"),
      entry("tool", { mode: 0o755 }),
      entry(".vscode/tasks.json", { what: "deleted" }),
    ),
    {
      ".EnvRc": "dangerous",
      "sub/.GIT/config": "dangerous",
      "git~1/hooks/x": "dangerous",
      lib: "dangerous",
      out: "dangerous",
      odd: "dangerous",
      Makefile: "look",
      tool: "look",
    },
  );
});

test("of two ratings for one path the more serious is kept", () => {
  const look = { path: "a", tier: "look", reason: "x" } as const;
  const dangerous = { path: "a", tier: "dangerous", reason: "y" } as const;
  assert.deepEqual(mergedHandoff([look], [dangerous, look]), [dangerous]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandPolicy } from "../../../src/policy/decide.ts";
import type { Effect } from "../../../src/policy/effects/effect.ts";

const WORKSPACE = "/home/dev/project";
const policy = new CommandPolicy();

/** The judgement of a command as one line: the verdict, then each effect once, with paths relative to the workspace. */
export function told(command: string, mode: "workspace-write" | "read-only" = "workspace-write"): string {
  const { decision, effects } = policy.decide(command, {
    mode,
    workspace: WORKSPACE,
    home: "/home/dev",
  });
  return [decision, ...new Set(effects.map(line))].join("; ");
}

function line(effect: Effect): string {
  switch (effect.kind) {
    case "read":
    case "write":
    case "device":
      return `${effect.kind} ${shown(effect.path)}`;
    case "delete":
      return `delete${effect.forced ? " -f" : ""}${effect.recursive ? " -r" : ""} ${shown(effect.path)}`;
    case "permissions":
      return `permissions${effect.recursive ? " -r" : ""} ${shown(effect.path)}`;
    case "code":
      return `code ${effect.from}`;
    case "unknown":
      return `${effect.doubt} ${effect.what.replaceAll("\uFFFC", "?")}`;
    case "network":
      return ["network", ...effect.hosts].join(" ");
    case "repository":
      return `repository ${effect.change}`;
    case "bomb":
      return "bomb";
    default:
      return effect.kind;
  }
}

const shown = (path: string | null): string => {
  if (path === null) return "?";
  if (path === WORKSPACE) return ".";
  return path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length + 1) : path;
};

/** One test for each row. */
export function tells(rows: Readonly<Record<string, string>>): void {
  for (const [command, expected] of Object.entries(rows))
    test(command, () => assert.equal(told(command), expected));
}

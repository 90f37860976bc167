import { CommandPolicy } from "../../../src/policy/decide.ts";
import type { Effect } from "../../../src/policy/effects/effect.ts";

const policy = new CommandPolicy();
const PROJECT = "/home/dev/project";

/** The verdict of a command in a project, and what it does, one short text an effect. */
export function told(command: string, mode: "workspace-write" | "read-only" = "workspace-write"): string {
  const { decision, effects } = policy.decide(command, { mode, workspace: PROJECT, home: "/home/dev" });
  return [decision, ...effects.map(short)].join("; ");
}

const named = (path: string | null): string =>
  path === null ? "?" : path.replace(PROJECT, ".").replace("/home/dev", "~");

function short(effect: Effect): string {
  switch (effect.kind) {
    case "delete":
      return `delete${effect.recursive ? " all" : ""}${effect.forced ? " forced" : ""} ${named(effect.path)}`;
    case "read":
    case "write":
    case "permissions":
    case "device":
      return `${effect.kind} ${named(effect.path)}`;
    case "code":
      return `${effect.from} ${named(effect.path)}`;
    case "network":
      return ["network", ...effect.hosts].join(" ");
    case "repository":
      return `${effect.change} ${effect.what}`;
    case "unknown":
      return `${effect.doubt} ${effect.what}`;
    case "bomb":
      return "bomb";
    default:
      return `${effect.kind} ${effect.what}`;
  }
}

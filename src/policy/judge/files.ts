import type { Effect, Place } from "../effects/effect.ts";
import { isBroad } from "./broad.ts";
import type { Rule } from "./effects.ts";
import { ASKED, CONTAINED, DENIED, HARMLESS } from "./ruling.ts";

export type PathEffect = Extract<
  Effect,
  { readonly kind: "read" | "write" | "delete" | "permissions" | "device" }
>;

/** What is known of paths; all of them absolute and normalised. */
export interface Places {
  readonly workspace: string;
  readonly home: string;
  /** A folder or file whose code counts as the project's own. */
  isProject(path: Place): boolean;
  facts(path: string, op: "read" | "write"): PathFacts;
}

export interface PathFacts {
  readonly kind: "workspace" | "temp" | "system" | "outside" | "sink" | "device";
  /** Why the file is likely to hold a secret. */
  readonly secret: string | null;
  /** What on the host obeys it. */
  readonly trap: string | null;
  readonly ignored: boolean;
}

export function pathRuling(effect: PathEffect, places: Places): Rule {
  const { path, by } = effect;
  if (effect.kind === "device") return { id: "device", reason: `${by} writes to a device`, ...DENIED };
  if (path === null) return unknownPath(effect);
  if (effect.kind === "read") return readRuling(path, by, places);
  const broad =
    (effect.kind === "delete" || effect.kind === "permissions") && effect.recursive && isBroad(path, places);
  if (broad && effect.kind === "delete")
    return { id: "delete.broad", reason: `${by} deletes everything in ${shown(path, places)}`, ...DENIED };
  if (broad)
    return {
      id: "permissions.broad",
      reason: `${by} changes the rights of everything in ${shown(path, places)}`,
      ...DENIED,
    };
  return changeRuling(effect, path, places);
}

const unknownPath = ({ kind, by }: PathEffect): Rule =>
  kind === "read"
    ? { id: "read.unknown", reason: `only the shell will know what ${by} reads`, ...CONTAINED }
    : { id: `${kind}.unknown`, reason: `only the shell will know what ${by} changes`, ...ASKED };

function readRuling(path: string, by: string, places: Places): Rule {
  const { kind, secret, ignored } = places.facts(path, "read");
  const what = shown(path, places);
  if (ignored)
    return { id: "read.ignored", reason: `.harnessignore keeps ${what} from being read`, ...DENIED };
  if (secret !== null)
    return { id: "read.secret", reason: `${what} is likely to hold a secret: ${secret}`, ...CONTAINED };
  if (kind === "device") return { id: "read.device", reason: `${what} is a device`, ...ASKED };
  if (kind === "outside")
    return { id: "read.outside", reason: `${what} lies outside the workspace`, ...CONTAINED };
  return { id: `read.${kind}`, reason: `${by} reads ${what}`, ...HARMLESS };
}

function changeRuling({ kind, by }: PathEffect, path: string, places: Places): Rule {
  const facts = places.facts(path, "write");
  const what = shown(path, places);
  if (facts.trap !== null)
    return { id: "write.trap", reason: `the host obeys ${what}: ${facts.trap}`, ...DENIED };
  switch (facts.kind) {
    case "sink":
      return { id: "write.sink", reason: `${what} keeps nothing`, ...HARMLESS };
    case "device":
      return { id: "device", reason: `${what} is a device`, ...DENIED };
    case "workspace":
    case "temp":
      return { id: `${kind}.${facts.kind}`, reason: `${by} ${VERBS[kind]} ${what}`, ...CONTAINED };
    case "system":
    case "outside":
      return {
        id: `${kind}.outside`,
        reason: `${by} ${VERBS[kind]} ${what}, outside the workspace`,
        ...ASKED,
      };
  }
}

const VERBS = {
  read: "reads",
  write: "writes",
  delete: "deletes",
  permissions: "changes the rights of",
  device: "writes",
} as const;

/** As people would write it. */
function shown(path: string, { workspace, home }: Places): string {
  if (path === workspace) return "the workspace";
  if (path.startsWith(`${workspace}/`)) return path.slice(workspace.length + 1);
  if (path === home) return "the home folder";
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

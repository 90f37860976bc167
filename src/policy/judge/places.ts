import type { Place } from "../effects/effect.ts";
import type { IgnoreRules } from "../paths/ignore.ts";
import { isInside } from "../paths/normal.ts";
import { placeOfPattern } from "../paths/pattern.ts";
import { type Op, type PlaceKind, placeOf } from "../paths/place.ts";
import type { PathFacts, Places } from "./files.ts";

interface Context {
  readonly workspace: string;
  readonly home: string;
  readonly ignore?: IgnoreRules;
}

const KINDS: Readonly<Record<PlaceKind, PathFacts["kind"]>> = {
  workspace: "workspace",
  temp: "temp",
  system: "system",
  home: "outside",
  outside: "outside",
  proc: "outside",
  unknown: "outside",
  "null-device": "sink",
  device: "device",
};

/** Code that others wrote, and what git keeps. */
const FOREIGN = /\/(?:node_modules|\.git|vendor|site-packages)(?:\/|$)/i;

export function placesFor(context: Context): Places {
  const { workspace, home } = context;
  const isProject = (path: Place): boolean =>
    path !== null && isInside(workspace, path) && !FOREIGN.test(path.slice(workspace.length));
  return { workspace, home, isProject, facts: (path, op) => factsOf(path, op, context) };
}

const PATTERN = /[*?[]/;

function factsOf(path: string, op: Op, context: Context): PathFacts {
  const place = PATTERN.test(path) ? placeOfPattern(path, op, context) : placeOf(path, op, context);
  return {
    kind: isPipe(path) ? "sink" : KINDS[place.kind],
    secret: place.secret,
    trap: place.protected ?? place.trap,
    ignored: place.ignored,
  };
}

/** What `<( )` gives a program to read. */
const isPipe = (path: string): boolean => path === "/dev/fd/63";

import type { Place } from "../effects/effect.ts";
import type { IgnoreRules } from "../paths/ignore.ts";
import { isInside } from "../paths/normal.ts";
import { type Op, type PlaceKind, placeOf } from "../paths/place.ts";
import type { PathFacts, Places } from "./files.ts";
import { isPattern, samplesOf } from "./patterns.ts";

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

/** Of a pattern the worst that it can name. */
function factsOf(path: string, op: Op, context: Context): PathFacts {
  if (!isPattern(path)) return plainFacts(path, op, context);
  const all = samplesOf(path).map((sample) => plainFacts(sample, op, context));
  const [first = plainFacts(path, op, context)] = all;
  return {
    kind: first.kind,
    secret: all.find(({ secret }) => secret !== null)?.secret ?? null,
    trap: all.find(({ trap }) => trap !== null)?.trap ?? null,
    ignored: all.some(({ ignored }) => ignored),
  };
}

function plainFacts(path: string, op: Op, context: Context): PathFacts {
  const place = placeOf(path, op, context);
  return {
    kind: KINDS[place.kind],
    secret: place.secret,
    trap: place.protected ?? place.trap,
    ignored: place.ignored,
  };
}

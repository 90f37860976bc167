import { DOUBTS } from "../judge/doubts.ts";
import { CHANGE_KINDS, type Effect } from "../effects/effect.ts";

type Kind = Effect["kind"];
type CodeFrom = Extract<Effect, { readonly kind: "code" }>["from"];

const KINDS: Readonly<Record<Kind, true>> = {
  read: true,
  write: true,
  delete: true,
  permissions: true,
  code: true,
  network: true,
  install: true,
  repository: true,
  process: true,
  system: true,
  privilege: true,
  device: true,
  bomb: true,
  unknown: true,
};

const CODE = [
  "settings",
  "check",
  "project",
  "inline",
  "input",
  "fetched",
] as const satisfies readonly CodeFrom[];

/** What a rule may name: a kind, `code.…`, `repository.…`, or the id of a doubt. */
export const EFFECT_NAMES: readonly string[] = [
  ...Object.keys(KINDS),
  ...CODE.map((from) => `code.${from}`),
  ...CHANGE_KINDS.map((change) => `repository.${change}`),
  ...DOUBTS,
];

export function isCalled(effect: Effect, name: string): boolean {
  if (effect.kind === name) return true;
  if (effect.kind === "unknown") return effect.doubt === name;
  if (effect.kind === "code") return name === `code.${effect.from}`;
  return effect.kind === "repository" && name === `repository.${effect.change}`;
}

/** Effects that have a path for a rule to name. */
export const PATH_EFFECTS: ReadonlySet<string> = new Set(
  "read write delete permissions device code code.settings code.check code.project".split(" "),
);

/** What no rule allows: denied anyway, or nobody can say what it is that would be allowed. */
export const isNeverAllowed = (name: string): boolean =>
  /^(?:system|privilege|device|bomb|unknown|code\.(?:input|fetched)|(?:word|shell|env)\..*)$/.test(name);

export function pathOf(effect: Effect): string | null {
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
    case "device":
    case "code":
      return effect.path;
    default:
      return null;
  }
}

/** A tree goes with all that lies in it. */
export const isWhole = (effect: Effect): boolean =>
  (effect.kind === "delete" || effect.kind === "permissions") && effect.recursive;

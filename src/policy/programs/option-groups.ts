import type { Fixed, Model, OptionSpec, OptionTable, Role } from "./program-model.ts";

/** Effects of a program or an option: word of the rows → effect. */
export const EFFECT_WORDS = {
  network: "network",
  installs: "install",
  "obeys settings": "settings",
  "runs checks": "check",
  "runs the project": "project",
  "runs its input": "input",
  processes: "process",
  privilege: "privilege",
  "changes the system": "system",
  asks: "ask",
  records: "record",
  "changes the repository": "local",
  "loses changes": "lost",
  "rewrites history": "rewritten",
  "changes a remote": "remote",
  "forces a remote": "forced",
} as const satisfies Readonly<Record<string, Fixed>>;
export type EffectWord = keyof typeof EFFECT_WORDS;

/** Groups of options with a value, by the role of the value. */
const VALUE_GROUPS = {
  values: "data",
  patterns: "pattern",
  reads: "read",
  writes: "target",
  "writes or prints": "write",
  "writes into": "target",
  deletes: "tree",
  "works in": "in",
  hosts: "host",
  checks: "check",
  loads: "loads",
  "runs files": "project",
  "shell texts": "shell",
  "code texts": "code",
} as const satisfies Readonly<Record<string, Role>>;

/** Groups of options that change the role of the arguments. */
const TURNS = {
  "turns arguments into reads": "read",
  "turns arguments into writes": "write",
  "turns arguments into deletes": "delete",
} as const satisfies Readonly<Record<string, Role>>;

type Meaning = Omit<OptionSpec, "name">;
const OPTIONAL = "optional ";
const MANNERS = { ", value": "value", ", optional value": "maybe" } as const;

const known = <Value>(table: Readonly<Record<string, Value>>, word: string): Value | null =>
  Object.hasOwn(table, word) ? (table[word] as Value) : null;

/**
 * The meaning of a group of options; null for an unknown group. `plain`: flags without effects. `reads`, `values` …: options
 * with a value. `optional reads`: a value may be attached. `reads and asks`: with a further effect.
 * `network`, `asks` …: flags with this effect; `network, value` and `network, optional value`: the value is data.
 */
export function groupMeaning(group: string): Meaning | null {
  const none = { role: "data", turns: null, fixed: null } as const;
  if (group === "plain") return { takes: "nothing", ...none };
  const comma = group.indexOf(",");
  const head = comma === -1 ? group : group.slice(0, comma);
  const takes = comma === -1 ? "nothing" : known(MANNERS, group.slice(comma));
  const turns = known<Role>(TURNS, head);
  const fixed = known<Fixed>(EFFECT_WORDS, head);
  if (turns !== null || fixed !== null) return takes === null ? null : { takes, role: "data", turns, fixed };
  const optional = group.startsWith(OPTIONAL);
  const [value = "", beside, ...more] = (optional ? group.slice(OPTIONAL.length) : group).split(" and ");
  const role = known<Role>(VALUE_GROUPS, value);
  const effect = beside === undefined ? null : known<Fixed>(EFFECT_WORDS, beside);
  if (role === null || more.length > 0 || (beside !== undefined && effect === null)) return null;
  return { takes: optional ? "maybe" : "value", role, turns: null, fixed: effect };
}

const TAME: ReadonlySet<Role> = new Set<Role>(["data", "pattern", "read"]);

const readsOnly = ({ role, turns, fixed }: OptionSpec): boolean =>
  TAME.has(role) && (turns === null || TAME.has(turns)) && fixed === null;

/** The options of a row by name. Throws for an unknown group and for an option that stands twice: mistakes of the row. */
export function optionTable({ options = {}, numbers = false, complete = false }: Model): OptionTable {
  const named = new Map<string, OptionSpec>();
  let tame: boolean = complete;
  for (const group of Object.keys(options)) {
    const meaning = groupMeaning(group);
    if (meaning === null) throw new Error(`no group of options: ${group}`);
    for (const name of (options[group] as string).split(" ")) {
      if (named.has(name)) throw new Error(`the option ${name} stands twice`);
      const spec = { name, ...meaning };
      named.set(name, spec);
      tame &&= readsOnly(spec);
    }
  }
  return { named, numbers, tame };
}

/** Options: the words of a command split into options and operands, and the groups in which rows list options. */
import type { Doubt } from "../effects/effect.ts";
import {
  type Arg,
  type Fixed,
  type UsedOption,
  type Model,
  type OptionSpec,
  type OptionTable,
  type Role,
  UNKNOWN,
} from "./program-model.ts";

interface Misread {
  readonly doubt: Doubt;
  readonly arg: Arg;
  readonly what: string;
}

interface ReadOption extends UsedOption {
  readonly spec: OptionSpec;
}

export interface ArgumentReading {
  readonly options: readonly ReadOption[];
  readonly operands: readonly Arg[];
  readonly misread: readonly Misread[];
}

export interface Manner {
  readonly strict: boolean;
  readonly singleDash: boolean;
  readonly abbreviates: boolean;
}

/** If the pattern in `--include=*.ts` matches files, each word that the shell makes of it is the option again. */
const NAMED = /^--[a-z][a-z-]*=/;

/**
 * Splits options and operands as getopt does. Linear; every argument ends as an option, a value, an operand or
 * misread.
 */
export function readArguments(args: readonly Arg[], table: OptionTable, manner: Manner): ArgumentReading {
  return new ArgumentReader(args, table, manner).read();
}

class ArgumentReader {
  readonly #options: ReadOption[] = [];
  readonly #operands: Arg[] = [];
  readonly #misread: Misread[] = [];
  #at = 0;
  readonly #args: readonly Arg[];
  readonly #table: OptionTable;
  readonly #manner: Manner;

  constructor(args: readonly Arg[], table: OptionTable, manner: Manner) {
    this.#args = args;
    this.#table = table;
    this.#manner = manner;
  }

  read(): ArgumentReading {
    while (this.#at < this.#args.length) {
      const arg = this.#args[this.#at++] as Arg;
      if (arg.value === "--" && arg.kind === "literal") {
        const spec = this.#table.named.get("--");
        if (spec !== undefined) this.#give(spec, arg, null);
        this.#operands.push(...this.#args.slice(this.#at));
        break;
      }
      if (arg.value.startsWith("-") && arg.value.length > 1) this.#option(arg);
      else {
        this.#operand(arg);
        if (this.#manner.strict) {
          this.#operands.push(...this.#args.slice(this.#at));
          break;
        }
      }
    }
    return { options: this.#options, operands: this.#operands, misread: this.#misread };
  }

  #operand(arg: Arg): void {
    this.#operands.push(arg);
    if (arg.kind === "literal") return;
    if (this.#table.tame) return this.#doubtBareGlob(arg);
    const open = arg.value.charAt(0);
    if (arg.kind === "dynamic" && (open === UNKNOWN || arg.loose === true)) this.#doubt("word.dynamic", arg);
    else if (arg.kind === "glob" && (open === "*" || open === "?" || open === "["))
      this.#doubt("word.leading-glob", arg);
  }

  /** `*` alone matches files of any name, also one like an option; `*.ts` only the intended ones. */
  #doubtBareGlob(arg: Arg): void {
    if (arg.kind === "glob" && /^[*?]+$/.test(arg.value)) this.#doubt("word.bare-glob", arg);
  }

  #option(arg: Arg): void {
    const { value } = arg;
    if (arg.kind === "glob" && !(this.#table.tame && NAMED.test(value)))
      return this.#doubt("word.leading-glob", arg);
    const equals = value.indexOf("=");
    const name = equals === -1 ? value : value.slice(0, equals);
    if (name.includes(UNKNOWN)) return this.#doubt("word.dynamic", arg);
    if (value.startsWith("--") || this.#manner.singleDash) {
      const spec = this.#find(name);
      if (spec !== undefined) return this.#long(spec, arg, equals === -1 ? null : value.slice(equals + 1));
      if (value.startsWith("--") || value.length > 2) return this.#doubt("option.unknown", arg, name);
    }
    this.#bundle(arg);
  }

  #find(name: string): OptionSpec | undefined {
    const { named } = this.#table;
    const exact = named.get(name);
    if (exact !== undefined) return exact;
    if (this.#manner.singleDash) return named.get(name.startsWith("--") ? name.slice(1) : `-${name}`);
    if (!this.#manner.abbreviates) return undefined;
    const fits = [...named.values()].filter((spec) => spec.name.startsWith(name));
    return fits.length === 1 ? fits[0] : undefined;
  }

  #long(spec: OptionSpec, arg: Arg, attached: string | null): void {
    if (attached === null)
      return spec.takes === "value" ? this.#valued(spec, arg) : this.#give(spec, arg, null);
    if (spec.takes === "nothing") return this.#doubt("option.unknown", arg, `${spec.name} with a value`);
    this.#give(spec, arg, { ...arg, value: attached });
  }

  /** `-abc`, `-n5`, `-ofile`, `-20`. */
  #bundle(arg: Arg): void {
    const { value } = arg;
    if (this.#table.numbers && /^-\d+$/.test(value)) return;
    for (let at = 1; at < value.length; at += 1) {
      const spec = this.#table.named.get(`-${value.charAt(at)}`);
      if (spec === undefined) return this.#doubt("option.unknown", arg, `-${value.charAt(at)}`);
      if (spec.takes === "nothing") {
        this.#give(spec, arg, null);
        continue;
      }
      const rest = value.slice(at + 1);
      if (rest !== "") return this.#give(spec, arg, { ...arg, value: rest });
      return spec.takes === "value" ? this.#valued(spec, arg) : this.#give(spec, arg, null);
    }
  }

  #valued(spec: OptionSpec, arg: Arg): void {
    const value = this.#args[this.#at];
    if (value === undefined) return this.#doubt("option.unknown", arg, `${spec.name} without a value`);
    this.#at += 1;
    // A pattern may expand to several words; only the first one is the option's value.
    if (value.kind === "glob") this.#doubt("word.leading-glob", value);
    this.#give(spec, arg, value);
  }

  #give(spec: OptionSpec, arg: Arg, value: Arg | null): void {
    // An unquoted value may become several words, and one of them could be an option.
    if (value?.loose === true && !this.#table.tame) this.#doubt("word.dynamic", value);
    this.#options.push({ name: spec.name, value, span: arg.span, spec });
  }

  #doubt(doubt: Doubt, arg: Arg, what: string = arg.value): void {
    this.#misread.push({ doubt, arg, what });
  }
}

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

const lookUp = <Value>(table: Readonly<Record<string, Value>>, word: string): Value | null =>
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
  const takes = comma === -1 ? "nothing" : lookUp(MANNERS, group.slice(comma));
  const turns = lookUp<Role>(TURNS, head);
  const fixed = lookUp<Fixed>(EFFECT_WORDS, head);
  if (turns !== null || fixed !== null) return takes === null ? null : { takes, role: "data", turns, fixed };
  const optional = group.startsWith(OPTIONAL);
  const [value = "", beside, ...more] = (optional ? group.slice(OPTIONAL.length) : group).split(" and ");
  const role = lookUp<Role>(VALUE_GROUPS, value);
  const effect = beside === undefined ? null : lookUp<Fixed>(EFFECT_WORDS, beside);
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

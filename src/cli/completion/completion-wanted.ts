import { type Candidate, word } from "../../core/wording.ts";
import type { TypedLine } from "./completion-line.ts";

/** The parts of the command manifest that completion and the manual need. */
export interface KnownFlag {
  readonly type: "boolean" | "option";
  readonly description?: string;
  readonly char?: string;
  readonly options?: readonly string[];
  readonly helpValue?: string;
  readonly helpGroup?: string;
  readonly multiple?: boolean;
  readonly exclusive?: readonly string[];
  readonly hidden?: boolean;
}

interface KnownArg {
  readonly description?: string;
  readonly required?: boolean;
  readonly options?: readonly string[];
}

export interface KnownCommand {
  readonly summary?: string;
  readonly description?: string;
  readonly usage?: string;
  readonly hidden?: boolean;
  readonly strict?: boolean;
  readonly args: Readonly<Record<string, KnownArg>>;
  readonly flags: Readonly<Record<string, KnownFlag>>;
  readonly examples?: readonly string[];
}

export interface Catalogue {
  /** Keyed by id: words separated by colons. */
  readonly commands: Readonly<Record<string, KnownCommand>>;
  readonly topics: Readonly<Record<string, { readonly description: string }>>;
}

/**
 * Values that are looked up where they are kept, or left to the shell (files, folders), or that only the person knows.
 */
export type ValueKind =
  | "sessions"
  | "notes"
  | "models"
  | "settings"
  | "setting-values"
  | "servers"
  | "grants"
  | "variables"
  | "files"
  | "folders"
  | "free";

export interface CompletionRequest {
  readonly kind: ValueKind | "words";
  /** For `words`, all candidates; otherwise the looked-up values are added to them. */
  readonly words: readonly Candidate[];
  /** Precedes each value: `--model=`. */
  readonly head: string;
  /** The words given to the command so far, without flags. */
  readonly given: readonly string[];
}

/** Keyed by flag name, for flags whose form (DIR, FILE) does not determine the kind. */
const FLAG_VALUES: Readonly<Record<string, ValueKind>> = {
  model: "models",
  resume: "sessions",
  "allow-domain": "grants",
  secret: "variables",
};

const FORM_VALUES: Readonly<Record<string, ValueKind>> = { DIR: "folders", FILE: "files", PATH: "files" };

/** Keyed by argument name; if a name is ambiguous, by the command's id and the name. */
const ARG_VALUES: Readonly<Record<string, ValueKind>> = {
  id: "sessions",
  note: "notes",
  "sandbox:rm id": "free",
  key: "settings",
  value: "setting-values",
  model: "models",
  file: "files",
  path: "files",
  dir: "folders",
  suite: "folders",
  tasks: "files",
  repo: "files",
  other: "files",
  "env:rm name": "folders",
  "mcp:add name": "free",
  name: "servers",
};

export const flagKind = (name: string, flag: KnownFlag): ValueKind =>
  FLAG_VALUES[name] ?? FORM_VALUES[flag.helpValue ?? ""] ?? "free";

export const argKind = (id: string, name: string): ValueKind =>
  ARG_VALUES[`${id} ${name}`] ?? ARG_VALUES[name] ?? "free";

/** What fits at the cursor. */
export function completionAt({ before, current }: TypedLine, catalogue: Catalogue): CompletionRequest {
  const [first, second = current] = before;
  if (first === "sessions" && second.startsWith("-"))
    return ofCommand("sessions:list", before.slice(1), current, catalogue);
  const chat = first === undefined ? current.startsWith("-") : first.startsWith("-");
  if (chat) return ofCommand("chat", before, current, catalogue);
  const ids = Object.keys(catalogue.commands);
  const path = before.findLastIndex((_, at) => ids.includes(before.slice(0, at + 1).join(":")));
  const typed = before.join(":");
  const children = nextWords(typed, catalogue);
  if (children.length > 0 && path !== before.length - 1) return words(children);
  if (path === -1) return before.length === 0 ? words(children) : words([]);
  const id = before.slice(0, path + 1).join(":");
  return ofCommand(id, before.slice(path + 1), current, catalogue);
}

const words = (found: readonly Candidate[]): CompletionRequest => ({
  kind: "words",
  words: found,
  head: "",
  given: [],
});

/** The words that may follow those of a topic, or start a line. */
function nextWords(typed: string, { commands, topics }: Catalogue): readonly Candidate[] {
  const below = typed === "" ? "" : `${typed}:`;
  const found = new Map<string, string>();
  for (const [id, { hidden, summary }] of Object.entries(commands)) {
    if (hidden === true || !id.startsWith(below)) continue;
    const [next = "", more] = id.slice(below.length).split(":");
    found.set(next, more === undefined ? (summary ?? "") : (topics[below + next]?.description ?? ""));
  }
  return [...found]
    .map(([value, about]) => word(value, about))
    .toSorted((a, b) => (a.value < b.value ? -1 : 1));
}

function ofCommand(
  id: string,
  rest: readonly string[],
  current: string,
  { commands }: Catalogue,
): CompletionRequest {
  const command = commands[id];
  if (command === undefined) return words([]);
  const seen = readSoFar(rest, command);
  if (seen.dashes) return { ...words([]), kind: "files" };
  const { given } = seen;
  if (seen.open !== undefined) return valuesOf(...seen.open, "", given);
  const head = /^--[^=]+=/.exec(current)?.[0];
  if (head === undefined)
    return current.startsWith("-") ? words(flagWords(command, seen.flags)) : argument(id, command, given);
  const name = head.slice(2, -1);
  const flag = command.flags[name];
  return flag?.type === "option" ? valuesOf(name, flag, head, given) : words([]);
}

function argument(id: string, command: KnownCommand, given: readonly string[]): CompletionRequest {
  const names = Object.keys(command.args);
  const name = names[given.length] ?? (command.strict === false ? names.at(-1) : undefined);
  if (name === undefined) return words([]);
  const options = command.args[name]?.options;
  if (options !== undefined) return words(options.map((each) => word(each)));
  return { kind: argKind(id, name), words: [], head: "", given };
}

function valuesOf(name: string, flag: KnownFlag, head: string, given: readonly string[]): CompletionRequest {
  if (flag.options !== undefined)
    return { kind: "words", words: flag.options.map((each) => word(each)), head, given };
  return { kind: flagKind(name, flag), words: [], head, given };
}

interface SoFar {
  readonly flags: ReadonlySet<string>;
  readonly given: readonly string[];
  /** The flag whose value comes next. */
  readonly open: readonly [string, KnownFlag] | undefined;
  /** From here on, the words belong to another command. */
  readonly dashes: boolean;
}

function readSoFar(rest: readonly string[], command: KnownCommand): SoFar {
  const flags = new Set<string>();
  const given: string[] = [];
  let open: readonly [string, KnownFlag] | undefined;
  for (const each of rest) {
    if (open !== undefined) open = undefined;
    else if (each === "--") return { flags, given, open, dashes: true };
    else if (each.startsWith("-") && each !== "-") {
      const name = flagNamed(each, command);
      if (name === undefined) continue;
      flags.add(name);
      const flag = command.flags[name];
      if (flag?.type === "option" && !each.includes("=")) open = [name, flag];
    } else given.push(each);
  }
  return { flags, given, open, dashes: false };
}

function flagNamed(typed: string, { flags }: KnownCommand): string | undefined {
  const [, long] = /^--([^=]+)/.exec(typed) ?? [];
  if (long !== undefined) return Object.hasOwn(flags, long) ? long : undefined;
  return Object.keys(flags).find((name) => flags[name]?.char === typed[1]);
}

/** Flags that can still be given; a flag that excludes a given one is not offered. */
function flagWords({ flags }: KnownCommand, said: ReadonlySet<string>): readonly Candidate[] {
  const left = Object.entries(flags).filter(
    ([name, { multiple, exclusive = [], hidden }]) =>
      hidden !== true &&
      (multiple === true || !said.has(name)) &&
      !exclusive.some((other) => said.has(other)),
  );
  return [
    ...left.map(([name, { description }]) => word(`--${name}`, description)),
    word("--help", "show the help, with examples"),
  ];
}

import { readFileSync } from "node:fs";
import path from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { hostFrom, packageRoot } from "../app/host.ts";
import { type CompletionCandidate, candidateLine, candidate } from "../core/wording.ts";
import { PRESETS } from "../core/network.ts";
import { stdout } from "../render/tty/output.ts";

/**
 * Answers the scripts of `harness completion`: takes the line up to the cursor, and the characters at which the shell
 * breaks words. Prints a line for the kind (words, files, folders), then one for each word. Loads no command, and never
 * shows a failure.
 */
export async function answerCompletion([line = "", breaks = ""]: readonly string[]): Promise<void> {
  try {
    stdout.write(`${(await completionLines(line, breaks)).join("\n")}\n`);
  } catch {
    // A person who pressed tab wants words, not an error.
    process.exitCode = 1;
  }
}

async function completionLines(line: string, breaks: string): Promise<readonly string[]> {
  const typed = typedLine(line);
  const catalogue = readCatalogue();
  const wanted = completionAt(typed, catalogue);
  if (wanted.kind === "files" || wanted.kind === "folders") return [wanted.kind];
  const found = await candidates(wanted, catalogue);
  const kept = keptLength(typed, breaks);
  const fitting = found
    .map(({ value, about }) => candidate(wanted.head + value, about))
    .filter(({ value }) => value.startsWith(typed.current));
  // A candidate with unsafe characters is dropped before it is cut, because a part of it might look harmless.
  const lines = fitting.flatMap((each) => {
    const text = candidateLine(each);
    return text === undefined ? [] : [text.slice(kept)];
  });
  return ["words", ...lines];
}

/** A build without a manifest has no words to offer. */
function readCatalogue(): CommandCatalogue {
  const text = readFileSync(path.join(packageRoot, "oclif.manifest.json"), "utf8");
  const { commands } = JSON.parse(text) as Pick<CommandCatalogue, "commands">;
  return { commands, topics: manifest.oclif.topics };
}

type Source = (
  wanted: CompletionRequest,
  catalogue: CommandCatalogue,
) => Promise<readonly CompletionCandidate[]>;

const noCandidates: Source = () => Promise.resolve([]);

const SOURCES: Readonly<Record<ValueKind | "words", Source>> = {
  words: ({ words }) => Promise.resolve(words),
  files: noCandidates,
  folders: noCandidates,
  free: noCandidates,
  grants: () => Promise.resolve(PRESETS.map((preset) => candidate(preset, "the hosts of its registry"))),
  /** Names only: a value never leaves the environment. */
  variables: () => Promise.resolve(Object.keys(process.env).map((name) => candidate(`${name}@`))),
  sessions: async () => (await import("../app/known-values.ts")).sessionWords(host(), process.cwd()),
  notes: async () => (await import("../app/known-values.ts")).noteWords(host(), process.cwd()),
  models: async () => (await import("../app/known-values.ts")).modelWords(host(), process.cwd()),
  servers: async () => (await import("../app/known-values.ts")).serverWords(host()),
  settings: async () => {
    const { SEARCH_PATHS, SETTING_KEYS } = await import("../config/settings-schema.ts");
    const keys = SETTING_KEYS.flatMap((key) => (key === "search" ? SEARCH_PATHS : [key]));
    return keys.map((key) => candidate(key));
  },
  "setting-values": settingValues,
};

const candidates: Source = (wanted, catalogue) => SOURCES[wanted.kind](wanted, catalogue);

const host = (): ReturnType<typeof hostFrom> => hostFrom(process.env);

/** For `config set KEY`: the values that a flag of the same setting takes, true and false, or the known models. */
async function settingValues(
  { args }: CompletionRequest,
  { commands }: CommandCatalogue,
): Promise<readonly CompletionCandidate[]> {
  const [key = ""] = args;
  if (key.endsWith("_model")) return SOURCES.models(NOTHING, { commands, topics: {} });
  const { DEFAULTS } = await import("../config/settings-schema.ts");
  const { STORES } = await import("../config/setting-words.ts");
  if (key === "search.store") return STORES.map((store) => candidate(store));
  if (typeof DEFAULTS[key as keyof typeof DEFAULTS] === "boolean")
    return [candidate("true"), candidate("false")];
  const options = commands["run"]?.flags[key.replaceAll("_", "-")]?.options ?? [];
  return options.map((option) => candidate(option));
}

const NOTHING: CompletionRequest = { kind: "models", words: [], head: "", args: [] };

/** A command line up to the cursor, as a shell reads it; open quotes end with the line. */
interface TypedLine {
  /** The words before the one that is being typed, without the program's name. */
  readonly before: readonly string[];
  readonly current: string;
  /** The current word as it was typed, with its quotes and backslashes. */
  readonly raw: string;
}

const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/**
 * A piece of a word: in single quotes, in double quotes, a letter after a backslash, or plain; or blanks between words.
 */
const PIECE =
  /(?<blanks>\s+)|'(?<single>[^']*)'?|"(?<double>(?:\\.|[^"\\])*)(?:"|\\?$)|\\(?<escaped>.?)|(?<plain>[^\s'"\\]+)/gsy;

/** Expands nothing: a variable or a substitution stays text. */
export function typedLine(line: string): TypedLine {
  const words = [{ text: "", raw: "" }];
  for (const { 0: raw, groups = {} } of line.matchAll(PIECE)) {
    const last = words.at(-1);
    if (groups["blanks"] !== undefined || last === undefined) words.push({ text: "", raw: "" });
    else {
      last.text += textOf(groups);
      last.raw += raw;
    }
  }
  const typed = words.slice(0, -1).filter(({ raw }) => raw !== "");
  const program = typed.findIndex(({ text }) => !ASSIGNMENT.test(text));
  const { text = "", raw = "" } = words.at(-1) ?? {};
  return {
    before: program === -1 ? [] : typed.slice(program + 1).map((each) => each.text),
    current: text,
    raw,
  };
}

const textOf = (groups: Readonly<Record<string, string | undefined>>): string =>
  groups["double"]?.replaceAll(/\\(["\\$`])/g, "$1") ??
  groups["single"] ??
  groups["escaped"] ??
  groups["plain"] ??
  "";

/**
 * How much of the current word the shell keeps, since it also breaks words at these characters (bash: `=` and `:`).
 * Within open quotes it does not break words, and replaces what is in the quotes.
 */
export function keptLength({ current, raw }: TypedLine, breaks: string): number {
  const quote = /^[^'"\\]*(?=['"])/.exec(raw)?.[0];
  if (quote !== undefined) return quote.length;
  const letters = new Set(breaks.replaceAll(/[\s'"\\]/g, ""));
  for (let at = current.length; at > 0; at -= 1) if (letters.has(current.charAt(at - 1))) return at;
  return 0;
}

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

export interface CommandCatalogue {
  /** Keyed by id: words separated by colons. */
  readonly commands: Readonly<Record<string, KnownCommand>>;
  readonly topics: Readonly<Record<string, { readonly description: string }>>;
}

/**
 * Values that are looked up where they are kept, or left to the shell (files, folders), or that only the person knows.
 */
type ValueKind =
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

interface CompletionRequest {
  readonly kind: ValueKind | "words";
  /** For `words`, all candidates; otherwise the looked-up values are added to them. */
  readonly words: readonly CompletionCandidate[];
  /** Precedes each value: `--model=`. */
  readonly head: string;
  /** The words given to the command so far, without flags. */
  readonly args: readonly string[];
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
export function completionAt({ before, current }: TypedLine, catalogue: CommandCatalogue): CompletionRequest {
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

const words = (found: readonly CompletionCandidate[]): CompletionRequest => ({
  kind: "words",
  words: found,
  head: "",
  args: [],
});

/** The words that may follow those of a topic, or start a line. */
function nextWords(typed: string, { commands, topics }: CommandCatalogue): readonly CompletionCandidate[] {
  const below = typed === "" ? "" : `${typed}:`;
  const found = new Map<string, string>();
  for (const [id, { hidden, summary }] of Object.entries(commands)) {
    if (hidden === true || !id.startsWith(below)) continue;
    const [next = "", more] = id.slice(below.length).split(":");
    found.set(next, more === undefined ? (summary ?? "") : (topics[below + next]?.description ?? ""));
  }
  return [...found]
    .map(([value, about]) => candidate(value, about))
    .toSorted((a, b) => (a.value < b.value ? -1 : 1));
}

function ofCommand(
  id: string,
  rest: readonly string[],
  current: string,
  { commands }: CommandCatalogue,
): CompletionRequest {
  const command = commands[id];
  if (command === undefined) return words([]);
  const seen = readSoFar(rest, command);
  if (seen.dashes) return { ...words([]), kind: "files" };
  const { args } = seen;
  if (seen.open !== undefined) return valuesOf(...seen.open, "", args);
  const head = /^--[^=]+=/.exec(current)?.[0];
  if (head === undefined)
    return current.startsWith("-") ? words(flagWords(command, seen.flags)) : argument(id, command, args);
  const name = head.slice(2, -1);
  const flag = command.flags[name];
  return flag?.type === "option" ? valuesOf(name, flag, head, args) : words([]);
}

function argument(id: string, command: KnownCommand, args: readonly string[]): CompletionRequest {
  const names = Object.keys(command.args);
  const name = names[args.length] ?? (command.strict === false ? names.at(-1) : undefined);
  if (name === undefined) return words([]);
  const options = command.args[name]?.options;
  if (options !== undefined) return words(options.map((each) => candidate(each)));
  return { kind: argKind(id, name), words: [], head: "", args };
}

function valuesOf(name: string, flag: KnownFlag, head: string, args: readonly string[]): CompletionRequest {
  if (flag.options !== undefined)
    return { kind: "words", words: flag.options.map((each) => candidate(each)), head, args };
  return { kind: flagKind(name, flag), words: [], head, args };
}

interface SoFar {
  readonly flags: ReadonlySet<string>;
  readonly args: readonly string[];
  /** The flag whose value comes next. */
  readonly open: readonly [string, KnownFlag] | undefined;
  /** From here on, the words belong to another command. */
  readonly dashes: boolean;
}

function readSoFar(rest: readonly string[], command: KnownCommand): SoFar {
  const flags = new Set<string>();
  const args: string[] = [];
  let open: readonly [string, KnownFlag] | undefined;
  for (const each of rest) {
    if (open !== undefined) open = undefined;
    else if (each === "--") return { flags, args, open, dashes: true };
    else if (each.startsWith("-") && each !== "-") {
      const name = flagNamed(each, command);
      if (name === undefined) continue;
      flags.add(name);
      const flag = command.flags[name];
      if (flag?.type === "option" && !each.includes("=")) open = [name, flag];
    } else args.push(each);
  }
  return { flags, args, open, dashes: false };
}

function flagNamed(typed: string, { flags }: KnownCommand): string | undefined {
  const [, long] = /^--([^=]+)/.exec(typed) ?? [];
  if (long !== undefined) return Object.hasOwn(flags, long) ? long : undefined;
  return Object.keys(flags).find((name) => flags[name]?.char === typed[1]);
}

/** Flags that can still be given; a flag that excludes a given one is not offered. */
function flagWords({ flags }: KnownCommand, used: ReadonlySet<string>): readonly CompletionCandidate[] {
  const left = Object.entries(flags).filter(
    ([name, { multiple, exclusive = [], hidden }]) =>
      hidden !== true &&
      (multiple === true || !used.has(name)) &&
      !exclusive.some((other) => used.has(other)),
  );
  return [
    ...left.map(([name, { description }]) => candidate(`--${name}`, description)),
    candidate("--help", "show the help, with examples"),
  ];
}

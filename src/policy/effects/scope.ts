/** What earlier commands of a text leave for later ones, and what a word expands to there. */
import { resolvePath } from "../paths/normal-path.ts";
import { type Arg, UNKNOWN } from "../programs/program-model.ts";
import type { Node, WordPiece, Word } from "../shell/shell-syntax.ts";
import type { Place } from "./effect.ts";

/** State that earlier commands leave for later ones. Immutable. */
export interface Scope {
  /** Folders in which the command may run: several after a `cd` that may have failed. Null among them: any folder. */
  readonly folders: readonly Place[];
  /** Variables with known values. */
  readonly variables: ReadonlyMap<string, Arg>;
  readonly functions: ReadonlySet<string>;
}

/** The value assumed for a piece of a word. The true value may differ, but leads to the same places. */
export type Assumed = Pick<Arg, "kind" | "value">;

const MAX_FOLDERS = 4;

/** Joins the scopes of two ways through the script. */
export function joinScopes(a: Scope, b: Scope): Scope {
  if (a === b) return a;
  return {
    folders: joinFolders(a.folders, b.folders),
    variables: a.variables === b.variables ? a.variables : common(a.variables, b.variables),
    functions: a.functions === b.functions ? a.functions : new Set([...a.functions, ...b.functions]),
  };
}

function joinFolders(a: readonly Place[], b: readonly Place[]): readonly Place[] {
  if (a === b) return a;
  const all = [...new Set([...a, ...b])];
  return all.length > MAX_FOLDERS || all.includes(null) ? [null] : all;
}

/** A variable that differs between the two ways becomes a guess: enough to find dangers, never enough for an allow. */
function common(a: Scope["variables"], b: Scope["variables"]): Scope["variables"] {
  const both = new Map<string, Arg>();
  for (const [name, arg] of [...b, ...a]) {
    const same = a.get(name)?.value === b.get(name)?.value && a.get(name)?.kind === b.get(name)?.kind;
    both.set(name, same ? arg : { ...arg, kind: "dynamic" });
  }
  return both;
}

export const withFolders = (scope: Scope, folders: readonly Place[]): Scope => ({
  ...scope,
  folders: joinFolders(folders, []),
});

export function withVariable(scope: Scope, name: string, value: Arg | null): Scope {
  const variables = new Map(scope.variables);
  if (value === null) variables.delete(name);
  else variables.set(name, value);
  return { ...scope, variables };
}

export const withoutVariables = (scope: Scope): Scope => ({ ...scope, variables: new Map() });

export const withFunction = (scope: Scope, name: string): Scope => ({
  ...scope,
  functions: new Set([...scope.functions, name]),
});

/** Longest path that any supported system accepts. */
const MAX_LENGTH = 4096;

/** Absolute path of an argument, relative to a folder. A pattern keeps its special characters. */
export function placeOf({ kind, value }: Arg, folder: Place): Place {
  if (kind === "dynamic" && (value.includes(UNKNOWN) || value === "")) return null;
  if (value.length > MAX_LENGTH) return null;
  if (value.startsWith("/")) return resolvePath("/", value);
  return folder === null ? null : resolvePath(folder, value);
}

/** The values of an array or of `$@` as one text; null where they could not be told apart in it. */
export function joinedValues(values: readonly Arg[]): Arg | null {
  const [first] = values;
  const plain = values.every(({ kind, value }) => kind === "literal" && !/\s/.test(value));
  return first === undefined || !plain
    ? null
    : { kind: "literal", value: values.map(({ value }) => value).join(" "), span: first.span };
}

interface Resolver {
  readonly scope: Scope;
  readonly home: string;
  /** Judges a substitution's commands; `written`: they read what is written to it. Returns what its output may contain. */
  script(body: Node, written: boolean): "unknown" | "network";
  /** Called for an expansion that may run a variable's value. */
  evaluates(what: string): void;
  /** The value assumed for a piece where only containment is asked for. */
  assumed(piece: WordPiece): Assumed | null;
  /** Called for a variable that is not set in the text. */
  inherits(name: string): void;
}

/** The argument for a word of plain text; null for any other word, which `resolve` expands. */
export function literalOf({ pieces, span }: Word): Arg | null {
  const only = pieces.length === 1 ? pieces[0] : undefined;
  return only?.kind === "text" ? { kind: "literal", value: only.text, span } : null;
}

/** The arguments that a word expands to; several only where a known value is split. */
export function resolve(word: Word, resolver: Resolver): readonly Arg[] {
  const { pieces, span } = word;
  const made = pieces.map((piece) => partOf(piece, resolver));
  const value = made.map((part) => part.value).join("");
  const kind = made.reduce<Arg["kind"]>((known, part) => vaguerKind(known, part.kind), "literal");
  const feed = made.find((part) => part.feed === "network")?.feed ?? made.find((part) => part.feed)?.feed;
  const loose = made.some((part) => part.loose === true);
  const arg: Arg = {
    kind,
    value,
    span,
    ...(feed === undefined ? {} : { feed }),
    ...(loose ? { loose } : {}),
    ...(made.some(({ user }) => user) ? { user: true as const } : {}),
    ...guessOf(made),
  };
  return made.some(({ splits }) => splits) ? split(arg) : [arg];
}

/** The guess at a whole word: some part of it is one, and every other part is known. */
function guessOf(made: readonly Part[]): Pick<Arg, "guess"> {
  if (!made.some(({ guess }) => guess !== undefined)) return {};
  const values = made.map((part) => part.guess ?? (part.kind === "dynamic" ? null : part.value));
  return values.includes(null) ? {} : { guess: values.join("") };
}

type Part = Omit<Arg, "span"> & { readonly splits: boolean };

const RANK = { literal: 0, glob: 1, dynamic: 2 } as const;
const vaguerKind = (a: Arg["kind"], b: Arg["kind"]): Arg["kind"] => (RANK[a] >= RANK[b] ? a : b);
const unknownPart = (quoted: boolean): Part => ({
  kind: "dynamic",
  value: UNKNOWN,
  splits: false,
  ...(quoted ? {} : { loose: true }),
});

function partOf(piece: WordPiece, resolver: Resolver): Part {
  const assumed = piece.kind === "text" ? null : resolver.assumed(piece);
  if (assumed === null) return readPart(piece, resolver);
  // The commands in the piece run all the same.
  for (const body of scriptsOf(piece)) resolver.script(body, isWritten(piece));
  return { ...assumed, splits: false };
}

const isWritten = (piece: WordPiece): boolean => piece.kind === "script" && piece.via === ">(";

const scriptsOf = (piece: WordPiece): readonly Node[] =>
  piece.kind === "script" ? [piece.body] : piece.kind === "unknown" ? piece.scripts : [];

function readPart(piece: WordPiece, resolver: Resolver): Part {
  switch (piece.kind) {
    case "text":
      return { kind: "literal", value: piece.text, splits: false };
    case "glob":
      return { kind: "glob", value: piece.text, splits: false };
    case "home":
      return { kind: "literal", value: resolver.home, splits: false };
    case "variable":
      return variable(piece.name, piece.quoted, resolver);
    case "script": {
      const feed = resolver.script(piece.body, isWritten(piece));
      if (piece.via !== "<(" && isPlain(piece.body, ["pwd"]) && !resolver.scope.functions.has("pwd"))
        return variable("PWD", piece.quoted, resolver);
      if (piece.via !== "<(" && isPlain(piece.body, TOP)) return topFolder(piece.quoted, feed, resolver);
      // `<( )` gives the program a pipe whose content is unknown.
      return piece.via === "<("
        ? { kind: "literal", value: "/dev/fd/63", splits: false, feed }
        : { ...unknownPart(piece.quoted), feed };
    }
    case "unknown":
      return unreadPart(piece, resolver);
  }
}

/** An expansion that only the shell can make. */
function unreadPart(piece: Extract<WordPiece, { readonly kind: "unknown" }>, resolver: Resolver): Part {
  if (piece.user !== undefined)
    return { kind: "dynamic", value: homeOf(piece.user), splits: false, user: true };
  if (piece.what === "tilde" && piece.text === "~+") return variable("PWD", true, resolver);
  if (piece.evaluates === true) resolver.evaluates(piece.what);
  for (const name of piece.variables ?? []) if (!resolver.scope.variables.has(name)) resolver.inherits(name);
  const feeds = piece.scripts.map((script) => resolver.script(script, false));
  const feed = feeds.includes("network") ? "network" : feeds[0];
  // `"${names[@]}"` becomes several words, quoted or not.
  const nothing = unknownPart(piece.quoted && piece.what !== "parameter");
  const guess = piece.what === "parameter" ? parameterGuess(piece.text ?? "", resolver) : null;
  return {
    ...nothing,
    ...(guess === null ? {} : { guess }),
    ...(feed === undefined ? {} : { feed }),
  };
}

const DEFAULTED = /^\$\{(\w+):?(?:([-=])([\w./*@:~+, $-]*)|\?[^$`]*)\}$/;
const ITEMS = /^\$\{(\w+)\[[@*]\]\}$/;
const TRIMMED = /^\$\{(\w+)(%%?|##?)([\w./@:+-]*|\/\*)\}$/;

/** What `${x:-text}`, `${x:?text}` and `${x%/}` give where only the text sets the variable. */
function parameterGuess(text: string, resolver: Resolver): string | null {
  const items = ITEMS.exec(text)?.[1];
  if (items !== undefined) return resolver.scope.variables.get(itemsOf(items))?.value ?? null;
  const [, name, operator, rest = ""] = DEFAULTED.exec(text) ?? [];
  if (name === undefined) return trimmedValue(text, resolver);
  const known = knownValue(name, resolver);
  if (known !== null && known !== "") return known;
  return operator === undefined || rest === "" ? null : defaultText(rest, resolver);
}

function trimmedValue(text: string, resolver: Resolver): string | null {
  const [, name, side = "", pattern = ""] = TRIMMED.exec(text) ?? [];
  const value = name === undefined ? null : knownValue(name, resolver);
  if (value === null) return null;
  if (pattern === "/*") return side === "%" ? value.replace(/\/[^/]*$/, "") : null;
  if (side.startsWith("#")) return value.startsWith(pattern) ? value.slice(pattern.length) : value;
  return value.endsWith(pattern) ? value.slice(0, value.length - pattern.length) : value;
}

/** The text of a default, with its home folder and variables; null if one of these is not known. */
function defaultText(rest: string, resolver: Resolver): string | null {
  const values = rest.replace(/^~(?=\/|$)/, "$HOME").split(/\$(\w*)/);
  const parts = values.map((text, at) => (at % 2 === 0 ? text : knownValue(text, resolver)));
  return parts.includes(null) ? null : parts.join("");
}

function knownValue(name: string, resolver: Resolver): string | null {
  const known = resolver.scope.variables.get(name) ?? shellVariable(name, resolver);
  return known?.kind === "literal" ? known.value : null;
}

/**
 * The usual home of a user: enough to find dangers, never enough for an allow. Without such a user the shell leaves
 * `~user` as it is.
 */
const homeOf = (user: string): string => (user === "root" ? "/root" : `/home/${user}`);

const TOP = ["git", "rev-parse", "--show-toplevel"];

/** The top of the repository: a guess, where the command stands in it. */
function topFolder(quoted: boolean, feed: Arg["feed"], resolver: Resolver): Part {
  const guess = knownValue("PWD", resolver);
  return {
    ...unknownPart(quoted),
    ...(feed === undefined ? {} : { feed }),
    ...(guess === null ? {} : { guess }),
  };
}

/** Whether this is a command of these words alone: `$(pwd)` gives the same as `$PWD`. */
function isPlain(body: Node, plain: readonly string[]): boolean {
  const [only, ...more] = body.kind === "list" ? body.items.map(({ node }) => node) : [body];
  if (only?.kind !== "simple" || more.length > 0) return false;
  const { words, redirects, assignments } = only;
  return (
    redirects.length + assignments.length === 0 &&
    words.length === plain.length &&
    words.every((word, at) => literalOf(word)?.value === plain[at])
  );
}

/** The name under which a scope keeps the values of an array, of which words are guessed. */
export const itemsOf = (name: string): string => `${name}[@]`;

function variable(name: string, quoted: boolean, resolver: Resolver): Part {
  const known = resolver.scope.variables.get(name) ?? shellVariable(name, resolver);
  if (known === undefined) {
    resolver.inherits(name);
    const unknown = unknownPart(quoted && name !== "@");
    const [folder] = resolver.scope.folders;
    return name === "PWD" && typeof folder === "string" ? { ...unknown, guess: folder } : unknown;
  }
  if (name === "@" || name === "*") return { ...unknownPart(false), guess: known.value };
  return knownPart(known, quoted);
}

function knownPart({ kind, value, feed, user }: Omit<Arg, "span">, quoted: boolean): Part {
  // A value from the network is known by its origin alone.
  if (value === UNKNOWN) return { ...unknownPart(quoted), ...(feed === undefined ? {} : { feed }) };
  // Names that match a pattern may contain blanks, and an empty value is no word.
  const loose = !quoted && (kind === "glob" || value === "" || SPLITS.test(value));
  const part: Part = { kind: loose ? "dynamic" : kind, value, splits: loose };
  return {
    ...part,
    ...(feed === undefined ? {} : { feed }),
    ...(user === undefined ? {} : { user }),
    ...(loose && value === "" ? { loose } : {}),
  };
}

const SPLITS = /[\s*?[\]\\]/;

/** Variables that every shell sets. */
function shellVariable(
  name: string,
  { scope, home }: Pick<Resolver, "scope" | "home">,
): Pick<Arg, "kind" | "value" | "feed" | "user"> | undefined {
  if (name === "HOME") return { kind: "literal", value: home };
  if (name === "IFS") return { kind: "literal", value: " \t\n" };
  const [folder, ...others] = scope.folders;
  return name === "PWD" && typeof folder === "string" && others.length === 0
    ? { kind: "literal", value: folder }
    : undefined;
}

/** Approximates word splitting: enough to find dangers, never enough for an allow. */
function split(arg: Arg): readonly Arg[] {
  const values = arg.value.split(/[ \t\n]+/).filter((value) => value !== "");
  return values.length === 0 ? [arg] : values.map((value) => ({ ...arg, value }));
}

import {
  forEachChild,
  type Assignment as Source,
  type Word as SourceWord,
  type SyntaxNode,
  type WordPart,
} from "unbash";
import type { Node, WordPiece, Span, Word } from "./shell-syntax.ts";

/** Converts the scripts inside words; the command converter implements it. */
export interface ScriptReader {
  script(part: ScriptPart): Node;
  /** Runs the work one level deeper. Too deep is an error, and the result is `otherwise`. */
  deeper<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T;
  /** The same for parts that the parser reads lazily. */
  reparsed<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T;
}
export type ScriptPart = Extract<WordPart, { readonly type: "CommandExpansion" | "ProcessSubstitution" }>;

const TILDE = 126;

/** The word of a source word without quotes and expansions, which most words are; null for any other. */
export const plainWord = (word: SourceWord): Word | null =>
  word.parts === undefined && word.text.charCodeAt(0) !== TILDE
    ? { span: [word.pos, word.end], pieces: textPieces(word.value) }
    : null;

/** The words that one source word becomes: several only by braces. */
export function wordsOf(word: SourceWord, read: ScriptReader): readonly Word[] {
  const plain = plainWord(word);
  if (plain !== null) return [plain];
  const span: Span = [word.pos, word.end];
  const { parts = [] } = word;
  const [home, from] = tildeOf(word.text);
  if (word.parts === undefined) return [{ span, pieces: [...home, ...textPieces(word.value.slice(from))] }];
  let each: readonly WordPiece[][] = [[...home]];
  for (let index = 0; index < parts.length; index += 1) {
    const next = partPieces(parts[index] as WordPart, index === 0 ? from : 0, read);
    if (next.length !== 1) each = crossPieces(each, next);
    else for (const pieces of each) pieces.push(...(next[0] ?? []));
  }
  const whole = each.map(merged);
  return (parts.some(isBraces) ? whole.map(withHome) : whole).map((pieces) => ({ span, pieces }));
}

const isBraces = ({ type }: WordPart): boolean => type === "BraceExpansion";

/** The shell replaces a leading tilde after it has expanded braces: `{~,x}`. */
function withHome(pieces: readonly WordPiece[]): readonly WordPiece[] {
  const [first, ...rest] = pieces;
  if (first?.kind !== "text") return pieces;
  if (rest.length > 0 && !first.text.includes("/")) return pieces;
  const [home, from] = tildeOf(first.text);
  return from === 0 ? pieces : [...home, ...textPieces(first.text.slice(from)), ...rest];
}

const MAX_EXPANSIONS = 64;

/** A word that expands to too many stays one unknown word. */
function crossPieces(
  each: readonly (readonly WordPiece[])[],
  next: readonly (readonly WordPiece[])[],
): readonly WordPiece[][] {
  if (each.length * next.length > MAX_EXPANSIONS) return [[severalWords([...each, ...next])]];
  return each.flatMap((pieces) => next.map((more) => [...pieces, ...more]));
}

/** A word in a position where the shell makes exactly one. */
export function wordOf(word: SourceWord, read: ScriptReader): Word {
  const words = wordsOf(word, read);
  const [only, ...more] = words;
  if (only !== undefined && more.length === 0) return only;
  return { span: [word.pos, word.end], pieces: [severalWords(words.map(({ pieces }) => pieces))] };
}

/** An unknown piece, with every script that runs in it. */
function severalWords(words: readonly (readonly WordPiece[])[]): WordPiece {
  const scripts = words
    .flat()
    .flatMap((piece) =>
      piece.kind === "script" ? [piece.body] : piece.kind === "unknown" ? piece.scripts : [],
    );
  return { kind: "unknown", what: "parameter", quoted: false, scripts: [...new Set(scripts)] };
}

/** `name=value` as an argument (export, declare …) is a word like others. */
export function assignmentAsWord(source: Source, read: ScriptReader): Word {
  const before = `${source.name}${source.append === true ? "+=" : "="}`;
  const { value, index } = source;
  const plain = index === undefined && value.type === "Word";
  const pieces: readonly WordPiece[] = plain
    ? wordOf(value, read).pieces
    : [{ kind: "unknown", what: "parameter", quoted: false, scripts: scriptsIn(source, read) }];
  return { span: [source.pos, source.end], pieces: merged([{ kind: "text", text: before }, ...pieces]) };
}

export const textPieces = (text: string): readonly WordPiece[] =>
  text === "" ? [] : [{ kind: "text", text }];

/** The piece for an unquoted leading `~`, and the length of the text that it covers. */
function tildeOf(text: string): readonly [readonly WordPiece[], number] {
  if (!text.startsWith("~")) return [[], 0];
  const slash = text.indexOf("/");
  const prefix = slash === -1 ? text : text.slice(0, slash);
  if (prefix === "~") return [[{ kind: "home" }], 1];
  if (!/^~[\w+.-]*$/.test(prefix)) return [[], 0];
  const user = /^~([A-Za-z_].*)$/.exec(prefix)?.[1];
  const named = user === undefined ? { text: prefix } : { user };
  return [[{ kind: "unknown", what: "tilde", quoted: false, scripts: [], ...named }], prefix.length];
}

/** The alternatives of one part; only braces have several. */
function partPieces(part: WordPart, from: number, read: ScriptReader): readonly (readonly WordPiece[])[] {
  if (part.type === "BraceExpansion" && isStatic(part.text)) {
    const expanded = expandBraces(part.text);
    if (expanded !== null) return expanded.map(patternPieces);
  }
  return [plainPieces(part, { from, quoted: false, read })];
}

/** `*` and `?` in the results of braces. */
function patternPieces(text: string): readonly WordPiece[] {
  return text
    .split(/([*?]+)/)
    .flatMap((part, index): readonly WordPiece[] =>
      index % 2 === 1 ? [{ kind: "glob", text: part }] : textPieces(part),
    );
}

interface Where {
  /** For a leading literal: the length that the tilde covers. */
  readonly from: number;
  readonly quoted: boolean;
  readonly read: ScriptReader;
}

export function plainPieces(part: WordPart, where: Where): readonly WordPiece[] {
  const { quoted, read } = where;
  switch (part.type) {
    case "Literal":
      return textPieces(part.value.slice(where.from));
    case "SingleQuoted":
    case "AnsiCQuoted":
      return textPieces(part.value);
    case "DoubleQuoted":
      return quotedPieces(part.parts, read);
    case "SimpleExpansion":
      return [{ kind: "variable", name: part.text.slice(1), quoted }];
    case "ParameterExpansion":
      return part.operation === undefined && part.index === undefined && part.prefix === undefined
        ? [{ kind: "variable", name: part.parameter, quoted }]
        : [unknown("parameter", part, where)];
    case "CommandExpansion":
      return [
        { kind: "script", via: part.text.startsWith("`") ? "`" : "$(", body: read.script(part), quoted },
      ];
    case "ProcessSubstitution":
      return [{ kind: "script", via: part.operator === "<" ? "<(" : ">(", body: read.script(part), quoted }];
    case "ArithmeticExpansion":
      return [unknown("arithmetic", part, where)];
    case "LocaleString":
      return [unknown("locale", part, where)];
    case "Glob":
      return scriptsIn(part, read).length === 0 && !/["'\\$]/.test(part.text)
        ? [{ kind: "glob", text: part.text }]
        : [unknown("parameter", part, where)];
    case "ExtendedGlob":
    case "BraceExpansion":
      return [unknown("parameter", part, where)];
  }
}

function quotedPieces(parts: readonly WordPart[], read: ScriptReader): readonly WordPiece[] {
  const where: Where = { from: 0, quoted: true, read };
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return plainPieces(only, where);
  return parts.flatMap((child) => plainPieces(child, where));
}

const unknown = (
  what: "parameter" | "arithmetic" | "locale",
  part: WordPart,
  { quoted, read }: Where,
): WordPiece => ({
  kind: "unknown",
  what,
  quoted,
  scripts: scriptsIn(part, read),
  evaluates: evaluates(part),
  variables: variablesIn(part.text),
  text: part.text,
});

const variablesIn = (text: string): readonly string[] =>
  Array.from(text.matchAll(/\$\{?[#!]?(\w+)/g), ([, name = ""]) => name);

const PLAIN_OPERATORS = new Set(["Default", "Remove", "Replace", "CaseModification"]);

/** An arithmetic without a name in it, which could be a variable with a subscript. */
const FIGURES = /^\$\(\([\d\s+\-*/%()<>&|^~!?:]*\)\)$/;

/** All items of an array, or one by its number. */
const PLAIN_INDEX = /^(?:[@*]|\d{1,6})$/;

/** `${x:1:3}`: in numbers there is no name whose value could be run. */
const PLAIN_SLICE = /^\$\{\w+: ?-?\d+(?::-?\d+)?\}$/;

/** Whether a variable's value may be run, or a variable may change. */
function evaluates(part: WordPart): boolean {
  if (part.type === "ArithmeticExpansion") return !FIGURES.test(part.text);
  if (part.type !== "ParameterExpansion") return false;
  const { prefix, index, operation } = part;
  if (prefix === "!" || (index !== undefined && !PLAIN_INDEX.test(index.text))) return true;
  if (operation === undefined || PLAIN_SLICE.test(part.text)) return false;
  return (
    !PLAIN_OPERATORS.has(operation.type) || (operation.type === "Default" && operation.operator.endsWith("="))
  );
}

/** All outermost substitutions in a part of the tree. */
export function scriptsIn(node: SyntaxNode, read: ScriptReader): readonly Node[] {
  const found: Node[] = [];
  const look = (child: SyntaxNode): void => {
    if (child.type === "CommandExpansion" || child.type === "ProcessSubstitution")
      found.push(read.script(child));
    else if (child.type === "ArithmeticCommandExpansion")
      found.push(read.script({ ...child, type: "CommandExpansion", text: child.text, script: child.script }));
    else if (child.type === "ParameterExpansion" || child.type === "ArithmeticExpansion")
      read.reparsed(child, undefined, () => forEachChild(child, look));
    else read.deeper(child, undefined, () => forEachChild(child, look));
  };
  forEachChild(node, look);
  return found;
}

export function merged(pieces: readonly WordPiece[]): readonly WordPiece[] {
  if (pieces.length < 2) return pieces;
  const out: WordPiece[] = [];
  for (const piece of pieces) {
    const before = out[out.length - 1];
    if (piece.kind === "text" && before?.kind === "text")
      out[out.length - 1] = { kind: "text", text: before.text + piece.text };
    else if (piece.kind === "glob" && before?.kind === "glob")
      out[out.length - 1] = { kind: "glob", text: before.text + piece.text };
    else out.push(piece);
  }
  return out;
}

/** Static braces: they contain names, numbers, tildes and patterns, no quotes and no expansions. */
const isStatic = (text: string): boolean => /^[\w.,/{}:@%+=*?~-]*$/.test(text);

const MAX_COUNT = 64;

/** The expansion of `{a,b{1..3}}` in bash. Null for more than `MAX_COUNT` results, or for excessive depth. */
const expandBraces = (text: string): readonly string[] | null => expand(text, 0);

function expand(text: string, depth: number): readonly string[] | null {
  if (depth > 8) return null;
  const found = firstGroup(text);
  if (found === null) return [text];
  const { open, close, commas } = found;
  const before = text.slice(0, open);
  const middles =
    commas.length > 0 ? alternatives(text, found, depth) : sequence(text.slice(open + 1, close));
  const rest = expand(text.slice(close + 1), depth + 1);
  if (middles === null || rest === null || middles.length * rest.length > MAX_COUNT) return null;
  return middles.flatMap((middle) => rest.map((after) => before + middle + after));
}

interface Group {
  readonly open: number;
  readonly close: number;
  readonly commas: readonly number[];
}

/** The first pair of braces that expands: with a comma of its own, or a sequence. */
function firstGroup(text: string): Group | null {
  for (let open = text.indexOf("{"); open !== -1; open = text.indexOf("{", open + 1)) {
    const group = groupAt(text, open);
    if (group !== null && (group.commas.length > 0 || sequence(text.slice(open + 1, group.close)) !== null))
      return group;
  }
  return null;
}

function groupAt(text: string, open: number): Group | null {
  const commas: number[] = [];
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (letter === "{") depth += 1;
    else if (letter === "}") {
      depth -= 1;
      if (depth === 0) return { open, close: at, commas };
    } else if (letter === "," && depth === 1) commas.push(at);
  }
  return null;
}

function alternatives(text: string, { open, close, commas }: Group, depth: number): readonly string[] | null {
  const ends = [...commas, close];
  const parts = ends.map((end, index) => expand(text.slice((ends[index - 1] ?? open) + 1, end), depth + 1));
  return parts.includes(null) ? null : parts.flatMap((part) => part ?? []);
}

/** `1..5`, `a..e`, with a step; null for anything else and for long sequences. */
function sequence(text: string): readonly string[] | null {
  const match = /^(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,4}))?$/.exec(text);
  if (match === null) return null;
  const [, low, high, first, last, step] = match;
  const letters = first !== undefined && last !== undefined;
  const [from, to] = letters ? [first.charCodeAt(0), last.charCodeAt(0)] : [Number(low), Number(high)];
  const by = Math.max(1, Math.abs(Number(step ?? 1)));
  const count = Math.floor(Math.abs(to - from) / by) + 1;
  if (count > MAX_COUNT) return null;
  const width = letters ? 0 : padding(low ?? "", high ?? "");
  return Array.from({ length: count }, (_, index) => {
    const value = from + (to < from ? -1 : 1) * index * by;
    return letters ? String.fromCharCode(value) : padded(value, width);
  });
}

/** Numbers are padded to the longer one's width where either starts with a zero. */
const padding = (low: string, high: string): number =>
  /^-?0\d/.test(low) || /^-?0\d/.test(high) ? Math.max(low.length, high.length) : 0;

const padded = (value: number, width: number): string =>
  value < 0 ? `-${String(-value).padStart(width - 1, "0")}` : String(value).padStart(width, "0");

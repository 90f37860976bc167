import {
  forEachChild,
  type Assignment as Source,
  type SyntaxNode,
  type Word as SourceWord,
  type WordPart,
} from "unbash";
import type { Node, Piece, Span, Word } from "../syntax.ts";
import { expandBraces, isStatic } from "./braces.ts";

/** Makes trees of the scripts inside words; the reader of commands gives it. */
export interface ScriptReader {
  script(part: ScriptPart): Node;
  /** Does the work one level deeper in the tree; too deep, it is an error, and there is nothing. */
  deeper<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T;
  /** The same for what the parser reads only when it is looked into. */
  reparsed<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T;
}
export type ScriptPart = Extract<WordPart, { readonly type: "CommandExpansion" | "ProcessSubstitution" }>;

/** The words that one word of the source becomes: more than one only by braces. */
export function wordsOf(word: SourceWord, read: ScriptReader): readonly Word[] {
  const span: Span = [word.pos, word.end];
  if (word.parts === undefined && !word.text.startsWith("~"))
    return [{ span, pieces: textPieces(word.value) }];
  const { parts = [] } = word;
  const [home, from] = tildeOf(word.text);
  if (word.parts === undefined) return [{ span, pieces: [...home, ...textPieces(word.value.slice(from))] }];
  let each: readonly Piece[][] = [[...home]];
  for (const [index, part] of parts.entries()) {
    const next = partPieces(part, index === 0 ? from : 0, read);
    if (next.length !== 1) each = crossed(each, next);
    else for (const pieces of each) pieces.push(...(next[0] ?? []));
  }
  return each.map((pieces) => ({ span, pieces: merged(pieces) }));
}

const LIMIT = 64;

/** Too many of them stay unknown, as one word. */
function crossed(
  each: readonly (readonly Piece[])[],
  next: readonly (readonly Piece[])[],
): readonly Piece[][] {
  if (each.length * next.length > LIMIT) return [[severalWords([...each, ...next])]];
  return each.flatMap((pieces) => next.map((more) => [...pieces, ...more]));
}

/** A word where the shell makes exactly one. */
export function wordOf(word: SourceWord, read: ScriptReader): Word {
  const words = wordsOf(word, read);
  const [only, ...more] = words;
  if (only !== undefined && more.length === 0) return only;
  return { span: [word.pos, word.end], pieces: [severalWords(words.map(({ pieces }) => pieces))] };
}

/** Something that is not known, with all that runs in it, each once. */
function severalWords(words: readonly (readonly Piece[])[]): Piece {
  const scripts = words
    .flat()
    .flatMap((piece) =>
      piece.kind === "script" ? [piece.body] : piece.kind === "unknown" ? piece.scripts : [],
    );
  return { kind: "unknown", what: "parameter", quoted: false, scripts: [...new Set(scripts)] };
}

/** `name=value` as an argument (export, declare …): a word like others. */
export function assignmentAsWord(source: Source, read: ScriptReader): Word {
  const before = `${source.name}${source.append === true ? "+=" : "="}`;
  const { value, index } = source;
  const plain = index === undefined && value.type === "Word";
  const pieces: readonly Piece[] = plain
    ? wordOf(value, read).pieces
    : [{ kind: "unknown", what: "parameter", quoted: false, scripts: scriptsIn(source, read) }];
  return { span: [source.pos, source.end], pieces: merged([{ kind: "text", text: before }, ...pieces]) };
}

const textPieces = (text: string): readonly Piece[] => (text === "" ? [] : [{ kind: "text", text }]);

/** The piece of an unquoted `~` at the beginning, and how much of the text it takes. */
function tildeOf(text: string): readonly [readonly Piece[], number] {
  if (!text.startsWith("~")) return [[], 0];
  const slash = text.indexOf("/");
  const prefix = slash === -1 ? text : text.slice(0, slash);
  if (prefix === "~") return [[{ kind: "home" }], 1];
  if (!/^~[\w+.-]*$/.test(prefix)) return [[], 0];
  return [[{ kind: "unknown", what: "tilde", quoted: false, scripts: [] }], prefix.length];
}

/** The alternatives of one part; only braces have more than one. */
function partPieces(part: WordPart, from: number, read: ScriptReader): readonly (readonly Piece[])[] {
  if (part.type === "BraceExpansion" && isStatic(part.text)) {
    const expanded = expandBraces(part.text);
    if (expanded !== null) return expanded.map(patternPieces);
  }
  return [plainPieces(part, { from, quoted: false, read })];
}

/** `*` and `?` in what came out of braces. */
function patternPieces(text: string): readonly Piece[] {
  return text
    .split(/([*?]+)/)
    .flatMap((part, index): readonly Piece[] =>
      index % 2 === 1 ? [{ kind: "glob", text: part }] : textPieces(part),
    );
}

interface Where {
  /** Of a literal at the beginning: what the tilde took. */
  readonly from: number;
  readonly quoted: boolean;
  readonly read: ScriptReader;
}

export function plainPieces(part: WordPart, where: Where): readonly Piece[] {
  const { quoted, read } = where;
  switch (part.type) {
    case "Literal":
      return textPieces(part.value.slice(where.from));
    case "SingleQuoted":
    case "AnsiCQuoted":
      return textPieces(part.value);
    case "DoubleQuoted":
      return part.parts.flatMap((child) => plainPieces(child, { from: 0, quoted: true, read }));
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

const unknown = (
  what: "parameter" | "arithmetic" | "locale",
  part: WordPart,
  { quoted, read }: Where,
): Piece => ({
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

/** Whether the value of some variable may be run, or a variable may change. */
function evaluates(part: WordPart): boolean {
  if (part.type === "ArithmeticExpansion") return /[A-Za-z_$`]/.test(part.text);
  if (part.type !== "ParameterExpansion") return false;
  const { prefix, index, operation } = part;
  if (prefix === "!" || index !== undefined) return true;
  if (operation === undefined) return false;
  return (
    !PLAIN_OPERATORS.has(operation.type) || (operation.type === "Default" && operation.operator.endsWith("="))
  );
}

/** Every substitution in a part of the tree, the outermost ones. */
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

export function merged(pieces: readonly Piece[]): readonly Piece[] {
  const out: Piece[] = [];
  for (const piece of pieces) {
    const before = out.at(-1);
    if (piece.kind === "text" && before?.kind === "text")
      out[out.length - 1] = { kind: "text", text: before.text + piece.text };
    else if (piece.kind === "glob" && before?.kind === "glob")
      out[out.length - 1] = { kind: "glob", text: before.text + piece.text };
    else out.push(piece);
  }
  return out;
}

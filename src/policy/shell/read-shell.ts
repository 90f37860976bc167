import type { Doubt } from "../effects/effect.ts";
import { readOwn } from "./commands.ts";
import type {
  Assignment,
  Compound,
  List,
  Node,
  WordPiece,
  Pipeline,
  Redirect,
  Simple,
  Span,
  Word,
} from "./shell-syntax.ts";
import { readUnbash } from "./unbash-reader.ts";

/** Reasons why a text may do more than its tree says. */
export interface TextDoubt {
  readonly id: Flaw["id"] | "text.syntax" | "text.disagree";
  readonly what: string;
  readonly span: Span;
}

export interface ShellText {
  /** Sufficient to look for dangers; an allow needs a tree without doubts. */
  readonly tree: List;
  readonly doubts: readonly TextDoubt[];
}

export function readShell(text: string): ShellText {
  const flaws = flawsOf(text);
  const { tree, errors } = readUnbash(text);
  if (flaws.length + errors.length === 0 && tree.items.length > 0)
    return { tree, doubts: secondOpinion(text, tree) };
  const empty: readonly TextDoubt[] =
    tree.items.length === 0 && flaws.length === 0 && errors.length === 0
      ? [{ id: "text.empty", what: "", span: [0, text.length] }]
      : [];
  const syntax = errors.map(({ message, span }): TextDoubt => ({ id: "text.syntax", what: message, span }));
  return {
    tree,
    doubts: [...flaws, ...empty, ...syntax, ...(syntax.length > 0 ? [] : secondOpinion(text, tree))],
  };
}

/** Objections of the other reader against a tree. */
function secondOpinion(text: string, tree: List): readonly TextDoubt[] {
  const other = readOwn(text);
  const [error] = other.errors;
  if (error !== undefined) return [{ id: "text.disagree", what: error.message, span: error.span }];
  const found = difference(tree, other.tree);
  return found === null ? [] : [{ id: "text.disagree", ...found }];
}

/** The same for a text inside another one, in the form of effects. */
export function readInner(text: string): { readonly tree: List; readonly doubts: readonly InnerDoubt[] } {
  const { tree, doubts } = readShell(text);
  return {
    tree,
    doubts: doubts.map(({ id, what, span }) => ({
      doubt: "shell.unreadable",
      what: what === "" ? id : `${id}, ${what}`,
      span,
    })),
  };
}

interface InnerDoubt {
  readonly doubt: Doubt;
  readonly what: string;
  readonly span: Span;
}

interface Flaw {
  readonly id: "text.empty" | "text.control" | "text.invisible" | "text.invalid" | "text.limit";
  readonly what: string;
  readonly span: Span;
}

/** Longer texts are searched for dangers and never allowed. */
const MAX_CHARACTERS = 10_000;

const PLAIN = /^[\t\n -~]*$/;
const CONTROL = /[\0-\x08\x0B-\x1F\x7F-\x9F]/u;
/**
 * Format, bidi and tag characters, all spaces except the plain one, fillers without a glyph, private and unassigned
 * characters.
 */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\u115F\u1160\u3164\uFFA0\u2800\uFFFC]|\u034F|(?! )\p{Zs}/u;
/** Letters of other scripts that look like shell syntax: full-width operators, other dashes at the start of an option. */
const LOOKALIKE =
  /[\uFF02\uFF04\uFF06-\uFF09\uFF0D\uFF0F\uFF1B\uFF1C\uFF1E\uFF3C\uFF40\uFF5B-\uFF5E\u037E\u2044\u2215\u29F8]|(?<=^|[\s;&|(])[\u2010-\u2015\u2212\uFE58\uFE63]/u;
const INVALID = /[\uD800-\uDFFF\uFFFD]/u;

/** Characters that make every reading untrustworthy. */
function flawsOf(text: string): readonly Flaw[] {
  const flaws: Flaw[] = [];
  if (!/\S/.test(text)) flaws.push({ id: "text.empty", what: "", span: [0, text.length] });
  if (text.length > MAX_CHARACTERS)
    flaws.push({ id: "text.limit", what: `${text.length} characters`, span: [MAX_CHARACTERS, text.length] });
  if (PLAIN.test(text)) return flaws;
  for (const [id, pattern] of KINDS) {
    const match = pattern.exec(text);
    if (match !== null)
      flaws.push({ id, what: nameOf(match[0]), span: [match.index, match.index + match[0].length] });
  }
  return flaws;
}

const KINDS = [
  ["text.control", CONTROL],
  ["text.invisible", INVISIBLE],
  ["text.invisible", LOOKALIKE],
  ["text.invalid", INVALID],
] as const;

const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Where two trees differ, as a span in the first one. */
interface Difference {
  readonly what: string;
  readonly span: Span;
}

/**
 * Compares the trees of two readers: kinds, words with their spans, redirects, assignments, operators. Spans of nodes and
 * redirects are not compared. Null when the trees are equal.
 */
export function difference(a: Node, b: Node): Difference | null {
  if (a === b) return null;
  switch (a.kind) {
    case "simple":
      return b.kind === "simple" ? simple(a, b) : at("kind", a.span);
    case "pipeline":
      return b.kind === "pipeline" ? pipeline(a, b) : at("kind", a.span);
    case "list":
      return b.kind === "list" ? list(a, b) : at("kind", a.span);
    case "compound":
      return b.kind === "compound" ? compound(a, b) : at("kind", a.span);
    default:
      return a satisfies never;
  }
}

const at = (what: string, span: Span): Difference => ({ what, span });

/** Compares two arrays item by item. The pair has a name for the items, and the span to tell if the lengths differ. */
function compareEach<T>(
  a: readonly T[],
  b: readonly T[],
  [what, { span }]: readonly [what: string, of: { readonly span: Span }],
  compare: (a: T, b: T) => Difference | null,
): Difference | null {
  if (a.length !== b.length) return at(`number of ${what}`, span);
  if (a.length === 0) return null;
  for (let index = 0; index < a.length; index++) {
    const found = compare(a[index] as T, b[index] as T);
    if (found !== null) return found;
  }
  return null;
}

function simple(a: Simple, b: Simple): Difference | null {
  return (
    compareEach(a.words, b.words, ["words", a], wordDifference) ??
    compareEach(a.redirects, b.redirects, ["redirects", a], redirect) ??
    compareEach(a.assignments, b.assignments, ["assignments", a], assignment)
  );
}

function pipeline(a: Pipeline, b: Pipeline): Difference | null {
  return compareEach(a.parts, b.parts, ["parts", a], difference);
}

type Item = List["items"][number];

function list(a: List, b: List): Difference | null {
  return compareEach(a.items, b.items, ["commands", a], item);
}

function item(a: Item, b: Item): Difference | null {
  return a.then === b.then ? difference(a.node, b.node) : at("operator", a.node.span);
}

function compound(a: Compound, b: Compound): Difference | null {
  if (a.what !== b.what) return at("kind of compound", a.span);
  if (a.name !== b.name) return at("name", a.span);
  if ((a.words === null) !== (b.words === null)) return at("words", a.span);
  return (
    compareEach(a.words ?? [], b.words ?? [], ["words", a], wordDifference) ??
    compareEach(a.bodies, b.bodies, ["bodies", a], difference) ??
    compareEach(a.redirects, b.redirects, ["redirects", a], redirect)
  );
}

function assignment(a: Assignment, b: Assignment): Difference | null {
  if (a.name !== b.name || a.append !== b.append || !sameSpan(a.span, b.span))
    return at("assignment", a.span);
  if ((a.value === null) !== (b.value === null)) return at("value", a.span);
  const value = a.value !== null && b.value !== null ? wordDifference(a.value, b.value) : null;
  return value ?? compareEach(a.others, b.others, ["words of an assignment", a], wordDifference);
}

function redirect(a: Redirect, b: Redirect): Difference | null {
  if (a.operator !== b.operator || a.descriptor !== b.descriptor) return at("redirect", a.span);
  return wordDifference(a.target, b.target);
}

function sameSpan(a: Span, b: Span): boolean {
  return a[0] === b[0] && a[1] === b[1];
}

function wordDifference(a: Word, b: Word): Difference | null {
  if (!sameSpan(a.span, b.span)) return at("extent of a word", a.span);
  if (a.pieces.length !== b.pieces.length) return at("pieces of a word", a.span);
  for (let index = 0; index < a.pieces.length; index++) {
    const found = piece(a.pieces[index] as WordPiece, b.pieces[index] as WordPiece, a.span);
    if (found !== null) return found;
  }
  return null;
}

function piece(a: WordPiece, b: WordPiece, span: Span): Difference | null {
  if (a.kind !== b.kind || quotedness(a) !== quotedness(b)) return at("piece of a word", span);
  switch (a.kind) {
    case "text":
    case "glob":
      return a.text === (b as typeof a).text ? null : at("text", span);
    case "home":
      return null;
    case "variable":
      return a.name === (b as typeof a).name ? null : at("variable", span);
    case "script":
      return a.via === (b as typeof a).via
        ? difference(a.body, (b as typeof a).body)
        : at("substitution", span);
    case "unknown":
      return unknown(a, b as typeof a, span);
    default:
      return a satisfies never;
  }
}

function quotedness(of: WordPiece): boolean {
  return "quoted" in of && of.quoted;
}

type Unknown = WordPiece & { readonly kind: "unknown" };

function unknown(a: Unknown, b: Unknown, span: Span): Difference | null {
  if (a.what !== b.what) return at("expansion", span);
  return compareEach(a.scripts, b.scripts, ["scripts of an expansion", { span }], difference);
}

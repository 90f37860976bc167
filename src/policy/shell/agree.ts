import type {
  Assignment,
  Compound,
  List,
  Node,
  Piece,
  Pipeline,
  Redirect,
  Simple,
  Span,
  Word,
} from "./syntax.ts";

/** Where two trees part, as a place in the first one. */
export interface Difference {
  readonly what: string;
  readonly span: Span;
}

/**
 * Compares what two readers made of one text: kinds, words with their spans, redirects, assignments, operators.
 * Spans of nodes and redirects are not compared. Null when they say the same.
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

/** Compares two arrays item by item; `span` is where their lengths differ. */
function each<T>(
  a: readonly T[],
  b: readonly T[],
  { what, span }: Difference,
  compare: (a: T, b: T) => Difference | null,
): Difference | null {
  if (a.length !== b.length) return at(`number of ${what}`, span);
  for (let index = 0; index < a.length; index++) {
    const found = compare(a[index] as T, b[index] as T);
    if (found !== null) return found;
  }
  return null;
}

function simple(a: Simple, b: Simple): Difference | null {
  return (
    each(a.words, b.words, at("words", a.span), word) ??
    each(a.redirects, b.redirects, at("redirects", a.span), redirect) ??
    each(a.assignments, b.assignments, at("assignments", a.span), assignment)
  );
}

function pipeline(a: Pipeline, b: Pipeline): Difference | null {
  return each(a.parts, b.parts, at("parts", a.span), difference);
}

type Item = List["items"][number];

function list(a: List, b: List): Difference | null {
  return each(a.items, b.items, at("commands", a.span), item);
}

function item(a: Item, b: Item): Difference | null {
  return a.then === b.then ? difference(a.node, b.node) : at("operator", a.node.span);
}

function compound(a: Compound, b: Compound): Difference | null {
  if (a.what !== b.what) return at("kind of compound", a.span);
  if (a.name !== b.name) return at("name", a.span);
  if ((a.words === null) !== (b.words === null)) return at("words", a.span);
  return (
    each(a.words ?? [], b.words ?? [], at("words", a.span), word) ??
    each(a.bodies, b.bodies, at("bodies", a.span), difference) ??
    each(a.redirects, b.redirects, at("redirects", a.span), redirect)
  );
}

function assignment(a: Assignment, b: Assignment): Difference | null {
  if (a.name !== b.name || a.append !== b.append || !sameSpan(a.span, b.span))
    return at("assignment", a.span);
  if ((a.value === null) !== (b.value === null)) return at("value", a.span);
  const value = a.value !== null && b.value !== null ? word(a.value, b.value) : null;
  return value ?? each(a.others, b.others, at("words of an assignment", a.span), word);
}

function redirect(a: Redirect, b: Redirect): Difference | null {
  if (a.operator !== b.operator || a.descriptor !== b.descriptor) return at("redirect", a.span);
  return word(a.target, b.target);
}

function sameSpan(a: Span, b: Span): boolean {
  return a[0] === b[0] && a[1] === b[1];
}

function word(a: Word, b: Word): Difference | null {
  if (!sameSpan(a.span, b.span)) return at("extent of a word", a.span);
  if (a.pieces.length !== b.pieces.length) return at("pieces of a word", a.span);
  for (let index = 0; index < a.pieces.length; index++) {
    const found = piece(a.pieces[index] as Piece, b.pieces[index] as Piece, a.span);
    if (found !== null) return found;
  }
  return null;
}

function piece(a: Piece, b: Piece, span: Span): Difference | null {
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

function quotedness(of: Piece): boolean {
  return "quoted" in of && of.quoted;
}

type Unknown = Piece & { readonly kind: "unknown" };

function unknown(a: Unknown, b: Unknown, span: Span): Difference | null {
  if (a.what !== b.what) return at("expansion", span);
  return each(a.scripts, b.scripts, at("scripts of an expansion", span), difference);
}

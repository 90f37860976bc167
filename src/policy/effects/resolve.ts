import { type Arg, UNKNOWN } from "../programs/program-model.ts";
import type { Node, Piece, Word } from "../shell/shell-syntax.ts";
import type { Assumed } from "./assume.ts";
import type { Scope } from "./scope.ts";

export interface Resolver {
  readonly scope: Scope;
  readonly home: string;
  /** Does what a substitution does, and says what its output may hold. */
  script(body: Node): "unknown" | "network";
  /** Told of an expansion that may run what stands in a variable. */
  evaluates(what: string): void;
  /** What a piece may be taken for where only containment is asked for. */
  assumed(piece: Piece): Assumed | null;
  /** Told of a variable that comes from outside the text. */
  inherits(name: string): void;
}

/** The arguments that a word becomes: several only where a known value is split. */
export function resolve(word: Word, resolver: Resolver): readonly Arg[] {
  const { pieces, span } = word;
  const [only] = pieces;
  if (pieces.length === 1 && only?.kind === "text") return [{ kind: "literal", value: only.text, span }];
  const made = pieces.map((piece) => partOf(piece, resolver));
  const value = made.map((part) => part.value).join("");
  const kind = made.reduce<Arg["kind"]>((known, part) => vaguer(known, part.kind), "literal");
  const feed = made.find((part) => part.feed === "network")?.feed ?? made.find((part) => part.feed)?.feed;
  const loose = made.some((part) => part.loose === true);
  const arg: Arg = {
    kind,
    value,
    span,
    ...(feed === undefined ? {} : { feed }),
    ...(loose ? { loose } : {}),
  };
  return made.some(({ splits }) => splits) ? split(arg) : [arg];
}

type Part = Omit<Arg, "span"> & { readonly splits: boolean };

const RANK = { literal: 0, glob: 1, dynamic: 2 } as const;
const vaguer = (a: Arg["kind"], b: Arg["kind"]): Arg["kind"] => (RANK[a] >= RANK[b] ? a : b);
const nothingKnown = (quoted: boolean): Part => ({
  kind: "dynamic",
  value: UNKNOWN,
  splits: false,
  ...(quoted ? {} : { loose: true }),
});

function partOf(piece: Piece, resolver: Resolver): Part {
  const assumed = piece.kind === "text" ? null : resolver.assumed(piece);
  if (assumed === null) return readPart(piece, resolver);
  // What stands in it happens all the same.
  for (const body of scriptsOf(piece)) resolver.script(body);
  return { ...assumed, splits: false };
}

const scriptsOf = (piece: Piece): readonly Node[] =>
  piece.kind === "script" ? [piece.body] : piece.kind === "unknown" ? piece.scripts : [];

function readPart(piece: Piece, resolver: Resolver): Part {
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
      const feed = resolver.script(piece.body);
      // What a reader gets is a pipe of its own; what stands in one is not known.
      return piece.via === "<("
        ? { kind: "literal", value: "/dev/fd/63", splits: false, feed }
        : { ...nothingKnown(piece.quoted), feed };
    }
    case "unknown": {
      if (piece.evaluates === true) resolver.evaluates(piece.what);
      for (const name of piece.variables ?? [])
        if (!resolver.scope.variables.has(name)) resolver.inherits(name);
      const feeds = piece.scripts.map((script) => resolver.script(script));
      const feed = feeds.includes("network") ? "network" : feeds[0];
      // `"${names[@]}"` is several words, quoted or not.
      const nothing = nothingKnown(piece.quoted && piece.what !== "parameter");
      return feed === undefined ? nothing : { ...nothing, feed };
    }
  }
}

function variable(name: string, quoted: boolean, resolver: Resolver): Part {
  const known = resolver.scope.variables.get(name) ?? standing(name, resolver);
  if (known === undefined) {
    resolver.inherits(name);
    return nothingKnown(quoted && name !== "@");
  }
  const { kind, value, feed } = known;
  // Names that a pattern finds may hold blanks, and an empty value is no word at all.
  const loose = !quoted && (kind === "glob" || value === "" || SPLITS.test(value));
  const part: Part = { kind: loose ? "dynamic" : kind, value, splits: loose };
  return { ...part, ...(feed === undefined ? {} : { feed }), ...(loose && value === "" ? { loose } : {}) };
}

const SPLITS = /[\s*?[\]\\]/;

/** Variables that every shell has. */
function standing(
  name: string,
  { scope, home }: Pick<Resolver, "scope" | "home">,
): Pick<Arg, "kind" | "value" | "feed"> | undefined {
  if (name === "HOME") return { kind: "literal", value: home };
  if (name === "IFS") return { kind: "literal", value: " \t\n" };
  const [folder, ...others] = scope.folders;
  return name === "PWD" && typeof folder === "string" && others.length === 0
    ? { kind: "literal", value: folder }
    : undefined;
}

/** A guess at what word splitting makes: good for finding dangers, never for an allow. */
function split(arg: Arg): readonly Arg[] {
  const values = arg.value.split(/[ \t\n]+/).filter((value) => value !== "");
  return values.length === 0 ? [arg] : values.map((value) => ({ ...arg, value }));
}

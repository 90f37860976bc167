import type { ChunkKind } from "../index-words.ts";

/** Maximum length of a piece in UTF-16 units. A declaration of up to this length stays whole. */
export const MAX_COUNT = 2500;

/** The beginning of a part of a text; the part ends at the next mark. Marks ascend. */
export interface Mark {
  readonly at: number;
  readonly kind: ChunkKind;
  /** The names declared here, or else those of the surrounding declaration. */
  readonly names: readonly string[];
  /** Whether the names are declared here. */
  readonly own: boolean;
  /** The name of the surrounding declaration, "" at the top level. */
  readonly scope: string;
}

/** The whole lines of a declaration, as the packer joins and splits them. */
export interface Part {
  readonly start: number;
  readonly end: number;
  readonly kind: ChunkKind;
  readonly names: readonly string[];
  readonly own: boolean;
  readonly scope: string;
}

/** Whether only blanks precede `at` on its line. */
export const opensLine = (text: string, at: number): boolean => lineStart(text, at) !== -1;

/** The start of the line that contains `at`, or -1 if more than blanks precede `at`. */
function lineStart(text: string, at: number): number {
  let place = at;
  while (place > 0) {
    const code = text.charCodeAt(place - 1);
    if (code === 10) return place;
    if (code !== 32 && code !== 9 && code !== 13 && code !== 12) return -1;
    place -= 1;
  }
  return 0;
}

/** Whether an empty line lies between. Some grammars end a comment after its line feed. */
export function isSeparated(text: string, end: number, start: number): boolean {
  const between = text.slice(end, start);
  const first = between.indexOf("\n");
  return first !== -1 && (between.includes("\n", first + 1) || text.charCodeAt(end - 1) === 10);
}

/** The kind of several parts together. */
export function jointKind(kinds: readonly ChunkKind[]): ChunkKind {
  const [first = "code"] = kinds;
  if (kinds.every((kind) => kind === first)) return first;
  if (first === "class" && kinds.every((kind) => kind === "method" || kind === "class" || kind === "code"))
    return "class";
  return kinds.every((kind) => kind === "method" || kind === "code") && kinds.includes("method")
    ? "method"
    : "code";
}

const unique = (names: readonly string[]): readonly string[] =>
  names.length < 2 ? names : [...new Set(names)];

/** The names that several parts declare, or else the names of the surrounding declaration. */
export function jointNames(parts: readonly Pick<Part, "names" | "own" | "kind">[]): {
  readonly names: readonly string[];
  readonly own: boolean;
} {
  const own = parts.some((part) => part.own);
  const naming = own
    ? parts.filter((part) => part.own || part.kind === "function" || part.kind === "method")
    : parts;
  return { names: unique(naming.flatMap((part) => part.names)), own };
}

/**
 * Turns marks into parts that begin at line starts. A mark behind other code on its line belongs to the part before,
 * along with its names.
 */
export function partsOf(text: string, marks: readonly Mark[]): readonly Part[] {
  const groups: { at: number; marks: Mark[] }[] = [];
  for (const mark of marks) {
    const last = groups.at(-1);
    const start = lineStart(text, mark.at);
    if (last === undefined) groups.push({ at: 0, marks: [mark] });
    else if (start <= last.at) last.marks.push(mark);
    else groups.push({ at: start, marks: [mark] });
  }
  return groups.map(({ at, marks: own }, index) => {
    const end = groups[index + 1]?.at ?? text.length;
    const [first] = own;
    if (first !== undefined && own.length === 1) return { ...first, start: at, end };
    const kinds = own.filter((mark) => mark.own).map((mark) => mark.kind);
    const kind = kinds.length === 0 ? (first?.kind ?? "code") : jointKind(kinds);
    return { start: at, end, kind, scope: first?.scope ?? "", ...jointNames(own) };
  });
}

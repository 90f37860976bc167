import { numbered } from "./file-text.ts";

/** A place in the file that the model may have meant. */
export interface Place {
  /** Counted from 1, both inclusive. */
  readonly first: number;
  readonly last: number;
  /** The lines match except for spaces and tabs. */
  readonly spacing: boolean;
}

const MAX_WANTED = 200;
const MAX_SHOWN = 12;
const ALIKE = 0.5;
const MAX_COMPARED = 50_000;

export function nearestPlace(wanted: readonly string[], lines: readonly string[]): Place | undefined {
  const [bare, all] = [wanted.slice(0, MAX_WANTED).map(squeezed), lines.map(squeezed)];
  const text = bare.findIndex((line) => line !== "");
  if (text < 0) return undefined;
  const voted = bestStart(bare, all);
  const best = voted.letters >= TELLING ? voted.start : (mostAlike(bare, all) ?? voted.start);
  if (best === undefined) return undefined;
  const start = Math.max(0, best);
  const spacing =
    wanted.length <= MAX_WANTED &&
    bare.every((line, index) => fitsSpacing(bare, index, line, all[start + index]));
  return { first: start + 1, last: Math.min(lines.length, start + wanted.length), spacing };
}

/** The lines at a place, with numbers. */
export function placeShown({ first, last }: Place, lines: readonly string[]): string {
  const end = Math.min(last, first + MAX_SHOWN - 1);
  const more = last > end ? `\n[${last - end} more lines]` : "";
  const page = lines.slice(first - 1, end).map((line) => cut(line.toWellFormed()));
  return numbered(page, first) + more;
}

const MAX_LENGTH = 300;
const cut = (line: string): string =>
  line.length > MAX_LENGTH
    ? `${line.slice(0, MAX_LENGTH).toWellFormed()}[… ${line.length - MAX_LENGTH} more]`
    : line;

const squeezed = (line: string): string => line.replace(/[ \t\r]+/g, " ").trim();

/** The first and the last wanted line may be parts of lines. */
function fitsSpacing(bare: readonly string[], index: number, line: string, found = ""): boolean {
  const edge = index === 0 || index === bare.length - 1;
  return edge ? found.includes(line) : found === line;
}

/** With fewer letters in all, the lines (such as a lone brace) occur everywhere. */
const TELLING = 4;
const MAX_PLACES = 50;

/** Each wanted line that exists in the file votes, with its length, for where the text would begin. */
function bestStart(
  wanted: readonly string[],
  lines: readonly string[],
): { readonly start: number | undefined; readonly letters: number } {
  const places = new Map<string, number[]>();
  for (const [index, line] of lines.entries()) {
    const known = places.get(line);
    if (known === undefined) places.set(line, [index]);
    else if (known.length < MAX_PLACES) known.push(index);
  }
  const votes = new Map<number, number>();
  for (const [index, line] of wanted.entries())
    for (const place of line === "" ? [] : (places.get(line) ?? []))
      votes.set(place - index, (votes.get(place - index) ?? 0) + line.length);
  const [best] = [...votes].toSorted(([at, one], [other, two]) => two - one || at - other);
  return { start: best?.[0], letters: best?.[1] ?? 0 };
}

/** Compares by the pairs of letters shared with the longest wanted line. */
function mostAlike(wanted: readonly string[], lines: readonly string[]): number | undefined {
  if (lines.length > MAX_COMPARED) return undefined;
  const [index, longest] = [...wanted.entries()].toSorted(([, a], [, b]) => b.length - a.length)[0] ?? [
    0,
    "",
  ];
  const pairs = pairsOf(longest);
  let best = { at: -1, score: ALIKE };
  for (const [at, line] of lines.entries()) {
    const score = likeness(pairs, line);
    if (score > best.score) best = { at, score };
  }
  return best.at < 0 ? undefined : best.at - index;
}

const PAIRS = 500;

function pairsOf(line: string): ReadonlySet<string> {
  const end = Math.min(line.length - 1, PAIRS);
  return new Set(Array.from({ length: Math.max(0, end) }, (_, at) => line.slice(at, at + 2)));
}

function likeness(pairs: ReadonlySet<string>, line: string): number {
  const others = pairsOf(line);
  const shared = [...others].filter((pair) => pairs.has(pair)).length;
  return shared === 0 ? 0 : (2 * shared) / (pairs.size + others.size);
}

/** Edits of a text: making them, showing what they changed, and finding the place that a failed one may have meant. */

import { diffArrays } from "diff";
import { changesOf, differingLines, hunksOf, lineCounts, splitLines } from "../core/text/line-diff.ts";
import { numbered } from "./read-file.ts";

export interface Edit {
  readonly old: string;
  readonly new: string;
  readonly all: boolean;
}

type ReplaceResult =
  | { readonly kind: "replaced"; readonly text: string; readonly places: number }
  | { readonly kind: "not"; readonly why: string };

/** All lines that are removed and added. */
export const linesOf = (before: string, after: string): string =>
  [...markLines("-", before), ...markLines("+", after)].join("\n");

const markLines = (mark: string, text: string): readonly string[] =>
  text === ""
    ? []
    : text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => mark + line);

/** Makes all edits, each on the result of the previous ones, or none. */
export function replaced(text: string, edits: readonly Edit[]): ReplaceResult {
  let now = text;
  let places = 0;
  for (const [index, edit] of edits.entries()) {
    const next = replaceOne(now, edit);
    const which = edits.length > 1 ? `edit ${index + 1} of ${edits.length}: ` : "";
    if (next.kind === "not") return { kind: "not", why: which + next.why };
    now = next.text;
    places += next.places;
  }
  return { kind: "replaced", text: now, places };
}

const notReplaced = (why: string): ReplaceResult => ({ kind: "not", why });

function replaceOne(text: string, edit: Edit): ReplaceResult {
  if (edit.old === "") return notReplaced("old is empty: give the text that is to be replaced");
  if (edit.old === edit.new) return notReplaced("old and new are the same: nothing would change");
  for (const form of formsFor(text, edit)) {
    const starts = startsOf(text, form.old);
    if (starts.length > 1 && !edit.all) return notReplaced(ambiguous(text, starts));
    if (starts.length > 0)
      return { kind: "replaced", text: replaceAt(text, starts, form), places: starts.length };
  }
  return notReplaced(notFoundText(text, edit));
}

/** The edit with the file's line ends, which the model may leave out; also unchanged if the file mixes them. */
function formsFor(text: string, edit: Edit): readonly Edit[] {
  if (!text.includes("\r\n")) return [edit];
  const returned = { ...edit, old: withReturns(edit.old), new: withReturns(edit.new) };
  const mixed = /(?:^|[^\r])\n/.test(text);
  return mixed ? [edit, returned] : [returned];
}

const withReturns = (text: string): string => text.replace(/\r?\n/g, "\r\n");

const withoutReturns = (text: string): string => text.replaceAll("\r\n", "\n");

function startsOf(text: string, old: string): readonly number[] {
  const starts: number[] = [];
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) starts.push(at);
  return starts;
}

function replaceAt(text: string, starts: readonly number[], { old, new: young }: Edit): string {
  const parts: string[] = [];
  let from = 0;
  for (const at of starts) {
    parts.push(text.slice(from, at), young);
    from = at + old.length;
  }
  return parts.join("") + text.slice(from);
}

const MAX_LISTED_PLACES = 10;

function ambiguous(text: string, starts: readonly number[]): string {
  const lines = starts.slice(0, MAX_LISTED_PLACES).map((at) => lineAt(text, at));
  const more = starts.length > MAX_LISTED_PLACES ? " …" : "";
  return `old is found ${starts.length} times, at lines ${lines.join(", ")}${more}. Give more lines around the one you mean, or all: true for every one`;
}

const lineAt = (text: string, at: number): number => text.slice(0, at).split("\n").length;

/** The message for a text that is not found. */
function notFoundText(text: string, { old, new: young }: Edit): string {
  const there = young.trim() === "" ? -1 : text.indexOf(young);
  if (there >= 0)
    return `old is not in the file, and new already is, at line ${lineAt(text, there)}: it seems to be done`;
  if (old.split("\n").every((line) => /^\s*\d+\t/.test(line)))
    return "old has the line numbers of read_file in it: leave them out";
  const lines = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .map((line) => line.replace(/\r$/, ""));
  if (old.includes("\n") && withoutReturns(text).includes(withoutReturns(old)))
    return "some of these lines end with CRLF and some with LF: make an edit of its own for each line, without its end";
  const place = nearestPlace(old.replace(/\r?\n$/, "").split(/\r?\n/), lines);
  if (place === undefined) return "old is not in the file, nor anything like it. Read the file again";
  const where = place.first === place.last ? `line ${place.first}` : `lines ${place.first}-${place.last}`;
  const why = place.spacing ? `${where} differ only in spaces or tabs` : `nearest is ${where}`;
  return `old is not in the file; ${why}. Copy it exactly:\n${placeShown(place, lines)}`;
}

const CONTEXT_LINES = 2;
const MAX_LINES = 60;
const MAX_LENGTH = 300;

interface CompactDiff {
  readonly added: number;
  readonly removed: number;
  /** Hunks of a unified diff, without file names. */
  readonly lines: readonly string[];
}

/** Texts that differ in more lines are shown as one change: nobody reads such a diff line by line. */
const MAX_CHANGED_LINES = 400;

export function compactDiff(from: string, to: string): CompactDiff {
  const [before, after] = [splitLines(from), splitLines(to)];
  const middle = differingLines(before, after);
  const maxEditLength = MAX_CHANGED_LINES;
  const runs =
    middle.least > maxEditLength ? undefined : diffArrays(middle.before, middle.after, { maxEditLength });
  const changes = changesOf(runs, middle);
  const hunks = hunksOf(changes, { before, after }, CONTEXT_LINES);
  return {
    ...lineCounts(changes),
    lines: hunks.flatMap((hunk) => [
      `@@ -${range(hunk.from)} +${range(hunk.to)} @@`,
      ...hunk.lines.map(shortened),
    ]),
  };
}

/** Limits the lines of a diff; the rest is counted. Carriage returns are reported beside a file, not in it. */
export function boundedDiff(lines: readonly string[]): string {
  const rest = lines.length - MAX_LINES;
  const kept = rest > 0 ? [...lines.slice(0, MAX_LINES), `[and ${rest} more lines of this diff]`] : lines;
  return kept.map((line) => line.replace(/\r$/, "")).join("\n");
}

const range = ([first, count]: readonly [number, number]): string =>
  count === 1 ? `${first}` : `${first},${count}`;

const shortened = (line: string): string =>
  line.length > MAX_LENGTH
    ? `${line.slice(0, MAX_LENGTH).toWellFormed()}[… ${line.length - MAX_LENGTH} more]`
    : line.toWellFormed();

/** A place in the file that the model may have meant. */
interface Place {
  /** Counted from 1, both inclusive. */
  readonly first: number;
  readonly last: number;
  /** The lines match except for spaces and tabs. */
  readonly spacing: boolean;
}

const MAX_WANTED = 200;
const MAX_SHOWN = 12;
const MIN_LIKENESS = 0.5;
const MAX_COMPARED = 50_000;

export function nearestPlace(wanted: readonly string[], lines: readonly string[]): Place | undefined {
  const [bare, all] = [wanted.slice(0, MAX_WANTED).map(collapseBlanks), lines.map(collapseBlanks)];
  const text = bare.findIndex((line) => line !== "");
  if (text < 0) return undefined;
  const voted = bestStart(bare, all);
  const best = voted.letters >= MIN_LETTERS ? voted.start : (mostAlike(bare, all) ?? voted.start);
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
  const page = lines.slice(first - 1, end).map(shortened);
  return numbered(page, first) + more;
}

const collapseBlanks = (line: string): string => line.replace(/[ \t\r]+/g, " ").trim();

/** The first and the last wanted line may be parts of lines. */
function fitsSpacing(bare: readonly string[], index: number, line: string, found = ""): boolean {
  const edge = index === 0 || index === bare.length - 1;
  return edge ? found.includes(line) : found === line;
}

/** With fewer letters in all, the lines (such as a lone brace) occur everywhere. */
const MIN_LETTERS = 4;
const MAX_PLACES_PER_LINE = 50;

/** Each wanted line that exists in the file votes, with its length, for where the text would begin. */
function bestStart(
  wanted: readonly string[],
  lines: readonly string[],
): { readonly start: number | undefined; readonly letters: number } {
  const places = new Map<string, number[]>();
  for (const [index, line] of lines.entries()) {
    const known = places.get(line);
    if (known === undefined) places.set(line, [index]);
    else if (known.length < MAX_PLACES_PER_LINE) known.push(index);
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
  let best = { at: -1, score: MIN_LIKENESS };
  for (const [at, line] of lines.entries()) {
    const score = similarity(pairs, line);
    if (score > best.score) best = { at, score };
  }
  return best.at < 0 ? undefined : best.at - index;
}

const MAX_PAIRS = 500;

function pairsOf(line: string): ReadonlySet<string> {
  const end = Math.min(line.length - 1, MAX_PAIRS);
  return new Set(Array.from({ length: Math.max(0, end) }, (_, at) => line.slice(at, at + 2)));
}

function similarity(pairs: ReadonlySet<string>, line: string): number {
  const others = pairsOf(line);
  const shared = [...others].filter((pair) => pairs.has(pair)).length;
  return shared === 0 ? 0 : (2 * shared) / (pairs.size + others.size);
}

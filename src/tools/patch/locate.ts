import { nearestPlace, placeShown } from "../text/nearest-place.ts";
import { type Hunk, PatchMistake } from "./patch.ts";

export interface Found {
  /** From 0. */
  readonly at: number;
  /** The lines are the same but for spaces at their ends. */
  readonly loose: boolean;
}

interface Where {
  readonly lines: readonly string[];
  /** Behind the last hunk's lines. */
  readonly after: number;
  /** How far the last hunk was from where it said. */
  readonly drift: number;
  /** The file, and which of its hunks. */
  readonly name: string;
}

/** The one place where a hunk's old lines are; where there is none, or more than one, what to send instead. */
export function locate(hunk: Hunk, where: Where): Found {
  const wanted = hunk.lines.flatMap(({ mark, text }) => (mark === "+" ? [] : [text]));
  if (wanted.length === 0) return { at: insertionPoint(hunk, where), loose: false };
  for (const loose of [false, true]) {
    const found = chosen(candidates(wanted, where.lines, loose), hunk, where, wanted.length);
    if (found !== undefined) return { at: found, loose };
  }
  throw new PatchMistake(`${where.name}: ${missed(hunk, wanted, where.lines)}`);
}

/** Without spaces at the end, and with bytes that are no UTF-8 as they are shown. */
function bare(line: string): string {
  let end = line.length;
  while (end > 0 && " \t\r".includes(line[end - 1] ?? "x")) end -= 1;
  return line.slice(0, end).toWellFormed();
}

function candidates(wanted: readonly string[], lines: readonly string[], loose: boolean): readonly number[] {
  const same = loose
    ? (one = "", other = "") => bare(one) === bare(other)
    : (one = "", other = "") => one === other;
  const starts: number[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at += 1)
    if (wanted.every((line, index) => same(line, lines[at + index]))) starts.push(at);
  return starts;
}

function chosen(
  all: readonly number[],
  hunk: Hunk,
  { lines, after, drift, name }: Where,
  length: number,
): number | undefined {
  const fitting = anchored(hunk.atEnd ? all.filter((at) => at + length === lines.length) : all, hunk, lines);
  if (hunk.at !== undefined && fitting.includes(hunk.at + drift)) return hunk.at + drift;
  const later = fitting.filter((at) => at >= after);
  const left = later.length > 0 ? later : fitting;
  if (left.length > 1)
    throw new PatchMistake(
      `${name}: its lines are found ${left.length} times, at lines ${left
        .slice(0, 10)
        .map((at) => at + 1)
        .join(", ")}. Give more lines around the change, or a line above it behind @@`,
    );
  return left[0];
}

/** The first place below each line that the anchors lead to. */
function anchored(starts: readonly number[], { anchors }: Hunk, lines: readonly string[]): readonly number[] {
  if (anchors.length === 0) return starts;
  const below = anchorLines(anchors, lines).map((line) => starts.find((at) => at >= line));
  const found = new Set(below.filter((at) => at !== undefined));
  return found.size > 0 ? [...found] : starts;
}

/** Lines at which the last anchor stands, below the ones before it. */
function anchorLines(anchors: readonly string[], lines: readonly string[]): readonly number[] {
  let from = [0];
  for (const anchor of anchors.map((one) => one.trim())) {
    const first = from[0] ?? lines.length;
    from = [...lines.keys()].filter((at) => at >= first && lines[at]?.trim() === anchor);
  }
  return from;
}

/** Where lines go that stand beside none of the file's. */
function insertionPoint({ at, anchors, atEnd }: Hunk, { lines, drift, name }: Where): number {
  if (at !== undefined) return Math.min(lines.length, Math.max(0, at + drift));
  if (anchors.length === 0 || atEnd) return lines.length;
  const places = anchorLines(anchors, lines);
  const [place] = places;
  if (place !== undefined && places.length === 1) return place + 1;
  throw new PatchMistake(
    `${name}: the line behind @@, "${anchors.at(-1)}", is found ${places.length} times; give lines around the change`,
  );
}

function missed(hunk: Hunk, wanted: readonly string[], lines: readonly string[]): string {
  const made = hunk.lines.flatMap(({ mark, text }) => (mark === "-" ? [] : [text]));
  const [done] =
    made.length > 0 && hunk.lines.some(({ mark }) => mark !== " ") ? candidates(made, lines, false) : [];
  if (done !== undefined && made.some((line) => line.trim() !== ""))
    return `its old lines are not in the file, and its new ones already are, at line ${done + 1}: it seems to be done`;
  const place = nearestPlace(wanted, lines);
  if (place === undefined)
    return "its old lines are not in the file, nor anything like them. Read the file again";
  const why = place.spacing ? "differ only in spaces or tabs" : "are nearest";
  return `its old lines are not in the file; lines ${place.first}-${place.last} ${why}. Copy them exactly:\n${placeShown(place, lines)}`;
}

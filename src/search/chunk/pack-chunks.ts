import type { Piece } from "../index-words.ts";
import { jointKind, jointNames, type Mark, type Part, partsOf, MAX_COUNT } from "./marks.ts";

/** Parts are joined up to this length, about 500 tokens. */
const TARGET = 1800;

/** A shorter declaration is joined with its neighbours. */
const SMALL = 500;

/** A shorter part gets no chunk of its own: a closing bracket, an empty statement. */
const TINY = 40;

/** The pieces of a text: small parts joined with their neighbours, big parts split. An empty text has no pieces. */
export function pack(text: string, marks: readonly Mark[]): readonly Piece[] {
  const parts = partsOf(text, marks).flatMap((part) => split(text, part));
  const groups: Group[] = [];
  for (const part of parts) placePart(text, groups, part);
  const lines = new Lines(text);
  return withoutRemainders(groups).map((group) => {
    const start = lines.of(group.start);
    const end = lines.of(group.end - 1);
    const { names } = jointNames(group.parts);
    const symbol = names.length === 0 ? null : names.join(", ");
    return { start, end, kind: group.kind(), symbol, text: text.slice(group.start, group.end) };
  });
}

class Group {
  readonly parts: Part[];
  readonly start: number;
  end: number;

  constructor(part: Part, start = part.start) {
    this.parts = [part];
    this.start = start;
    this.end = part.end;
  }

  get first(): Part {
    return this.parts[0] as Part;
  }

  get size(): number {
    return this.end - this.start;
  }

  add(part: Part): void {
    this.parts.push(part);
    this.end = part.end;
  }

  take(group: Group): void {
    this.parts.push(...group.parts);
    this.end = group.end;
  }

  kind(): Piece["kind"] {
    const own = this.parts.filter((part) => part.own);
    return jointKind((own.length === 0 ? this.parts : own).map((part) => part.kind));
  }
}

function split(text: string, part: Part): readonly Part[] {
  if (part.end - part.start <= MAX_COUNT) return part.end > part.start ? [part] : [];
  const cuts = lineCuts(text, part, { target: TARGET, most: MAX_COUNT });
  return [part.start, ...cuts].map((start, index) => ({ ...part, start, end: cuts[index] ?? part.end }));
}

/** Adds a part to the last group, or begins another. A tiny part never becomes a group of its own. */
function placePart(text: string, groups: Group[], part: Part): void {
  const last = groups.at(-1);
  if (last === undefined || part.end - last.start > MAX_COUNT) groups.push(new Group(part));
  else if (isTiny(text, part) && part.kind !== "imports") last.end = part.end;
  else if (last.parts.length === 1 && part.kind === "imports" && isTiny(text, last.first))
    groups.splice(-1, 1, new Group(part, last.start));
  else if (joins(last, part)) last.add(part);
  else groups.push(new Group(part));
}

const isTiny = (text: string, { own, start, end }: Part): boolean =>
  !own && end - start < 400 && text.slice(start, end).trim().length < TINY;

/** Whether a part belongs with the group: it has the same scope, or is the body below the group's head. */
const belongsTo = (group: Group, part: Part): boolean =>
  part.scope === group.first.scope ||
  group.parts.some(({ names }) => part.scope !== "" && names[0] === part.scope);

/** For a group and a part that together fit into one piece. */
function joins(group: Group, part: Part): boolean {
  const size = part.end - part.start;
  if ((group.first.kind === "imports") !== (part.kind === "imports") || !belongsTo(group, part)) return false;
  // The head of a class alone says little.
  if (group.first.kind === "class" && group.size < SMALL / 2 && part.scope !== group.first.scope) return true;
  if (group.size + size > TARGET) return false;
  if (part.kind === "imports" || !part.own) return true;
  if (part.kind === "class" && group.size > SMALL) return false;
  return size < SMALL || group.size < SMALL;
}

/** A small remainder of a split declaration joins the group before it. */
function withoutRemainders(groups: readonly Group[]): readonly Group[] {
  const kept: Group[] = [];
  for (const group of groups) {
    const last = kept.at(-1);
    const rest = last !== undefined && group.size < SMALL && group.end - last.start <= MAX_COUNT;
    if (rest && group.parts.every((part) => !part.own && belongsTo(last, part) && part.kind !== "imports"))
      last.take(group);
    else kept.push(group);
  }
  return kept;
}

/**
 * Counts lines as readers and editors do: each ends with a line feed. A carriage return alone ends no line, so a text
 * from an old Macintosh is one line.
 */
class Lines {
  private readonly text: string;
  private line = 1;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The line of an offset, from 1. Offsets must not descend from call to call. */
  of(offset: number): number {
    for (;;) {
      const end = this.text.indexOf("\n", this.at);
      if (end === -1 || end >= offset) return this.line;
      this.at = end + 1;
      this.line += 1;
    }
  }
}

/**
 * How good a cut before the line at `at` is: best after an empty line, then before an unindented line, then anywhere.
 */
function cutQuality(text: string, at: number): number {
  const before = text.charCodeAt(at - 2);
  if (before === 10 || (before === 13 && text.charCodeAt(at - 3) === 10)) return 3;
  const code = text.charCodeAt(at);
  return code === 32 || code === 9 || code === 125 || code === 41 || code === 93 ? 1 : 2;
}

/** A cut inside a line, never between the halves of one character. */
function insideLine(text: string, start: number, most: number): number {
  const place = start + most;
  const code = text.charCodeAt(place);
  const low = code >= 0xdc00 && code < 0xe000;
  return low || (code === 10 && text.charCodeAt(place - 1) === 13) ? place - 1 : place;
}

interface Size {
  readonly target: number;
  readonly most: number;
}

/**
 * Where to cut `start` to `end` so that no part is longer than `most`: near `target`, at line starts, best after an
 * empty line. Only a line longer than `most` is cut inside. Ascending, without `start` and `end`.
 */
export function lineCuts(
  text: string,
  span: { start: number; end: number },
  { target, most }: Size,
): number[] {
  const cuts: number[] = [];
  let start = span.start;
  while (span.end - start > most) {
    const cut = bestCut(text, start, { target, most });
    cuts.push(cut);
    start = cut;
  }
  return cuts;
}

function bestCut(text: string, start: number, { target, most }: Size): number {
  let best = -1;
  let value = 0;
  let line = text.indexOf("\n", start) + 1;
  while (line > 0 && line - start <= most) {
    const size = line - start;
    // Less than half the target is too short even for the best border; beyond the target only a better border counts.
    const scale = size < target / 2 ? 0.01 : size > target ? 0.5 : 1;
    const found = cutQuality(text, line) * scale;
    if (found > value || (found === value && size <= target)) [best, value] = [line, found];
    line = text.indexOf("\n", line) + 1;
  }
  return best === -1 ? insideLine(text, start, most) : best;
}

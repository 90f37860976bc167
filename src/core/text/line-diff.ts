/** A range of lines that replaces a range of the other text. Line numbers start at 0, ends are exclusive. */
export interface LineChange {
  readonly from: number;
  readonly to: number;
  readonly newFrom: number;
  readonly newTo: number;
}

/** Lines with their ends: a last line without an end differs from one with it. */
export const splitLines = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** What differs in two lists of lines: numbers stand for lines, without those common at the start and end. */
interface DifferingLines {
  readonly before: number[];
  readonly after: number[];
  /** How many lines both lists begin with. */
  readonly start: number;
  /** Lower bound of the lines that are added and removed. */
  readonly least: number;
}

/**
 * Reads every line once, so that comparing lines costs a diff nothing, however long they are. `least` shows that two
 * texts are too different before a diff has tried all its steps on them.
 */
export function differingLines(before: readonly string[], after: readonly string[]): DifferingLines {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const numbers = new Map<string, number>();
  /** For each line, how much more often the first list has it than the second. */
  const surplus: number[] = [];
  const numbered = (lines: readonly string[], one: 1 | -1): number[] =>
    lines.slice(start, lines.length - end).map((line) => {
      const number = numbers.get(line) ?? numbers.size;
      numbers.set(line, number);
      surplus[number] = (surplus[number] ?? 0) + one;
      return number;
    });
  const lists = { before: numbered(before, 1), after: numbered(after, -1) };
  return { ...lists, start, least: surplus.reduce((sum, count) => sum + Math.abs(count), 0) };
}

/** A run of lines in a diff, in the form of the package `diff`. */
interface Run {
  readonly count: number;
  readonly added: boolean;
  readonly removed: boolean;
}

/** Changes that turn one list into the other, in order. Without `runs`, since the diff was too long: one change. */
export function changesOf(runs: readonly Run[] | undefined, of: DifferingLines): readonly LineChange[] {
  const whole = [
    { count: of.before.length, added: false, removed: true },
    { count: of.after.length, added: true, removed: false },
  ];
  const changes: LineChange[] = [];
  let [at, newAt] = [of.start, of.start];
  for (const { count, added, removed } of runs ?? whole) {
    const [to, newTo] = [added ? at : at + count, removed ? newAt : newAt + count];
    if ((added || removed) && count > 0) {
      const last = changes.at(-1);
      if (last?.to === at && last.newTo === newAt) changes[changes.length - 1] = { ...last, to, newTo };
      else changes.push({ from: at, to, newFrom: newAt, newTo });
    }
    [at, newAt] = [to, newTo];
  }
  return changes;
}

/** Groups changes with at most this many lines between them. */
export function groupChanges(
  changes: readonly LineChange[],
  apart: number,
): readonly (readonly LineChange[])[] {
  const groups: LineChange[][] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (last !== undefined && change.from - (last.at(-1)?.to ?? 0) <= apart) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

/** The hunks of a unified diff, with this many lines around each change. Lines include their ends. */
export const hunksOf = (
  changes: readonly LineChange[],
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
  around: number,
): readonly DiffHunk[] =>
  groupChanges(changes, 2 * around).map((group) => {
    const [first, last] = [group[0], group.at(-1)];
    if (first === undefined || last === undefined) return { from: [0, 0], to: [0, 0], lines: [] };
    const start = Math.max(0, first.from - around);
    const end = Math.min(before.length, last.to + around);
    const lines: string[] = [];
    let at = start;
    for (const { from, to, newFrom, newTo } of group) {
      mark(lines, " ", before.slice(at, from));
      mark(lines, "-", before.slice(from, to));
      mark(lines, "+", after.slice(newFrom, newTo));
      at = to;
    }
    mark(lines, " ", before.slice(at, end));
    const newStart = first.newFrom - (first.from - start);
    return { from: range(start, end), to: range(newStart, last.newTo + (end - last.to)), lines };
  });

/** An empty range names the line before it. */
const range = (start: number, end: number): readonly [number, number] => [
  end === start ? start : start + 1,
  end - start,
];

/** Adds them one by one: a call takes only so many arguments. */
function mark(marked: string[], sign: string, lines: readonly string[]): void {
  for (const line of lines)
    if (line.endsWith("\n")) marked.push(`${sign}${line.slice(0, -1)}`);
    else marked.push(`${sign}${line}`, "\\ No newline at end of file");
}

/** How many lines the changes add and remove. */
export const lineCounts = (
  changes: readonly LineChange[],
): { readonly added: number; readonly removed: number } => ({
  added: changes.reduce((sum, { newFrom, newTo }) => sum + newTo - newFrom, 0),
  removed: changes.reduce((sum, { from, to }) => sum + to - from, 0),
});

/** Longer lines are cut. */
export const MAX_LINE_LENGTH = 2 ** 20;
/** The end of a line that was cut; no JSON ends with it. */
const CUT = "\u2026";

/**
 * The lines of a UTF-8 text. Only a line feed ends a line, as in JSON lines: U+2028 and the like may occur within one.
 * A byte order mark at the start is left out; lines are cut at MAX_LINE_LENGTH.
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending: string[] = [];
  let length = 0;
  const hold = (text: string): void => {
    if (text !== "" && length <= MAX_LINE_LENGTH) pending.push(text);
    length += text.length;
  };
  const line = (): string => {
    const whole = pending.join("");
    const cut = length > MAX_LINE_LENGTH;
    pending = [];
    length = 0;
    return cut ? whole.slice(0, MAX_LINE_LENGTH) + CUT : whole;
  };
  for await (const chunk of chunks) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    hold(first);
    for (const next of others) {
      yield line();
      hold(next);
    }
  }
  hold(decoder.decode());
  if (length > 0) yield line();
}

/** The change of one path. Paths are byte texts. */
export interface FileDiff {
  readonly path: string;
  readonly change: "added" | "deleted" | "modified" | "renamed";
  /** The former path of a renamed file. */
  readonly was: string | null;
  readonly before: FileSide | null;
  readonly after: FileSide | null;
  /** null: the contents differ, and cannot be shown in lines. */
  readonly lines: LineDiff | null;
  /** There are no lines because the whole diff would be too long. */
  readonly cut?: true;
}

export interface FileSide {
  readonly kind: "file" | "link" | "folder" | "fifo" | "socket" | "device" | "unkept";
  /** The lower twelve bits; null for a link. */
  readonly mode: number | null;
  readonly size: number;
}

export interface LineDiff {
  readonly added: number;
  readonly removed: number;
  readonly hunks: readonly DiffHunk[];
}

export interface DiffHunk {
  /** As in a hunk's header: the first line, from 1 on, and the number of lines. */
  readonly from: readonly [first: number, count: number];
  readonly to: readonly [first: number, count: number];
  /** Each with " ", "-" or "+" before it, without its end. A line that begins with "\\" follows one without an end. */
  readonly lines: readonly string[];
}

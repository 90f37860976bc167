/** A range of lines that replaces a range of the other text. Line numbers are from 0, ends exclusive. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly newFrom: number;
  readonly newTo: number;
}

/** Texts that differ in more lines are told as one change: nobody reads such a diff line by line. */
const MOST_STEPS = 400;

/** What turns one list of lines into the other, in order, as small as Myers' greedy search finds it. */
export function lineChanges(
  before: readonly string[],
  after: readonly string[],
  mostSteps = MOST_STEPS,
): readonly Change[] {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [a, b] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  if (a.length === 0 && b.length === 0) return [];
  const changes = merged(
    stepsBetween(a, b, mostSteps) ?? [{ from: 0, to: a.length, newFrom: 0, newTo: b.length }],
  );
  return changes.map(({ from, to, newFrom, newTo }) => ({
    from: from + start,
    to: to + start,
    newFrom: newFrom + start,
    newTo: newTo + start,
  }));
}

/** Single lines taken out or put in, first to last; undefined when there are too many. */
function stepsBetween(
  a: readonly string[],
  b: readonly string[],
  mostSteps: number,
): readonly Change[] | undefined {
  const trail: Int32Array[] = [];
  const most = Math.min(a.length + b.length, mostSteps);
  // reach[k + most + 1]: how far into `a` the best path on diagonal k has come.
  const reach = new Int32Array(2 * most + 3);
  for (let steps = 0; steps <= most; steps += 1) {
    trail.push(reach.slice(most + 1 - steps - 1, most + 1 + steps + 2));
    for (let k = -steps; k <= steps; k += 2) {
      const at = k + most + 1;
      const [left, right] = [reach[at - 1] ?? 0, reach[at + 1] ?? 0];
      const x = alongSame(a, b, comesDown({ k, steps, left, right }) ? right : left + 1, k);
      reach[at] = x;
      if (x >= a.length && x - k >= b.length) return walkedBack(trail, a.length, b.length);
    }
  }
  return undefined;
}

interface Fork {
  readonly k: number;
  readonly steps: number;
  readonly left: number;
  readonly right: number;
}

/** Whether the best path comes onto diagonal k by a line put in, not by one taken out. */
const comesDown = ({ k, steps, left, right }: Fork): boolean => k === -steps || (k !== steps && left < right);

/** How far lines are the same from here on. */
function alongSame(a: readonly string[], b: readonly string[], start: number, k: number): number {
  let x = start;
  while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
  return x;
}

function walkedBack(trail: readonly Int32Array[], length: number, newLength: number): readonly Change[] {
  const steps: Change[] = [];
  let [x, y] = [length, newLength];
  for (let step = trail.length - 1; step > 0; step -= 1) {
    const reach = trail[step] ?? new Int32Array();
    const k = x - y;
    const [left, right] = [reach[k + step] ?? 0, reach[k + step + 2] ?? 0];
    const down = comesDown({ k, steps: step, left, right });
    x = down ? right : left;
    y = x - (down ? k + 1 : k - 1);
    steps.push({ from: x, to: down ? x : x + 1, newFrom: y, newTo: down ? y + 1 : y });
  }
  return steps.toReversed();
}

/** Steps with nothing between them are one change. */
function merged(steps: readonly Change[]): readonly Change[] {
  const changes: Change[] = [];
  for (const step of steps) {
    const last = changes.at(-1);
    if (last !== undefined && last.to === step.from && last.newTo === step.newFrom)
      changes[changes.length - 1] = { ...last, to: step.to, newTo: step.newTo };
    else changes.push(step);
  }
  return changes;
}

/** A longer line is cut. */
export const LONGEST_LINE = 2 ** 20;
/** What a line that was cut ends with: no JSON does. */
const CUT = "\u2026";

/**
 * The lines of a text in UTF-8. Only a line feed ends one, as in JSON lines: U+2028 and its like may stand inside of one.
 * A mark of the byte order at the start is left out; what is kept of a line is bounded.
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let held: string[] = [];
  let length = 0;
  const hold = (text: string): void => {
    if (text !== "" && length <= LONGEST_LINE) held.push(text);
    length += text.length;
  };
  const line = (): string => {
    const whole = held.join("");
    const cut = length > LONGEST_LINE;
    held = [];
    length = 0;
    return cut ? whole.slice(0, LONGEST_LINE) + CUT : whole;
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

/** What became of one path. Paths are byte texts. */
export interface FileDiff {
  readonly path: string;
  readonly change: "added" | "deleted" | "modified" | "renamed";
  /** Where a renamed one was. */
  readonly was: string | null;
  readonly before: FileSide | null;
  readonly after: FileSide | null;
  /** null: the contents are others, and not to be told in lines. */
  readonly lines: LineDiff | null;
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
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  /** As in the head of a hunk: the first line, from 1 on, and how many. */
  readonly from: readonly [first: number, count: number];
  readonly to: readonly [first: number, count: number];
  /** Each with " ", "-" or "+" before it, without its end. A line without an end is followed by one of "\\". */
  readonly lines: readonly string[];
}

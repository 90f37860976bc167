/**
 * Lines as readers and editors count them here: they end with a line feed. A carriage return alone ends none, so a text
 * of the oldest Macintosh is one line.
 */
export class Lines {
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

/** How good a place is to cut before the line that begins at `at`: an empty line before it, no indent, any. */
function worth(text: string, at: number): number {
  const before = text.charCodeAt(at - 2);
  if (before === 10 || (before === 13 && text.charCodeAt(at - 3) === 10)) return 3;
  const code = text.charCodeAt(at);
  return code === 32 || code === 9 || code === 125 || code === 41 || code === 93 ? 1 : 2;
}

/** A place inside a line, never between the halves of one character. */
function insideLine(text: string, start: number, most: number): number {
  const place = start + most;
  const code = text.charCodeAt(place);
  const low = code >= 0xdc00 && code < 0xe000;
  return low || (code === 10 && text.charCodeAt(place - 1) === 13) ? place - 1 : place;
}

export interface Size {
  readonly target: number;
  readonly most: number;
}

/**
 * Where to cut `start` to `end` so that no part is longer than `most`: near `target`, where lines begin, best behind an
 * empty line. Only a line that is longer than `most` is cut inside. Ascending, without `start` and `end`.
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
    // Half a target is too little for the best of borders; behind the target only a better one counts.
    const scale = size < target / 2 ? 0.01 : size > target ? 0.5 : 1;
    const found = worth(text, line) * scale;
    if (found > value || (found === value && size <= target)) [best, value] = [line, found];
    line = text.indexOf("\n", line) + 1;
  }
  return best === -1 ? insideLine(text, start, most) : best;
}

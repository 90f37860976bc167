import { fits, headWithin, tailWithin } from "../core/bytes.ts";
import type { Outputs } from "../core/session.ts";
import { visible } from "../core/visible.ts";

/** Bytes of one result that go to the model. */
export const MOST_BYTES = 30_000;
/** For the line that says what is left out. */
const MARKER = 200;
const HEAD = Math.floor(((MOST_BYTES - MARKER) * 2) / 3);
const TAIL = MOST_BYTES - MARKER - HEAD;

export interface Bounded {
  readonly text: string;
  /** Under which the whole is kept, when the text is not all of it. */
  readonly full?: string;
}

/** What of a result goes to the model: its head and tail, with every control shown; the whole is kept for `show_full`. */
export function bound(given: string, outputs: Outputs): Bounded {
  const text = visible(given.toWellFormed());
  if (fits(text, MOST_BYTES)) return { text };
  const head = headLines(headWithin(text, HEAD));
  const tail = tailLines(tailWithin(text, TAIL));
  const full = outputs.keep(text);
  const left = text.length - head.length - tail.length;
  const more = `show_full ${JSON.stringify({ id: full, offset: head.length })} goes on from here`;
  const marker = `[… ${counted(left)} of ${counted(text.length)} characters left out; ${more} …]`;
  return { text: `${head}${head.endsWith("\n") ? "" : "\n"}${marker}\n${tail}`, full };
}

const counted = (count: number): string => count.toLocaleString("en-US");

/** Whole lines, where they are more than half of it. */
function headLines(head: string): string {
  const end = head.lastIndexOf("\n") + 1;
  return end > head.length / 2 ? head.slice(0, end) : head;
}

function tailLines(tail: string): string {
  const start = tail.indexOf("\n") + 1;
  return start < tail.length / 2 ? tail.slice(start) : tail;
}

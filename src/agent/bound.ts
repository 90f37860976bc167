import type { Outputs } from "../core/session.ts";
import { visible } from "../core/visible.ts";

/** Bytes of one result that go to the model. */
export const MOST_BYTES = 30_000;
/** For the line that says what is left out. */
const MARKER_BYTES = 200;
const HEAD = Math.floor(((MOST_BYTES - MARKER_BYTES) * 2) / 3);
const TAIL = MOST_BYTES - MARKER_BYTES - HEAD;

export interface Bounded {
  readonly text: string;
  /** Under which the whole is kept, when the text is not all of it. */
  readonly full?: string;
}

/** What of a result goes to the model: its head and tail, with every control shown; the whole is kept for `show_full`. */
export function bound(given: string, outputs: Outputs): Bounded {
  const text = visible(given.toWellFormed());
  if (fits(text, MOST_BYTES)) return { text };
  const head = headOf(text, HEAD);
  const tail = tailOf(text, TAIL);
  const full = outputs.keep(text);
  const left = text.length - head.length - tail.length;
  const more = `show_full ${JSON.stringify({ id: full, offset: head.length })} goes on from here`;
  const marker = `[… ${counted(left)} of ${counted(text.length)} characters left out; ${more} …]`;
  return { text: `${head}${head.endsWith("\n") ? "" : "\n"}${marker}\n${tail}`, full };
}

const counted = (count: number): string => count.toLocaleString("en-US");

/** In UTF-8. */
export function fits(text: string, bytes: number): boolean {
  if (text.length > bytes) return false;
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}

/** Cut behind a line where that costs less than half, and never within a character. */
export function headOf(text: string, bytes: number): string {
  let end = 0;
  for (let left = bytes; end < text.length;) {
    const { size, units } = character(text.codePointAt(end));
    left -= size;
    if (left < 0) break;
    end += units;
  }
  const line = text.lastIndexOf("\n", end - 1) + 1;
  return text.slice(0, end < text.length && line > end / 2 ? line : end);
}

function tailOf(text: string, bytes: number): string {
  let start = text.length;
  for (let left = bytes; start > 0;) {
    const { size, units } = character(pointBefore(text, start));
    left -= size;
    if (left < 0) break;
    start -= units;
  }
  const line = text.indexOf("\n", start) + 1;
  return text.slice(line > 0 && line < (start + text.length) / 2 ? line : start);
}

function pointBefore(text: string, end: number): number | undefined {
  const point = end > 1 ? text.codePointAt(end - 2) : undefined;
  return point !== undefined && point > 0xffff ? point : text.codePointAt(end - 1);
}

function character(point = 0): { readonly size: number; readonly units: number } {
  if (point < 0x80) return { size: 1, units: 1 };
  if (point < 0x800) return { size: 2, units: 1 };
  return point < 0x1_0000 ? { size: 3, units: 1 } : { size: 4, units: 2 };
}

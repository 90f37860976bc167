import { visibleLine } from "./text/visible.ts";

/** A word that a shell may complete, and the description shown beside it. */
export interface Candidate {
  readonly value: string;
  readonly about: string;
}

export const word = (value: string, about = ""): Candidate => ({ value, about });

/** Characters that have no meaning to any shell, wherever they stand in a word; other words are not offered. */
const PLAIN_WORD = /^[\w./@%,:+-][\w./@%,:+=-]*$/;
const MAX_WORD = 200;
const MAX_ABOUT = 60;

/** Titles and names come from others: no part of a line may be read as a second line, or by a terminal. */
export function candidateLine({ value, about }: Candidate): string | undefined {
  if (!PLAIN_WORD.test(value) || value.length > MAX_WORD) return undefined;
  const shown = visibleLine(about);
  const short = shown.length <= MAX_ABOUT ? shown : `${shown.slice(0, MAX_ABOUT - 1).toWellFormed()}…`;
  return short === "" ? value : `${value}\t${short}`;
}

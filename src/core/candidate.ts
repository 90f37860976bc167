import { visibleLine } from "./text/visible.ts";

/** A word that a shell may put where somebody types, and what is shown beside it. */
export interface Candidate {
  readonly value: string;
  readonly about: string;
}

export const word = (value: string, about = ""): Candidate => ({ value, about });

/** Letters that mean nothing to any shell, wherever in a word they stand; a word of others is not offered. */
const PLAIN_WORD = /^[\w./@%,:+-][\w./@%,:+=-]*$/;
const MAX_WORD = 200;
const MAX_ABOUT = 60;

/** Titles and names were given by others: nothing of a line is read as a second one, or by a terminal. */
export function candidateLine({ value, about }: Candidate): string | undefined {
  if (!PLAIN_WORD.test(value) || value.length > MAX_WORD) return undefined;
  const shown = visibleLine(about);
  const short = shown.length <= MAX_ABOUT ? shown : `${shown.slice(0, MAX_ABOUT - 1).toWellFormed()}…`;
  return short === "" ? value : `${value}\t${short}`;
}

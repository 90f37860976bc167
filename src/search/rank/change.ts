import { stem } from "./stem.ts";

const EMPTY = "add added allow ensure fix handle implement improve support update";
const VERBS =
  "adjust avoid change cleanup correct deprecate disable drop enable introduce move prevent provide refactor remove " +
  "rename replace report";

const stems = (words: string): ReadonlySet<string> => new Set(words.split(" ").map(stem));

/** Words that tell of a change more often than of its place, in all their forms: `added support`, `fixes`. */
export const CHANGE_WORDS = stems(EMPTY);

/** Words that tell what is to be done where a query begins with them. Further on, `remove` may well be a name. */
export const OPENING_WORDS = stems(`${EMPTY} ${VERBS}`);

/** How much of a text is looked at. Beyond it there is an error, so that nothing unseen is ever taken for harmless. */

/** Expansions in each other: each level is read again when it is looked into. */
const DEEPEST = 10;
/** Each level of a long text costs more. */
const LONG = 10_000;
const DEEPEST_OF_LONG = 3;
/** Openings of expansions in a long text; with more of them none is looked into. */
const MANY = 1000;

export function deepestFor(text: string): number {
  if (text.length <= LONG) return DEEPEST;
  return text.split("$").length > MANY ? 0 : DEEPEST_OF_LONG;
}

/** Of anything in anything, such as sums of sums. */
export const DEEPEST_TREE = 200;

/** About what things cost to judge, and how much may be spent on one text. */
export const COST = { command: 5, word: 2, redirect: 10, substitution: 20 };
export const BUDGET = 16_000;

import type { Pair } from "./said.ts";

/** What a word's form may add to its stem, and what may stand between two words: `caching_the`, `cache: store`. */
const LONGEST_ENDING = 8;
const WIDEST_GAP = 3;
/** Of that so much where they are one name: `cachedirectory`, of which the stem is `cach`. */
const JOINED_ENDING = 3;

/** Whether two words stand side by side in a text in lower case, in any of their forms, apart or as one name. */
export function beside(text: string, [one, other]: Pair): boolean {
  for (let from = text.indexOf(one); from !== -1; from = text.indexOf(one, from + 1)) {
    const end = from + one.length;
    const word = skip(text, end, LONGEST_ENDING, isLetter);
    for (let at = end; at <= Math.min(word, end + JOINED_ENDING); at += 1)
      if (text.startsWith(other, at)) return true;
    const next = skip(text, word, WIDEST_GAP, isGap);
    if (next > word && text.startsWith(other, next)) return true;
  }
  return false;
}

function skip(text: string, from: number, most: number, over: (code: number) => boolean): number {
  const end = Math.min(text.length, from + most);
  let at = from;
  while (at < end && over(text.charCodeAt(at))) at += 1;
  return at;
}

const isLetter = (code: number): boolean => code >= 97 && code <= 122;
const isGap = (code: number): boolean => !isLetter(code) && !(code >= 48 && code <= 57);

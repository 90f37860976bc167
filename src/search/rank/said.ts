import { STOP_WORDS } from "./stop.ts";
import type { Tokenizer } from "./tokens.ts";

/** What a query says beyond its single words. */
export interface Said {
  /** Of `trie-router: count every slash` what is before the colon, in words. */
  readonly scope: readonly string[];
  /** Words side by side, each as what its forms begin with. */
  readonly pairs: readonly Pair[];
  /** Names that no prose has: of several words, called, or between backquotes. As they are spelled. */
  readonly spelled: readonly string[];
}

export type Pair = readonly [one: string, other: string];

const MOST_LETTERS = 4000;
const MOST_PAIRS = 64;
const MOST_SPELLED = 32;
const SCOPE = /^([^:\n]{2,40}?):\s/;
const RUN = /[\p{L}\p{N}_$]+/gu;
const QUOTED = /`([^`\n]+)`/g;
const SEVERAL_WORDS = /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]/u;

export function saidBeyond(text: string, tokenizer: Tokenizer): Said {
  const read = text.slice(0, MOST_LETTERS);
  const scope = tokenizer.count(SCOPE.exec(read)?.[1] ?? "");
  return {
    scope: [...scope.keys()].filter((word) => !STOP_WORDS.has(word)),
    pairs: pairsOf(read, tokenizer),
    spelled: spelledOut(read),
  };
}

function pairsOf(text: string, tokenizer: Tokenizer): readonly Pair[] {
  const pairs: Pair[] = [];
  let before: string | undefined;
  for (const [run] of text.matchAll(RUN)) {
    const words = STOP_WORDS.has(run.toLowerCase()) ? [] : tokenizer.of(run);
    const [first] = words;
    if (first !== undefined && before !== undefined) pairs.push([before, beginning(first)]);
    // The last of several is all of them as one.
    const last = words.length > 1 ? words.at(-2) : first;
    before = last === undefined ? undefined : beginning(last);
  }
  return pairs.slice(0, MOST_PAIRS);
}

/** A stem may end in a letter that its word does not have: `directori`. */
const beginning = (stem: string): string => (stem.length > 3 ? stem.replace(/[iy]$/, "") : stem);

function spelledOut(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [, quoted = ""] of text.matchAll(QUOTED))
    for (const [run] of quoted.matchAll(RUN)) if (run.length > 2) found.add(run);
  for (const match of text.matchAll(RUN))
    if (SEVERAL_WORDS.test(match[0]) || text.startsWith("(", match.index + match[0].length))
      found.add(match[0]);
  return [...found].slice(0, MOST_SPELLED);
}

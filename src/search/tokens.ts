/** A longer run of letters is data, not a word. */
const MAX_LENGTH = 64;

/**
 * One pattern in two forms, which find the same in an ASCII text. To compile a class of Unicode letters takes a process
 * up to a millisecond, and most texts are ASCII.
 */
export interface TextPattern {
  readonly ascii: RegExp;
  readonly unicode: RegExp;
}

const BEYOND_ASCII = /[\u0080-\uFFFF]/;

/** The form of a pattern that suffices for a text. */
export const formFor = (text: string, { ascii, unicode }: TextPattern): RegExp =>
  BEYOND_ASCII.test(text) ? unicode : ascii;

/** Words contain only 16-bit characters, so that they are ordered alike everywhere. */
export const WORD_RUN: TextPattern = { ascii: /[\w$]+/g, unicode: /[\p{L}\p{N}_$]+/gu };
const BEYOND_16_BITS = /[\u{10000}-\u{10ffff}]/u;
/** `HTTPServer2go` gives HTTP, Server2, go. */
export const PART: TextPattern = {
  ascii: /[A-Z]+(?=[A-Z][a-z])\d*|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+/g,
  unicode: /\p{Lu}+(?=\p{Lu}\p{Ll})\d*|\p{Lu}?[\p{Ll}\p{Lm}\p{Lo}]+\d*|\p{Lu}+\d*|\d+/gu,
};
export const WORD_AND_NUMBER: TextPattern = { ascii: /^([A-Za-z]{2,})\d+$/, unicode: /^(\p{L}{2,})\d+$/u };

export const IDENTIFIER: TextPattern = {
  ascii: /[A-Za-z_$][\w$]*/g,
  unicode: /[\p{L}_$][\p{L}\p{N}_$]*/gu,
};
/** An identifier of several words: `Cache` may just begin a sentence. */
export const SEVERAL_WORDS: TextPattern = {
  ascii: /[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]/,
  unicode: /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]/u,
};
/** The name of something that a file can define. */
export const DEFINABLE: TextPattern = {
  ascii: /^[A-Za-z_$][\w$]*[?!]?$/,
  unicode: /^[\p{L}_$][\p{L}\p{N}_$]*[?!]?$/u,
};

const hasLargeCharacters = (text: string): boolean => BEYOND_ASCII.test(text) && BEYOND_16_BITS.test(text);

/**
 * Finds the words of texts. An identifier is found by each of its parts, stemmed, and as one word: `HTTPServer` gives
 * `http`, `server` and `httpserver`. Remembers the identifiers it has met, up to a bound.
 */
export class Tokenizer {
  readonly #known = new Map<string, readonly string[]>();
  readonly #most: number;

  constructor(most = 50_000) {
    this.#most = most;
  }

  /** The words of a text with their counts. */
  count(text: string, into = new Map<string, number>()): Map<string, number> {
    for (const run of text.match(formFor(text, WORD_RUN)) ?? [])
      for (const word of this.of(run)) into.set(word, (into.get(word) ?? 0) + 1);
    return into;
  }

  /** Those of the wanted words that a text contains. */
  found(text: string, wanted: { has(word: string): boolean }): Set<string> {
    const found = new Set<string>();
    for (const run of text.match(formFor(text, WORD_RUN)) ?? [])
      for (const word of this.of(run)) if (wanted.has(word)) found.add(word);
    return found;
  }

  /** The words of one identifier. */
  of(identifier: string): readonly string[] {
    const known = this.#known.get(identifier);
    if (known !== undefined) return known;
    const isData = identifier.length > MAX_LENGTH || hasLargeCharacters(identifier);
    const words = isData ? [] : wordsOf(identifier);
    if (this.#known.size >= this.#most) this.#known.clear();
    this.#known.set(identifier, words);
    return words;
  }
}

function wordsOf(identifier: string): readonly string[] {
  const parts = identifier.match(formFor(identifier, PART)) ?? [];
  const words: string[] = [];
  for (const part of parts) {
    const word = part.toLowerCase();
    if (word.length < 2) continue;
    words.push(stem(word));
    const letters = formFor(word, WORD_AND_NUMBER).exec(word)?.[1];
    if (letters !== undefined) words.push(stem(letters));
  }
  if (parts.length < 2) return words;
  const whole = parts.join("").toLowerCase();
  return whole.length > 2 ? [...words, whole] : words;
}

type Rule = readonly [suffix: string, instead: string];

const STEP_2: readonly Rule[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
  ["logi", "log"],
];
const STEP_3: readonly Rule[] = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
];
const STEP_4: readonly Rule[] = [
  ["al", ""],
  ["ance", ""],
  ["ence", ""],
  ["er", ""],
  ["ic", ""],
  ["able", ""],
  ["ible", ""],
  ["ant", ""],
  ["ement", ""],
  ["ment", ""],
  ["ent", ""],
  ["sion", "s"],
  ["tion", "t"],
  ["ou", ""],
  ["ism", ""],
  ["ate", ""],
  ["iti", ""],
  ["ous", ""],
  ["ive", ""],
  ["ize", ""],
];

const PLAIN = /^[a-z]{3,}$/;
const CONSONANT = "[^aeiou]";
const VOWEL = "[aeiouy]";
const BLOCK = `${CONSONANT}[^aeiouy]*`;
const VOWELS = `${VOWEL}[aeiou]*`;
const ONE_OR_MORE = new RegExp(`^(?:${BLOCK})?${VOWELS}${BLOCK}`);
const EXACTLY_ONE = new RegExp(`^(?:${BLOCK})?${VOWELS}${BLOCK}(?:${VOWELS})?$`);
const TWO_OR_MORE = new RegExp(`^(?:${BLOCK})?${VOWELS}${BLOCK}${VOWELS}${BLOCK}`);
const HAS_VOWEL = new RegExp(`^(?:${BLOCK})?${VOWEL}`);
const SHORT_END = new RegExp(`^${BLOCK}${VOWEL}[^aeiouwxy]$`);

/**
 * Porter's stemmer (An algorithm for suffix stripping, 1980). Code and the prose about it share stems: `validate`,
 * `validation` and `validating` become one word. For lower-case ASCII words; others are returned unchanged.
 */
export function stem(word: string): string {
  if (!PLAIN.test(word)) return word;
  let made = endOfY(pastAndGerund(plural(word)));
  made = suffixes(made, STEP_2, ONE_OR_MORE);
  made = suffixes(made, STEP_3, ONE_OR_MORE);
  made = suffixes(made, STEP_4, TWO_OR_MORE);
  return lastLetters(made);
}

function plural(word: string): string {
  if (word.endsWith("sses") || word.endsWith("ies")) return word.slice(0, -2);
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word;
}

function pastAndGerund(word: string): string {
  if (word.endsWith("eed")) return ONE_OR_MORE.test(word.slice(0, -3)) ? word.slice(0, -1) : word;
  const match = /^(.+?)(?:ed|ing)$/.exec(word);
  const rest = match?.[1];
  if (rest === undefined || !HAS_VOWEL.test(rest)) return word;
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (/([^aeiouylsz])\1$/.test(rest)) return rest.slice(0, -1);
  return SHORT_END.test(rest) ? `${rest}e` : rest;
}

function endOfY(word: string): string {
  const rest = word.slice(0, -1);
  return word.endsWith("y") && HAS_VOWEL.test(rest) ? `${rest}i` : word;
}

/** The longest suffix decides, even if the remainder is too short for it. */
function suffixes(word: string, rules: readonly Rule[], measure: RegExp): string {
  let found: Rule | undefined;
  for (const rule of rules)
    if (word.endsWith(rule[0]) && rule[0].length > (found?.[0].length ?? 0)) found = rule;
  if (found === undefined) return word;
  const rest = word.slice(0, -found[0].length) + (found[1].length === 1 ? found[1] : "");
  if (!measure.test(rest)) return word;
  return found[1].length === 1 ? rest : rest + found[1];
}

function lastLetters(word: string): string {
  let made = word;
  if (made.endsWith("e")) {
    const rest = made.slice(0, -1);
    if (TWO_OR_MORE.test(rest) || (EXACTLY_ONE.test(rest) && !SHORT_END.test(rest))) made = rest;
  }
  return made.endsWith("ll") && TWO_OR_MORE.test(made) ? made.slice(0, -1) : made;
}

/** Words of questions and of prose about changes that say nothing about the thing sought. Stems are not listed. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "a about above after again against all also always an and another any anything are aren as at be because been " +
    "before being below between both but by can cannot could couldn did didn do does doesn doing don done down " +
    "during each either else etc even ever every few find for from further get gets getting give gives go goes " +
    "going good had has have haven having he hence her here him his how however if in instead into is isn it its " +
    "itself just know like ll look looks lot made make makes making many may maybe me might more most much must my " +
    "need needed needs neither never no nor not now of off on once one only onto or other others otherwise our out " +
    "over own perhaps please quite rather re really same see seem seems shall she should show shows since so some " +
    "something still such sure take takes tell than that the their them then there these they thing things this " +
    "those though through thus to too under until up upon us use used uses using ve very via want wants was wasn " +
    "way we well were what when where whether which while who whole whom whose why will with within without won " +
    "would wouldn yet you your"
  ).split(" "),
);

import { stem } from "./stem.ts";

/** A longer run of letters is data, not a word. */
const MAX_LENGTH = 64;
/** Words contain only 16-bit characters, so that they are ordered alike everywhere. */
const RUN = /[\p{L}\p{N}_$]+/gu;
const BEYOND_16_BITS = /[\u{10000}-\u{10ffff}]/u;
/** `HTTPServer2go` gives HTTP, Server2, go. */
const PART = /\p{Lu}+(?=\p{Lu}\p{Ll})\d*|\p{Lu}?[\p{Ll}\p{Lm}\p{Lo}]+\d*|\p{Lu}+\d*|\d+/gu;
const WORD_AND_NUMBER = /^(\p{L}{2,})\d+$/u;

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
    for (const run of text.match(RUN) ?? [])
      for (const word of this.of(run)) into.set(word, (into.get(word) ?? 0) + 1);
    return into;
  }

  /** Those of the wanted words that a text contains. */
  found(text: string, wanted: { has(word: string): boolean }): Set<string> {
    const found = new Set<string>();
    for (const run of text.match(RUN) ?? [])
      for (const word of this.of(run)) if (wanted.has(word)) found.add(word);
    return found;
  }

  /** The words of one identifier. */
  of(identifier: string): readonly string[] {
    const known = this.#known.get(identifier);
    if (known !== undefined) return known;
    const words =
      identifier.length > MAX_LENGTH || BEYOND_16_BITS.test(identifier) ? [] : wordsOf(identifier);
    if (this.#known.size >= this.#most) this.#known.clear();
    this.#known.set(identifier, words);
    return words;
  }
}

function wordsOf(identifier: string): readonly string[] {
  const parts = identifier.match(PART) ?? [];
  const words: string[] = [];
  for (const part of parts) {
    const word = part.toLowerCase();
    if (word.length < 2) continue;
    words.push(stem(word));
    const letters = WORD_AND_NUMBER.exec(word)?.[1];
    if (letters !== undefined) words.push(stem(letters));
  }
  if (parts.length < 2) return words;
  const whole = parts.join("").toLowerCase();
  return whole.length > 2 ? [...words, whole] : words;
}

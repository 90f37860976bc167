/** The words of a text with how often each is in it. */
export function wordsIn(text: string): ReadonlyMap<string, number> {
  const words = new Map<string, number>();
  for (const [run] of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    const parts = run.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|\p{L}+/gu) ?? [];
    for (const part of parts.length > 1 ? [...parts, run] : parts) {
      const word = part.toLowerCase();
      words.set(word, (words.get(word) ?? 0) + 1);
    }
  }
  return words;
}

/** What is looked for, each with what it weighs. */
export const wordsAsked = (text: string): readonly (readonly [string, number])[] =>
  [...wordsIn(text.slice(0, 4000)).keys()].map((word) => [word, 1]);

/** Expressions out of plain lists: words stand between blanks, `_` is a blank within a phrase. */

const NO_WORD_BEFORE = "(?<![\\p{L}\\p{N}_./-])";
const NO_WORD_BEHIND = "(?![\\p{L}\\p{N}_/-]|\\.\\p{L})";

export function wordsOf(list: string): readonly string[] {
  return list.trim().split(/\s+/);
}

/** One of the list, as a piece of an expression. */
export function oneOf(list: string): string {
  const escaped = wordsOf(list).map((word) =>
    word.replaceAll(/[+.*?()]/g, String.raw`\$&`).replaceAll("_", " "),
  );
  return `(?:${escaped.toSorted((a, b) => b.length - a.length).join("|")})`;
}

/** The text begins with one of the list. */
export const begins = (list: string): RegExp => new RegExp(`^${oneOf(list)}${NO_WORD_BEHIND}`, "u");

/** One of the list is a word of the text. */
export const has = (list: string): RegExp =>
  new RegExp(`${NO_WORD_BEFORE}${oneOf(list)}${NO_WORD_BEHIND}`, "u");

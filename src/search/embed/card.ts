import type { Chunk } from "../words.ts";

/** Of a card, in UTF-16 units: about the 2,000 tokens that the usual models see. */
const LONGEST_CARD = 6000;
const LONGEST_QUESTION = 2000;

/** What of a chunk a model sees: where it is, what it is called, then its text as far as there is room. */
export function cardOf({ path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">): string {
  const head = symbol === null ? path : `${path}\n${symbol}`;
  return cut(`${head}\n\n${text}`, LONGEST_CARD);
}

export const questionOf = (text: string): string => cut(text.trim(), LONGEST_QUESTION);

const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

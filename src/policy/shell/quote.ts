import { quote } from "shell-quote";

/** A shell text of exactly these words. */
export function shellText(words: readonly string[]): string {
  return quote(words);
}

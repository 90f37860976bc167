import type { Query } from "./query.ts";
import type { Tokenizer } from "./tokens.ts";

const LINES = 10;
const LONGEST_LINE = 240;

/** So many lines of the text that have most of the query's words, and the earliest of equal ones. */
export function preview(text: string, query: Query, tokenizer: Tokenizer): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const from = lines.length <= LINES ? 0 : bestWindow(lines, query, tokenizer);
  return lines
    .slice(from, from + LINES)
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line))
    .join("\n");
}

function bestWindow(lines: readonly string[], query: Query, tokenizer: Tokenizer): number {
  const wanted = new Map(query.words.map(({ word, weight }) => [word, weight]));
  const has = lines.map((line) => [...tokenizer.found(line, wanted)]);
  let best = 0;
  let most = -1;
  for (let from = 0; from + LINES <= lines.length; from += 1) {
    const seen = has.slice(from, from + LINES).flat();
    let score = seen.length * 0.1;
    for (const word of new Set(seen)) score += wanted.get(word) ?? 0;
    if (score <= most) continue;
    most = score;
    best = from;
  }
  return best;
}

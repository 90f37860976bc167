import type { Query } from "./query.ts";
import type { Tokenizer } from "./tokens.ts";

const LINES = 10;
const LONGEST_LINE = 240;

/** Lines that are shown above the first that has a word, where there is room. */
const LEAD = 2;

/** So many lines of the text that have most of the query's words; none of its first ones is empty. */
export function preview(text: string, query: Query, tokenizer: Tokenizer): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const best = lines.length <= LINES ? 0 : bestWindow(lines, query, tokenizer);
  const from = lines.findIndex((line, at) => at >= best && line.trim() !== "");
  return lines
    .slice(Math.max(from, 0), Math.max(from, 0) + LINES)
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line))
    .join("\n");
}

function bestWindow(lines: readonly string[], query: Query, tokenizer: Tokenizer): number {
  const wanted = new Map(query.words.map(({ word, weight }) => [word, weight]));
  const has = lines.map((line) => [...tokenizer.found(line, wanted)]);
  const scores = Array.from({ length: lines.length - LINES + 1 }, (_, from) => {
    const seen = has.slice(from, from + LINES).flat();
    return [...new Set(seen)].reduce((sum, word) => sum + (wanted.get(word) ?? 0), seen.length * 0.1);
  });
  const most = scores.reduce((one, other) => Math.max(one, other), 0);
  const first = scores.indexOf(most);
  const others = scores.findIndex((score, from) => from > first && score < most);
  const last = others === -1 ? scores.length - 1 : others - 1;
  return most === 0 ? 0 : Math.max(first, last - LEAD);
}

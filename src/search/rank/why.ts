import type { Chunk } from "../words.ts";
import type { Query } from "./query.ts";
import type { Tokenizer } from "./tokens.ts";

const MOST_NAMED = 8;

/** Where the query's words are: each is named once, at the most telling place. */
export function why(chunk: Chunk, query: Query, tokenizer: Tokenizer): string {
  const wanted = new Set(query.words.map(({ word }) => word));
  const places = [
    ["name", tokenizer.found(chunk.symbol ?? "", wanted)],
    ["path", tokenizer.found(chunk.path, wanted)],
    ["text", tokenizer.found(chunk.text, wanted)],
  ] as const;
  const said = new Map<string, string>();
  const found = { name: new Set<string>(), path: new Set<string>(), text: new Set<string>() };
  for (const { word, said: written } of query.words) {
    const place = places.find(([, words]) => words.has(word))?.[0];
    if (place === undefined || said.has(written)) continue;
    said.set(written, place);
    found[place].add(written);
  }
  const parts = (["name", "path", "text"] as const)
    .filter((place) => found[place].size > 0)
    .map((place) => `${place}: ${listed([...found[place]])}`);
  return parts.length === 0 ? "near in meaning" : parts.join("; ");
}

const listed = (words: readonly string[]): string =>
  words.length <= MOST_NAMED
    ? words.join(", ")
    : `${words.slice(0, MOST_NAMED).join(", ")} and ${words.length - MOST_NAMED} more`;

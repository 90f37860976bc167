import type { Chunk } from "../words.ts";
import { beside } from "./beside.ts";
import { namedBy } from "./name.ts";
import type { Query } from "./query.ts";
import { type Said, saidBeyond } from "./said.ts";
import type { Tokenizer } from "./tokens.ts";
import type { Weights } from "./weights.ts";

export interface Asked {
  readonly text: string;
  readonly query: Query;
  readonly tokenizer: Tokenizer;
  readonly weights: Weights;
}

/** What each file is worth beyond its words, by path. Chunks come best first: the texts of the first files are read. */
export function worthByPath(chunks: readonly Chunk[], asked: Asked): ReadonlyMap<string, number> {
  const { text, tokenizer, weights } = asked;
  const said = saidBeyond(text, tokenizer);
  const byName = nameWorth(said, asked);
  const worth = new Map<string, number>();
  for (const [path, ofFile] of Map.groupBy(chunks, (chunk) => chunk.path)) {
    const read = worth.size < weights.signs.files;
    worth.set(path, byName(path) * (read ? textWorth(ofFile, said, weights) : 1));
  }
  return worth;
}

function nameWorth({ scope }: Said, { query, tokenizer, weights }: Asked): (path: string) => number {
  const { inScope, atScope, name: named } = weights.signs;
  const asked = new Set(query.words.map(({ word }) => word));
  return (path) => {
    const { folder, name } = namedBy(path);
    const names = [...tokenizer.count(name).keys()];
    const worth = named ** share(names, asked);
    if (scope.length === 0) return worth;
    const folders = new Set(tokenizer.count(folder).keys());
    return worth * inScope ** share(scope, folders) * atScope ** share(scope, new Set(names));
  };
}

const share = (words: readonly string[], among: ReadonlySet<string>): number =>
  words.length === 0 ? 0 : words.filter((word) => among.has(word)).length / words.length;

function textWorth(chunks: readonly Chunk[], { pairs, spelled }: Said, { signs }: Weights): number {
  const left = { pairs, spelled };
  const words = [...new Set(pairs.flat())];
  const enough = pairs.length - signs.pairsMost;
  for (const { text } of chunks) {
    if (left.spelled.length > 0) left.spelled = left.spelled.filter((name) => !text.includes(name));
    if (left.pairs.length === 0 || left.pairs.length <= enough) continue;
    const lower = text.toLowerCase();
    const there = new Set(words.filter((word) => lower.includes(word)));
    left.pairs = left.pairs.filter(
      (pair) => !(there.has(pair[0]) && there.has(pair[1]) && beside(lower, pair)),
    );
  }
  const met = Math.min(signs.pairsMost, pairs.length - left.pairs.length) / signs.pairsMost;
  const has = spelled.length === 0 ? 0 : 1 - left.spelled.length / spelled.length;
  return signs.pairs ** met * signs.spelled ** has * signs.defined ** share(spelled, namesOf(chunks));
}

const namesOf = (chunks: readonly Chunk[]): ReadonlySet<string> =>
  new Set(chunks.flatMap(({ symbol }) => symbol?.split(/, |\.|::|#/) ?? []));

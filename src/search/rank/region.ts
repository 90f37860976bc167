import type { Chunk } from "../words.ts";

export interface Placed {
  readonly chunk: Chunk;
  readonly score: number;
}

const IDENTIFIER = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

/**
 * Which of a file's chunks takes its best score: the one that defines what the query spells out, then any that is more
 * than imports, then the better one. Files stand where they stood.
 */
export function bestRegions(placed: readonly Placed[], text: string): readonly Placed[] {
  const said = new Set(text.match(IDENTIFIER));
  const byPath = Map.groupBy(placed, ({ chunk }) => chunk.path);
  return [...byPath.values()].flatMap((ofFile) => {
    const ranks = new Map(ofFile.map(({ chunk }) => [chunk, fitness(chunk, said)]));
    const chunks = ofFile
      .map(({ chunk }) => chunk)
      .toSorted((a, b) => (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0));
    return ofFile.map(({ score }, place) => ({ chunk: chunks[place] as Chunk, score }));
  });
}

function fitness(chunk: Chunk, said: ReadonlySet<string>): number {
  if (chunk.kind === "imports") return 0;
  return namesOf(chunk).some((name) => said.has(name)) ? 2 : 1;
}

/** Names of more than one word: `Cache` may only begin a sentence. */
const namesOf = ({ symbol }: Chunk): readonly string[] =>
  (symbol ?? "")
    .split(/, |\.|::|#/)
    .filter((name) => /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]/u.test(name));

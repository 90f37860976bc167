import type { Query } from "../rank/query.ts";
import type { Weights } from "../rank/weights.ts";
import { type Layout, at } from "./layout.ts";
import { ROLES } from "./segment.ts";

/** What a query's words have found, by place. */
export interface Evidence {
  readonly chunks: Float64Array;
  /** The whole file's score and its path's. */
  readonly files: Float64Array;
  /** The rarity of the words that a file has, and of all words. */
  readonly covered: Float64Array;
  possible: number;
  /** How many words of the file's own name the query has. */
  readonly nameWords: Uint8Array;
}

export interface Scored {
  /** The chunk's number. */
  readonly chunk: number;
  /** Without what its file's role makes of it. */
  readonly score: number;
  /** With that: what orders it. */
  readonly order: number;
}

export interface Wanted {
  readonly query: Query;
  readonly weights: Weights;
  readonly limit: number;
}

interface FileScore {
  readonly file: number;
  readonly prior: number;
  readonly score: number;
}

/** Chunks by their files' scores and their own, best first. */
export function best(layout: Layout, evidence: Evidence, wanted: Wanted): readonly Scored[] {
  return fileScores(layout, evidence, wanted)
    .toSorted((a, b) => b.score - a.score || a.file - b.file)
    .slice(0, wanted.limit)
    .flatMap((one) => chunksOf(one, layout, evidence, wanted.weights.sameFile))
    .toSorted((a, b) => b.order - a.order || a.chunk - b.chunk)
    .slice(0, wanted.limit);
}

function fileScores(layout: Layout, evidence: Evidence, { query, weights }: Wanted): readonly FileScore[] {
  const found: FileScore[] = [];
  const priors = ROLES.map((role) => query.prior[role]);
  for (let file = 0; file < layout.fileNumber.length; file += 1) {
    if (at(evidence.covered, file) === 0) continue;
    const prior = priors[at(layout.fileRole, file)] ?? 1;
    const names = at(layout.fileNames, file);
    const named = names > 0 && at(evidence.nameWords, file) >= names ? weights.named * evidence.possible : 0;
    const covered = (at(evidence.covered, file) / evidence.possible) ** weights.cover;
    const own = at(evidence.files, file) + bestChunks(layout, evidence, file, weights) + named;
    found.push({ file, prior, score: own * covered * prior });
  }
  return found;
}

function bestChunks(layout: Layout, { chunks }: Evidence, file: number, weights: Weights): number {
  const most: number[] = [];
  const end = at(layout.fileStart, file + 1);
  for (let chunk = at(layout.fileStart, file); chunk < end; chunk += 1) {
    const score = at(chunks, chunk);
    if (score === 0 || (most.length === weights.nextMost && score <= (most.at(-1) ?? 0))) continue;
    const place = most.findIndex((other) => other < score);
    most.splice(place === -1 ? most.length : place, 0, score);
    if (most.length > weights.nextMost) most.pop();
  }
  return most.reduce((sum, score, place) => sum + score * weights.next ** place, 0);
}

/** The best chunk has its file's score; the others so much of it as they have of the best one's own. */
function chunksOf(
  { file, prior, score }: FileScore,
  layout: Layout,
  { chunks }: Evidence,
  sameFile: number,
): readonly Scored[] {
  const start = at(layout.fileStart, file);
  const own = [...chunks.subarray(start, at(layout.fileStart, file + 1)).entries()]
    .filter(([place, value]) => value > 0 || place === 0)
    .toSorted(([a, one], [b, other]) => other - one || a - b);
  const top = own[0]?.[1] ?? 0;
  return own.flatMap(([place, value], rank) => {
    if (value === 0 && rank > 0) return [];
    const order = score * (top === 0 ? 1 : value / top) * sameFile ** rank;
    return [{ chunk: at(layout.chunkNumber, start + place), score: order / prior, order }];
  });
}

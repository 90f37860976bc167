import { z } from "zod";
import type { Candidate, StoreQuery } from "../store.ts";
import type { Chunk } from "../words.ts";
import { resultOf } from "./api.ts";
import { orBegun } from "./collections.ts";
import { chunksOf, type Filter } from "./filters.ts";
import { SHELVES, type Shelf } from "./names.ts";
import { chunkOf, chunkPayload, DENSE, WORDS } from "./points.ts";
import { numbersOf, type Seat } from "./seat.ts";
import { sparseQuery } from "./sparse.ts";

const hit = z.object({ id: z.string(), score: z.number(), payload: chunkPayload });
const answers = resultOf(z.array(z.object({ points: z.array(hit) })));

interface Hit {
  readonly chunk: Chunk;
  readonly score: number;
}

interface Found {
  readonly lexical: readonly Hit[];
  readonly dense: readonly Hit[];
}

const NOTHING: Found = { lexical: [], dense: [] };

/**
 * One request to each collection, and both at once. It holds the half by words and the half by vector. The server is
 * not asked to fuse them: it would do so in each collection by itself, and say neither score; who ranks needs both.
 */
export async function candidatesFor(
  seat: Seat,
  query: StoreQuery,
  limit: number,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  const halves = halvesOf(seat, query);
  if (limit <= 0 || halves.length === 0) return [];
  const found = await Promise.all(SHELVES.map((shelf) => ask(seat, { shelf, halves, limit }, signal)));
  const of = (half: keyof Found): readonly Hit[] =>
    best(
      found.flatMap((on) => on[half]),
      limit,
    );
  return merged({ lexical: of("lexical"), dense: of("dense") });
}

interface Half {
  readonly using: typeof WORDS | typeof DENSE;
  readonly query: number[] | { readonly indices: number[]; readonly values: number[] };
  readonly filter: Filter;
  readonly params?: { readonly idf: { readonly corpus: Filter } };
}

function halvesOf({ identity, version, tokenizer }: Seat, { text, vector }: StoreQuery): readonly Half[] {
  const filter = chunksOf(identity.index);
  const dense = vector === null ? null : numbersOf(vector, identity);
  const sparse = sparseQuery(text, tokenizer);
  const params = version.ownRarity ? { params: { idf: { corpus: chunksOf(identity.index) } } } : {};
  return [
    ...(sparse === null ? [] : [{ using: WORDS, query: sparse, filter, ...params } as const]),
    ...(dense === null ? [] : [{ using: DENSE, query: dense, filter } as const]),
  ];
}

interface Question {
  readonly shelf: Shelf;
  readonly halves: readonly Half[];
  readonly limit: number;
}

async function ask(seat: Seat, { shelf, halves, limit }: Question, signal: AbortSignal): Promise<Found> {
  const body = {
    collection_name: seat.collections.name(shelf),
    searches: halves.map((half) => ({ ...half, limit, with_payload: true })),
  };
  const answer = seat.api.ask((calls, init) => calls.queryBatchPoints(body, init), {
    what: "search",
    form: answers.refine((lists) => lists.length === halves.length, "not one list for each question"),
    signal,
  });
  // An answer from what is left would look like one from all of it.
  const lists = seat.collections.wasThere(shelf) ? await answer : await orBegun(answer, null);
  if (lists === null) return NOTHING;
  const listOf = (using: Half["using"]): readonly Hit[] =>
    (lists[halves.findIndex((half) => half.using === using)]?.points ?? []).map(({ id, score, payload }) => ({
      chunk: chunkOf(id, payload),
      score,
    }));
  return { lexical: listOf(WORDS), dense: listOf(DENSE) };
}

const best = (hits: readonly Hit[], limit: number): readonly Hit[] =>
  hits.toSorted((one, other) => other.score - one.score || byId(one.chunk, other.chunk)).slice(0, limit);

const byId = (one: Chunk, other: Chunk): number => (one.id < other.id ? -1 : Number(one.id > other.id));

/** By reciprocal ranks, those of both halves first; one half alone keeps its order. */
function merged({ lexical, dense }: Found): readonly Candidate[] {
  const worth = new Map<string, number>();
  for (const list of [lexical, dense])
    for (const [place, { chunk }] of list.entries())
      worth.set(chunk.id, (worth.get(chunk.id) ?? 0) + 1 / (PLACE + place));
  const words = new Map(lexical.map(({ chunk, score }) => [chunk.id, score]));
  const cosines = new Map(dense.map(({ chunk, score }) => [chunk.id, score]));
  const chunks = new Map([...lexical, ...dense].map(({ chunk }) => [chunk.id, chunk]));
  return [...chunks.values()]
    .map((chunk) => ({ chunk, lexical: words.get(chunk.id) ?? null, dense: cosines.get(chunk.id) ?? null }))
    .toSorted(
      ({ chunk: one }, { chunk: other }) =>
        (worth.get(other.id) ?? 0) - (worth.get(one.id) ?? 0) || byId(one, other),
    );
}

/** So that a chunk of both halves comes before those that one has found. */
const PLACE = 60;

import { z } from "zod";
import type { Candidate, StoreQuery } from "../store.ts";
import type { Chunk } from "../words.ts";
import { resultOf } from "./api.ts";
import { orWithout } from "./collections.ts";
import { chunksOf, type Filter } from "./filters.ts";
import { SHELVES, type Shelf } from "./names.ts";
import { chunkOf, chunkPayload, DENSE, WORDS } from "./points.ts";
import { numbersOf, type Seat } from "./seat.ts";
import { sparseQuery } from "./sparse.ts";

/** Of a fusion only the scores are asked for. */
const hit = z.object({ id: z.string(), score: z.number(), payload: chunkPayload.nullish() });
const answers = resultOf(z.array(z.object({ points: z.array(hit) })));

interface Hit {
  readonly chunk: Chunk;
  readonly score: number;
}

interface Found {
  readonly lexical: readonly Hit[];
  readonly dense: readonly Hit[];
  /** What the server makes of both, by id. */
  readonly fused: ReadonlyMap<string, number>;
}

const NOTHING: Found = { lexical: [], dense: [], fused: new Map() };

/**
 * One request to each collection, and both at once. It holds the half by words and the half by vector, for their
 * scores, and where there are both a third question: the server's fusion of them, which gives the order.
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
  const lexical = best(
    found.flatMap((on) => on.lexical),
    limit,
  );
  const dense = best(
    found.flatMap((on) => on.dense),
    limit,
  );
  const fused = new Map(found.flatMap((on) => [...on.fused]));
  return merged({ lexical, dense, fused });
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
  const bounded = halves.map((half) => ({ ...half, limit }));
  const fusion = {
    query: { fusion: "rrf" as const },
    prefetch: bounded,
    limit: 2 * limit,
    with_payload: false,
  };
  const body = {
    collection_name: seat.collections.name(shelf),
    searches: [
      ...bounded.map((half) => ({ ...half, with_payload: true })),
      ...(halves.length > 1 ? [fusion] : []),
    ],
  };
  const answer = seat.api.ask((calls, init) => calls.queryBatchPoints(body, init), {
    what: "search",
    form: answers,
    signal,
  });
  const lists = await orWithout(answer, null);
  if (lists === null) return NOTHING;
  const listOf = (using: Half["using"]): readonly Hit[] =>
    (lists[halves.findIndex((half) => half.using === using)]?.points ?? []).flatMap(
      ({ id, score, payload }) => (payload ? [{ chunk: chunkOf(id, payload), score }] : []),
    );
  const fused = halves.length > 1 ? (lists[halves.length]?.points ?? []) : [];
  return {
    lexical: listOf(WORDS),
    dense: listOf(DENSE),
    fused: new Map(fused.map(({ id, score }) => [id, score])),
  };
}

const best = (hits: readonly Hit[], limit: number): readonly Hit[] =>
  hits.toSorted((one, other) => other.score - one.score || byId(one.chunk, other.chunk)).slice(0, limit);

const byId = (one: Chunk, other: Chunk): number => (one.id < other.id ? -1 : Number(one.id > other.id));

function merged({ lexical, dense, fused }: Found): readonly Candidate[] {
  const words = new Map(lexical.map(({ chunk, score }) => [chunk.id, score]));
  const cosines = new Map(dense.map(({ chunk, score }) => [chunk.id, score]));
  const chunks = new Map([...lexical, ...dense].map(({ chunk }) => [chunk.id, chunk]));
  const both = lexical.length > 0 && dense.length > 0;
  return [...chunks.values()]
    .map((chunk) => ({
      chunk,
      lexical: words.get(chunk.id) ?? null,
      dense: cosines.get(chunk.id) ?? null,
      ...(fused.size === 0 ? {} : { fused: fused.get(chunk.id) ?? 0 }),
    }))
    .toSorted(
      (one, other) =>
        orderOf(other, both) - orderOf(one, both) ||
        (other.dense ?? 0) - (one.dense ?? 0) ||
        byId(one.chunk, other.chunk),
    );
}

const orderOf = ({ fused, lexical, dense }: Candidate, both: boolean): number =>
  both ? (fused ?? 0) : (lexical ?? dense ?? 0);

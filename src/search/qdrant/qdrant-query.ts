import { z } from "zod";
import type { Chunk } from "../index-words.ts";
import type { Candidate, StoreQuery } from "../search-store.ts";
import { resultOf } from "./qdrant-api.ts";
import { orBegun } from "./qdrant-collections.ts";
import { numbersOf, type QdrantContext } from "./qdrant-context.ts";
import {
  chunkOf,
  chunkPayload,
  DENSE,
  type CollectionKind,
  COLLECTION_KINDS,
  sparseQuery,
  WORDS,
} from "./qdrant-points.ts";

/** Where a list is asked for its scores alone, no payload comes. */
const hit = z.object({ id: z.string(), score: z.number(), payload: chunkPayload.nullish() });
const answers = resultOf(z.array(z.object({ points: z.array(hit) })));

interface Hit {
  readonly id: string;
  readonly score: number;
}

/** By id, from the lists that come with payloads. */
type Chunks = ReadonlyMap<string, Chunk>;

interface Found {
  readonly lexical: readonly Hit[];
  readonly dense: readonly Hit[];
  /** What the server has made of both, or the one half that there is. */
  readonly order: readonly Hit[];
  readonly chunks: Chunks;
}

const NOTHING: Found = { lexical: [], dense: [], order: [], chunks: new Map() };

/**
 * One request to each collection, and both at once. The server fuses the half by words and the half by vector: that gives
 * the order, and each chunk's text once. The halves' own scores are kept for the ranking.
 */
export async function candidatesFor(
  context: QdrantContext,
  query: StoreQuery,
  limit: number,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  const halves = halvesOf(context, query);
  if (limit <= 0 || halves.length === 0) return [];
  const found = await Promise.all(
    COLLECTION_KINDS.map((shelf) => ask(context, { shelf, halves, limit }, signal)),
  );
  const chunks = new Map(found.flatMap((on) => [...on.chunks]));
  const of = (half: "lexical" | "dense"): ReadonlyMap<string, number> =>
    best(
      found.flatMap((on) => on[half]),
      limit,
    );
  return merged(
    best(
      found.flatMap(({ order }) => order),
      Infinity,
    ),
    { lexical: of("lexical"), dense: of("dense"), chunks },
  );
}

interface Half {
  readonly using: typeof WORDS | typeof DENSE;
  readonly query: number[] | { readonly indices: number[]; readonly values: number[] };
  readonly filter: Filter;
  readonly params?: { readonly idf: { readonly corpus: Filter } };
}

function halvesOf(
  { identity, version, tokenizer }: QdrantContext,
  { text, vector }: StoreQuery,
): readonly Half[] {
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
  readonly shelf: CollectionKind;
  readonly halves: readonly Half[];
  readonly limit: number;
}

async function ask(
  context: QdrantContext,
  { shelf, halves, limit }: Question,
  signal: AbortSignal,
): Promise<Found> {
  const searches = searchesFor(halves, limit);
  const body = { collection_name: context.collections.name(shelf), searches: [...searches] };
  const answer = context.api.ask((calls, init) => calls.queryBatchPoints(body, init), {
    what: "search",
    form: answers
      .refine((lists) => lists.length === searches.length, "not one list for each question")
      .refine((lists) => lists.at(-1)?.points.every(({ payload }) => payload), "a chunk without its payload"),
    signal,
  });
  // An answer from what is left would look like one from all of it.
  const lists = context.collections.wasThere(shelf) ? await answer : await orBegun(answer, null);
  if (lists === null) return NOTHING;
  const listOf = (using: Half["using"]): readonly Hit[] =>
    lists[halves.findIndex((half) => half.using === using)]?.points ?? [];
  const order = lists.at(-1)?.points ?? [];
  const chunks = order.flatMap(({ id, payload }) => (payload ? [[id, chunkOf(id, payload)] as const] : []));
  return { lexical: listOf(WORDS), dense: listOf(DENSE), order, chunks: new Map(chunks) };
}

/** The halves in their order, and what brings the chunks last: the fusion, or the one half that there is. */
function searchesFor(halves: readonly Half[], limit: number) {
  const bounded = halves.map((half) => ({ ...half, limit }));
  if (bounded.length === 1) return bounded.map((half) => ({ ...half, with_payload: true }));
  const fusion = { query: { fusion: "rrf" as const }, prefetch: bounded };
  return [
    ...bounded.map((half) => ({ ...half, with_payload: false })),
    { ...fusion, limit: bounded.length * limit, with_payload: true },
  ];
}

const best = (hits: readonly Hit[], limit: number): ReadonlyMap<string, number> =>
  new Map(
    hits
      .toSorted((one, other) => other.score - one.score || byId(one.id, other.id))
      .slice(0, limit)
      .map(({ id, score }) => [id, score]),
  );

const byId = (one: string, other: string): number => (one < other ? -1 : Number(one > other));

interface Scores {
  readonly lexical: ReadonlyMap<string, number>;
  readonly dense: ReadonlyMap<string, number>;
  readonly chunks: Chunks;
}

/** What neither half has among its best of both collections is left out. */
function merged(
  order: ReadonlyMap<string, number>,
  { lexical, dense, chunks }: Scores,
): readonly Candidate[] {
  return [...order.keys()].flatMap((id) => {
    const chunk = chunks.get(id);
    const scores = { lexical: lexical.get(id) ?? null, dense: dense.get(id) ?? null };
    return chunk === undefined || (scores.lexical ?? scores.dense) === null ? [] : [{ chunk, ...scores }];
  });
}

/** Conditions over payloads, as Qdrant takes them. */
export interface Filter {
  readonly must?: Condition[];
  readonly must_not?: Condition[];
}

type Condition =
  | { readonly key: string; readonly match: { readonly value: string } }
  | { readonly key: string; readonly match: { readonly any: string[] } }
  | { readonly key: string; readonly range: { readonly lt: number } }
  | { readonly has_id: string[] }
  | { readonly has_vector: string };

const is = (key: string, value: string): Condition => ({ key, match: { value } });
const among = (key: string, any: readonly string[]): Condition => ({ key, match: { any: [...any] } });

export const ofIndex = (index: string): Filter => ({ must: [is("index", index)] });
export const filesOf = (index: string): Filter => ({ must: [is("index", index), is("what", "file")] });
export const chunksOf = (index: string): Filter => ({ must: [is("index", index), is("what", "chunk")] });

export const embeddedOf = (index: string): Filter => ({
  must: [...(chunksOf(index).must ?? []), { has_vector: DENSE }],
});

export const unembeddedOf = (index: string): Filter => ({
  ...chunksOf(index),
  must_not: [{ has_vector: DENSE }],
});

/** All that is there of the paths, but the points named. */
export const ofPaths = (index: string, paths: readonly string[], but: readonly string[] = []): Filter => ({
  must: [is("index", index), among("path", paths)],
  ...(but.length === 0 ? {} : { must_not: [{ has_id: [...but] }] }),
});

/** What was written of these versions before the moment. */
export const ofVersions = (index: string, versions: readonly string[], before: number): Filter => ({
  must: [is("index", index), among("version", versions), { key: "written", range: { lt: before } }],
});

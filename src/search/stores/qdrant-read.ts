import { z } from "zod";
import type { Chunk, ServerFacts, FactsQuery, StoreCounts } from "../search-store.ts";
import { resultOf } from "./qdrant-api.ts";
import {
  chunkOf,
  chunkPayload,
  chunkRecord,
  chunksOf,
  COLLECTION_KINDS,
  type CollectionKind,
  DENSE,
  embeddedOf,
  filesOf,
  type Filter,
  numbersOf,
  orBegun,
  orWithout,
  type QdrantContext,
  unembeddedOf,
} from "./qdrant-collections.ts";

const PAGE_SIZE = 1000;

interface Scroll<T> {
  readonly kind: CollectionKind;
  readonly filter: Filter;
  readonly form: z.ZodType<T>;
  readonly fields: true | string[];
  /** Maximum number of points. */
  readonly limit: number;
}

interface Page<T> {
  readonly points: readonly T[];
  readonly next_page_offset?: string | number | null | undefined;
}

/** Points in the order of their ids, page after page; none if the collection does not exist. */
export async function scrollAll<T>(
  context: QdrantContext,
  scroll: Scroll<T>,
  signal: AbortSignal,
): Promise<readonly T[]> {
  const found: T[] = [];
  let offset: string | number | null = null;
  while (found.length < scroll.limit) {
    const { points, next_page_offset }: Page<T> = await page(context, scroll, {
      offset,
      had: found.length,
      signal,
    });
    for (const point of points) found.push(point);
    if (next_page_offset === null || next_page_offset === undefined) break;
    offset = next_page_offset;
  }
  return found;
}

interface PagePosition {
  readonly offset: string | number | null;
  readonly had: number;
  readonly signal: AbortSignal;
}

function page<T>(
  context: QdrantContext,
  scroll: Scroll<T>,
  { offset, had, signal }: PagePosition,
): Promise<Page<T>> {
  const form: z.ZodType<Page<T>> = resultOf(
    z.object({ points: z.array(scroll.form), next_page_offset: z.union([z.string(), z.number()]).nullish() }),
  );
  const body = {
    collection_name: context.collections.name(scroll.kind),
    filter: scroll.filter,
    limit: Math.min(PAGE_SIZE, scroll.limit - had),
    with_payload: scroll.fields,
    with_vector: false,
    ...(offset === null ? {} : { offset }),
  };
  const answer = context.api.ask((calls, init) => calls.scrollPoints(body, init), {
    what: "list what is stored",
    form,
    signal,
  });
  return orWithout(answer, { points: [] });
}

/**
 * Ordered by id, first from the code, then from the documentation: a chunk that gets its vector does not change the
 * order of the others.
 */
export async function unembeddedChunks(
  context: QdrantContext,
  limit: number,
  signal: AbortSignal,
): Promise<readonly Chunk[]> {
  const found: Chunk[] = [];
  if (context.identity.vectors === null) return found;
  const filter = unembeddedOf(context.identity.index);
  for (const kind of COLLECTION_KINDS) {
    const scroll = { kind, filter, form: chunkRecord, fields: true as const, limit: limit - found.length };
    found.push(...(await scrollAll(context, scroll, signal)));
  }
  return found;
}

/** Sends one request to each collection. A file whose writing was interrupted has no point that would be counted. */
export async function countFiles(context: QdrantContext, signal: AbortSignal): Promise<number> {
  const filter = filesOf(context.identity.index);
  const counts = await Promise.all(
    COLLECTION_KINDS.map((kind) => countIn(context, { kind, what: "files", filter }, signal)),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

export async function countAll(context: QdrantContext, signal: AbortSignal): Promise<StoreCounts> {
  const { index, vectors } = context.identity;
  const counts = { files: 0, chunks: 0, embedded: 0 };
  const wanted: readonly (readonly [keyof StoreCounts, Filter])[] = [
    ["files", filesOf(index)],
    ["chunks", chunksOf(index)],
    ...(vectors === null ? [] : [["embedded", embeddedOf(index)] as const]),
  ];
  const all = COLLECTION_KINDS.flatMap((kind) => wanted.map(([what, filter]) => ({ kind, what, filter })));
  await Promise.all(
    all.map(async (count) => {
      const found = await countIn(context, count, signal);
      counts[count.what] += found;
    }),
  );
  return counts;
}

interface CountRequest {
  readonly kind: CollectionKind;
  readonly what: keyof StoreCounts;
  readonly filter: Filter;
}

async function countIn(
  { api, collections }: QdrantContext,
  { kind, what, filter }: CountRequest,
  signal: AbortSignal,
): Promise<number> {
  const body = { collection_name: collections.name(kind), filter, exact: true };
  const answer = api.ask((calls, init) => calls.countPoints(body, init), {
    what: `count its ${what}`,
    form: resultOf(z.object({ count: z.int() })),
    signal,
  });
  return (await orWithout(answer, { count: 0 })).count;
}

const point = z.object({ id: z.string(), payload: chunkPayload });
const hit = z.object({ id: z.string(), score: z.number(), payload: chunkPayload.nullish() });
const answers = resultOf(z.array(z.object({ points: z.array(hit) })));

/**
 * Sends two requests to each collection at once: for the chunks found by words, and for the cosines of these and of the
 * nearest chunks. The server ranks nothing by words.
 */
export async function factsFor(
  context: QdrantContext,
  query: FactsQuery,
  nearest: number,
  signal: AbortSignal,
): Promise<ServerFacts> {
  const vector = query.vector === null ? null : numbersOf(query.vector, context.identity);
  const wanted = { ids: [...new Set(query.ids)], vector, nearest };
  const [named, cosines] = await Promise.all([
    Promise.all(COLLECTION_KINDS.map((kind) => chunksById(context, kind, wanted, signal))),
    Promise.all(COLLECTION_KINDS.map((kind) => cosinesIn(context, kind, wanted, signal))),
  ]);
  const chunks = new Map(named.flat().map(({ id, payload }) => [id, chunkOf(id, payload)]));
  const dense = new Map(cosines.flatMap(({ known }) => known).map(({ id, score }) => [id, score]));
  const near = cosines.flatMap((each) => each.near).toSorted(byScore);
  for (const { id, score, payload } of near.slice(0, Math.max(0, nearest))) {
    if (payload) chunks.set(id, chunkOf(id, payload));
    dense.set(id, score);
  }
  return { chunks, dense };
}

type Hit = z.infer<typeof hit>;

const byScore = (one: Hit, other: Hit): number =>
  other.score - one.score || (one.id < other.id ? -1 : Number(one.id > other.id));

interface Question {
  readonly ids: string[];
  readonly vector: number[] | null;
  readonly nearest: number;
}

async function chunksById(
  context: QdrantContext,
  kind: CollectionKind,
  { ids }: Question,
  signal: AbortSignal,
): Promise<readonly z.infer<typeof point>[]> {
  if (ids.length === 0) return [];
  const body = {
    collection_name: context.collections.name(kind),
    ids,
    with_payload: true,
    with_vector: false,
  };
  const answer = context.api.ask((calls, init) => calls.getPoints(body, init), {
    what: "search",
    form: resultOf(z.array(point)),
    signal,
  });
  return unlessMissing(context, kind, answer, []);
}

interface Cosines {
  readonly known: readonly Hit[];
  readonly near: readonly Hit[];
}

const NO_COSINES: Cosines = { known: [], near: [] };

async function cosinesIn(
  context: QdrantContext,
  kind: CollectionKind,
  { ids, vector, nearest }: Question,
  signal: AbortSignal,
): Promise<Cosines> {
  if (vector === null) return NO_COSINES;
  const own = chunksOf(context.identity.index);
  const near = { using: DENSE, query: vector, filter: own, limit: nearest, with_payload: true };
  const among = { must: [...(own.must ?? []), { has_id: ids }] };
  // So few need no graph, and none of them may be missed.
  const params = { exact: true };
  const known = {
    using: DENSE,
    query: vector,
    filter: among,
    limit: ids.length,
    with_payload: false,
    params,
  };
  const searches = [...(nearest > 0 ? [near] : []), ...(ids.length > 0 ? [known] : [])];
  if (searches.length === 0) return NO_COSINES;
  const body = { collection_name: context.collections.name(kind), searches };
  const answer = context.api.ask((calls, init) => calls.queryBatchPoints(body, init), {
    what: "search",
    form: answers
      .refine((lists) => lists.length === searches.length, "not one list for each query")
      .refine(
        (lists) => nearest <= 0 || lists[0]?.points.every(({ payload }) => payload),
        "a chunk without its payload",
      ),
    signal,
  });
  const lists = await unlessMissing(context, kind, answer, null);
  if (lists === null) return NO_COSINES;
  return {
    near: nearest > 0 ? (lists[0]?.points ?? []) : [],
    known: ids.length > 0 ? (lists.at(-1)?.points ?? []) : [],
  };
}

/**
 * A collection that had content must answer: without it, the answer would look complete and not be. Only one that never
 * had content may be missing.
 */
const unlessMissing = <T, U>(
  { collections }: QdrantContext,
  kind: CollectionKind,
  answer: Promise<T>,
  without: U,
): Promise<T | U> => (collections.wasThere(kind) ? answer : orBegun(answer, without));

import { z } from "zod";
import type { Chunk } from "../index-words.ts";
import type { StoreCounts } from "../search-store.ts";
import { resultOf } from "./qdrant-api.ts";
import { orWithout } from "./qdrant-collections.ts";
import type { QdrantContext } from "./qdrant-context.ts";
import { chunkRecord, type CollectionKind, COLLECTION_KINDS } from "./qdrant-points.ts";
import { chunksOf, embeddedOf, filesOf, type Filter, unembeddedOf } from "./qdrant-query.ts";

const PAGE = 1000;

export interface Scroll<T> {
  readonly shelf: CollectionKind;
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
  asked: Scroll<T>,
  signal: AbortSignal,
): Promise<readonly T[]> {
  const found: T[] = [];
  let offset: string | number | null = null;
  while (found.length < asked.limit) {
    const { points, next_page_offset }: Page<T> = await page(context, asked, {
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
  asked: Scroll<T>,
  { offset, had, signal }: PagePosition,
): Promise<Page<T>> {
  const form: z.ZodType<Page<T>> = resultOf(
    z.object({ points: z.array(asked.form), next_page_offset: z.union([z.string(), z.number()]).nullish() }),
  );
  const body = {
    collection_name: context.collections.name(asked.shelf),
    filter: asked.filter,
    limit: Math.min(PAGE, asked.limit - had),
    with_payload: asked.fields,
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
  for (const shelf of COLLECTION_KINDS) {
    const asked = { shelf, filter, form: chunkRecord, fields: true as const, limit: limit - found.length };
    found.push(...(await scrollAll(context, asked, signal)));
  }
  return found;
}

/** Sends one request to each collection. A file whose writing was interrupted has no point that would be counted. */
export async function countFiles(context: QdrantContext, signal: AbortSignal): Promise<number> {
  const filter = filesOf(context.identity.index);
  const counts = await Promise.all(
    COLLECTION_KINDS.map((shelf) => countIn(context, { shelf, what: "files", filter }, signal)),
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
  const all = COLLECTION_KINDS.flatMap((shelf) => wanted.map(([what, filter]) => ({ shelf, what, filter })));
  await Promise.all(
    all.map(async (asked) => {
      const found = await countIn(context, asked, signal);
      counts[asked.what] += found;
    }),
  );
  return counts;
}

interface CountRequest {
  readonly shelf: CollectionKind;
  readonly what: keyof StoreCounts;
  readonly filter: Filter;
}

async function countIn(
  { api, collections }: QdrantContext,
  { shelf, what, filter }: CountRequest,
  signal: AbortSignal,
): Promise<number> {
  const body = { collection_name: collections.name(shelf), filter, exact: true };
  const answer = api.ask((calls, init) => calls.countPoints(body, init), {
    what: `count its ${what}`,
    form: resultOf(z.object({ count: z.int() })),
    signal,
  });
  return (await orWithout(answer, { count: 0 })).count;
}

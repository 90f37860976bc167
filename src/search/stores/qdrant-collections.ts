import { createHash } from "node:crypto";
import { z } from "zod";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Chunk, StoredFile, StoreIdentity } from "../search-store.ts";
import { completedWrite, type QdrantApi, resultOf } from "./qdrant-api.ts";
import { QdrantFailure, type Trouble } from "./qdrant-failure.ts";

/** What lies in a Qdrant: two collections for each model, shared by all workspaces, and the points in them. */

/** What reading and writing share. */
export interface QdrantContext {
  readonly api: QdrantApi;
  readonly collections: Collections;
  readonly identity: StoreIdentity;
  readonly now: () => number;
}

const KEYWORD = { type: "keyword" } as const;

/** Fields used in filters and counts. Workspaces share a collection; each is a tenant of it. */
const INDEXES = {
  index: { type: "keyword", is_tenant: true },
  what: KEYWORD,
  path: KEYWORD,
  version: KEYWORD,
  language: KEYWORD,
  role: KEYWORD,
  hash: KEYWORD,
  written: { type: "integer" },
} as const;

const collectionInfo = resultOf(
  z.object({
    status: z.string(),
    optimizer_status: z.unknown(),
    config: z.object({
      params: z.object({
        vectors: z.record(z.string(), z.unknown()).nullish(),
      }),
    }),
    points_count: z.int().nullish(),
    payload_schema: z.record(z.string(), z.object({ data_type: z.string() })),
  }),
);
type Info = z.infer<typeof collectionInfo>;

/** The two collections of an identity. The first process that stores something creates them. */
export class Collections {
  readonly #api: QdrantApi;
  readonly #identity: StoreIdentity;
  readonly #shape: Readonly<Record<string, number>>;
  readonly #seen = new Set<CollectionKind>();

  /** `shape`: how a cluster shall keep new collections. */
  constructor(api: QdrantApi, identity: StoreIdentity, shape: Readonly<Record<string, number>> = {}) {
    this.#shape = shape;
    this.#api = api;
    this.#identity = identity;
  }

  name(kind: CollectionKind): string {
    return collectionName(kind, this.#identity);
  }

  /** Whether the collection existed and was not empty when last checked: if it is missing now, its content is lost. */
  wasThere(kind: CollectionKind): boolean {
    return this.#seen.has(kind);
  }

  /** Forgets which collections exist, since they may be deleted. */
  forget(): void {
    this.#seen.clear();
  }

  /** Creates missing field indexes, unless the collection is gone. */
  async mend(kind: CollectionKind, info: Info | null, signal: AbortSignal): Promise<void> {
    if (info !== null) await orWithout(this.#index(kind, info, signal), undefined);
  }

  /** Makes sure that the collection exists with all field indexes. */
  async ready(kind: CollectionKind, signal: AbortSignal): Promise<void> {
    const info = (await this.look(kind, signal)) ?? (await this.#make(kind, signal));
    await this.#index(kind, info, signal);
    this.#seen.add(kind);
  }

  /**
   * Whether the collection exists. If so, creates missing field indexes: its creator may have been killed before it had
   * them.
   */
  async whole(kind: CollectionKind, signal: AbortSignal): Promise<boolean> {
    const info = await this.look(kind, signal);
    if (info !== null) await this.#index(kind, info, signal);
    return info !== null;
  }

  async #index(kind: CollectionKind, info: Info | null, signal: AbortSignal): Promise<void> {
    for (const [field, schema] of Object.entries(INDEXES)) {
      if (info?.payload_schema[field]?.data_type === schema.type) continue;
      const body = { collection_name: this.name(kind), wait: true, field_name: field, field_schema: schema };
      await this.#api.ask((calls, init) => calls.createFieldIndex(body, init), {
        what: `index ${field} in ${this.name(kind)}`,
        form: completedWrite,
        signal,
        write: true,
      });
    }
  }

  /**
   * Describes a collection; null if it does not exist. A collection with the wrong settings is refused and never
   * filled.
   */
  async look(kind: CollectionKind, signal: AbortSignal): Promise<Info | null> {
    const name = this.name(kind);
    const ask = this.#api.ask((calls, init) => calls.getCollection({ collection_name: name }, init), {
      what: `describe ${name}`,
      form: collectionInfo,
      signal,
    });
    const info = await orWithout(ask, null);
    this.#seen.delete(kind);
    if (info === null) return null;
    this.#check(name, info);
    if ((info.points_count ?? 0) > 0) this.#seen.add(kind);
    return info;
  }

  #check(name: string, { status, optimizer_status, config: { params } }: Info): void {
    const wrong = this.#unlike(params);
    if (wrong !== null)
      throw new HarnessError(
        EXIT.failed,
        `the collection ${name} in Qdrant at ${this.#api.url} does not have the settings that harness needs: ${wrong}`,
        `curl -X DELETE ${this.#api.url}/collections/${name}   (or: harness config set search.store embedded)`,
      );
    if (status === "red")
      throw new HarnessError(
        EXIT.failed,
        `the collection ${name} in Qdrant at ${this.#api.url} is broken: ${JSON.stringify(optimizer_status)}`,
        "Check Qdrant's log, then try again.",
      );
  }

  #unlike({ vectors }: Info["config"]["params"]): string | null {
    const wanted = this.#identity.vectors;
    if (wanted === null) return null;
    const dense = z.object({ size: z.number(), distance: z.string() }).safeParse(vectors?.[DENSE]);
    if (!dense.success) return `it has no vector named ${DENSE}`;
    const { size, distance } = dense.data;
    if (size !== wanted.dimension)
      return `its vectors have ${size} dimensions, those of ${wanted.model} have ${wanted.dimension}`;
    return distance === "Cosine" ? null : `its vectors are compared by ${distance}`;
  }

  /**
   * Creates a collection; null means it is new and has no field index yet. Two processes may get here at once; the
   * second one finds the collection.
   */
  async #make(kind: CollectionKind, signal: AbortSignal): Promise<Info | null> {
    const { vectors } = this.#identity;
    const shape = {
      vectors: vectors === null ? {} : { [DENSE]: { size: vectors.dimension, distance: "Cosine" as const } },
      // Never filled: collections of earlier versions have it, and one without a model has no other vector.
      sparse_vectors: { words: { modifier: "idf" as const } },
      // One graph per workspace instead of one for all: every question is about one workspace.
      hnsw_config: { m: 0, payload_m: 16 },
      on_disk_payload: true,
      ...this.#shape,
    };
    try {
      await this.#api.ask(
        (calls, init) => calls.createCollection({ collection_name: this.name(kind), ...shape }, init),
        { what: `create ${this.name(kind)}`, form: resultOf(z.boolean()), signal, write: true },
      );
      return null;
    } catch (thrown) {
      if (thrown instanceof QdrantFailure && thrown.trouble === "exists") return this.look(kind, signal);
      throw thrown;
    }
  }
}

/** The answer, or `without` if the collection does not exist. */
export const orWithout = <T, U>(request: Promise<T>, without: U): Promise<T | U> =>
  unlessIn(["no-collection"], request, without);

/**
 * Also returns `without` for a collection that is just being made: a strict server refuses to filter by a field without
 * an index.
 */
export const orBegun = <T, U>(request: Promise<T>, without: U): Promise<T | U> =>
  unlessIn(["no-collection", "no-index"], request, without);

async function unlessIn<T, U>(troubles: readonly Trouble[], request: Promise<T>, without: U): Promise<T | U> {
  try {
    return await request;
  } catch (thrown) {
    if (thrown instanceof QdrantFailure && troubles.includes(thrown.trouble)) return without;
    throw thrown;
  }
}

/** The numbers of a vector for JSON. */
export function numbersOf(vector: Float32Array, { vectors }: StoreIdentity): number[] {
  if (vectors === null) throw refusal("but its index has no embedding model");
  const { model, dimension } = vectors;
  if (vector.length !== dimension)
    throw refusal(`with ${vector.length} dimensions, but those of ${model} have ${dimension}`);
  if (!vector.every(Number.isFinite)) throw refusal("that contains a value that is not a finite number");
  return Array.from(vector);
}

const refusal = (what: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `the store was given a vector ${what}`,
    "Embed with the model of the index, or rebuild it: harness index",
  );

/** The name of a point's vector. */
export const DENSE = "dense";

/** The format number. Files in another format do not count as held, so they are written again. */
export const FORMAT_VERSION = 3;

export interface Point {
  readonly id: string;
  readonly vector: { [DENSE]?: number[] };
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The index and the time of writing in milliseconds: a version that no file claims for long is debris. */
export interface VersionStamp {
  readonly index: string;
  readonly written: number;
}

/**
 * A digest of a file and of everything stored about its chunks. Each chunk's point carries the version, and so does the
 * file's point, together with the number of chunks: a file is complete when that many chunks exist, even after an
 * interruption.
 */
const versionOf = ({ path, hash, chunks }: StoredFile): string =>
  hexOf(JSON.stringify([path, hash, chunks.map(({ text: _text, ...about }) => about)])).slice(0, 32);

export function filePoint(file: StoredFile, { index, written }: VersionStamp): Point {
  const { path, hash, chunks } = file;
  const version = versionOf(file);
  // Identical parts of one long line become one point.
  const count = new Set(chunks.map(({ id }) => id)).size;
  return {
    id: uuidOf("file", index, path),
    vector: {},
    payload: {
      what: "file",
      form: FORMAT_VERSION,
      index,
      path,
      version,
      file_hash: hash,
      chunks: count,
      written,
    },
  };
}

/** Points without a vector; `embed` adds it. */
export function chunkPoints(file: StoredFile, { index, written }: VersionStamp): readonly Point[] {
  const version = versionOf(file);
  return file.chunks.map((chunk) => {
    const { id, text, ...about } = chunk;
    return {
      id,
      vector: {},
      payload: { ...about, what: "chunk", index, version, file_hash: file.hash, written, content: text },
    };
  });
}

export const chunkPayload = z.object({
  content: z.string(),
  path: z.string(),
  language: z.string(),
  symbol: z.string().nullish(),
  start: z.int(),
  end: z.int(),
  kind: z.enum(["function", "class", "method", "type", "imports", "code", "section", "text"]),
  hash: z.string(),
  trust: z.enum(["trusted", "untrusted"]),
  role: z.enum(["source", "test", "example", "docs", "vendored", "config"]),
});

export function chunkOf(id: string, payload: z.infer<typeof chunkPayload>): Chunk {
  const { content, symbol, ...about } = payload;
  return { id, text: content, symbol: symbol ?? null, ...about };
}

export const chunkRecord = z
  .object({ id: z.string(), payload: chunkPayload })
  .transform(({ id, payload }) => chunkOf(id, payload));

export const fileRecord = z
  .object({
    payload: z.object({
      form: z.int(),
      path: z.string(),
      file_hash: z.string(),
      version: z.string(),
      chunks: z.int(),
    }),
  })
  .transform(({ payload }) => payload);

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

const matches = (key: string, value: string): Condition => ({ key, match: { value } });
const matchesAny = (key: string, any: readonly string[]): Condition => ({ key, match: { any: [...any] } });

export const ofIndex = (index: string): Filter => ({ must: [matches("index", index)] });
export const filesOf = (index: string): Filter => ({
  must: [matches("index", index), matches("what", "file")],
});
export const chunksOf = (index: string): Filter => ({
  must: [matches("index", index), matches("what", "chunk")],
});

export const embeddedOf = (index: string): Filter => ({
  must: [...(chunksOf(index).must ?? []), { has_vector: DENSE }],
});

export const unembeddedOf = (index: string): Filter => ({
  ...chunksOf(index),
  must_not: [{ has_vector: DENSE }],
});

/** All points of these paths, except those named. */
export const ofPaths = (index: string, paths: readonly string[], but: readonly string[] = []): Filter => ({
  must: [matches("index", index), matchesAny("path", paths)],
  ...(but.length === 0 ? {} : { must_not: [{ has_id: [...but] }] }),
});

/** Points of these versions that were written before `before`. */
export const ofVersions = (index: string, versions: readonly string[], before: number): Filter => ({
  must: [matches("index", index), matchesAny("version", versions), { key: "written", range: { lt: before } }],
});

/** Code and documentation are kept apart, so that a question about one need not search the other. */
export const COLLECTION_KINDS = ["code", "docs"] as const;
export type CollectionKind = (typeof COLLECTION_KINDS)[number];

export const collectionName = (kind: CollectionKind, identity: StoreIdentity): string =>
  `harness-${kind}-${modelName(identity)}`;

/** Whether a collection is ours, judged by its name, for whichever model it was made. */
export const isOurs = (collection: string): boolean => /^harness-(?:code|docs)-/.test(collection);

/** The part of the name that the two collections of one identity share. */
export const withoutCollection = (collection: string): string =>
  collection.replace(/^harness-(?:code|docs)-/, "");

/** The collection of a file; all its chunks are in the same one. */
export const collectionOf = ({ chunks }: StoredFile): CollectionKind =>
  chunks[0]?.role === "docs" || chunks[0]?.kind === "section" ? "docs" : "code";

const MAX_LENGTH = 80;

/** Adds a digest if the model's name was altered: two models never share a collection. */
function modelName({ vectors }: StoreIdentity): string {
  if (vectors === null) return "words";
  const plain = vectors.model
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .slice(0, MAX_LENGTH);
  const digest = plain === vectors.model ? "" : `-${hexOf(vectors.model).slice(0, 6)}`;
  return `${plain}${digest}-${vectors.dimension}`;
}

const hexOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A UUID of version 8 (free form) that is the same whenever the parts are. */
function uuidOf(...parts: readonly string[]): string {
  const hex = hexOf(JSON.stringify(parts));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

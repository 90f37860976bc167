import { z } from "zod";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { StoreIdentity } from "../search-store.ts";
import { type QdrantApi, resultOf, completedWrite } from "./qdrant-api.ts";
import { QdrantFailure, type Trouble } from "./qdrant-failure.ts";
import { collectionName, DENSE, type CollectionKind } from "./qdrant-points.ts";

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
export type Info = z.infer<typeof collectionInfo>;

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

  name(shelf: CollectionKind): string {
    return collectionName(shelf, this.#identity);
  }

  /** Whether the collection existed and was not empty when last checked: if it is missing now, its content is lost. */
  wasThere(shelf: CollectionKind): boolean {
    return this.#seen.has(shelf);
  }

  /** Forgets which collections exist, since they may be deleted. */
  forget(): void {
    this.#seen.clear();
  }

  /** Creates missing field indexes, unless the collection is gone. */
  async mend(shelf: CollectionKind, info: Info | null, signal: AbortSignal): Promise<void> {
    if (info !== null) await orWithout(this.#index(shelf, info, signal), undefined);
  }

  /** Makes sure that the collection exists with all field indexes. */
  async ready(shelf: CollectionKind, signal: AbortSignal): Promise<void> {
    const info = (await this.look(shelf, signal)) ?? (await this.#make(shelf, signal));
    await this.#index(shelf, info, signal);
    this.#seen.add(shelf);
  }

  /**
   * Whether the collection exists. If so, creates missing field indexes: its creator may have been killed before it had
   * them.
   */
  async whole(shelf: CollectionKind, signal: AbortSignal): Promise<boolean> {
    const info = await this.look(shelf, signal);
    if (info !== null) await this.#index(shelf, info, signal);
    return info !== null;
  }

  async #index(shelf: CollectionKind, info: Info | null, signal: AbortSignal): Promise<void> {
    for (const [field, schema] of Object.entries(INDEXES)) {
      if (info?.payload_schema[field]?.data_type === schema.type) continue;
      const body = { collection_name: this.name(shelf), wait: true, field_name: field, field_schema: schema };
      await this.#api.ask((calls, init) => calls.createFieldIndex(body, init), {
        what: `index ${field} in ${this.name(shelf)}`,
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
  async look(shelf: CollectionKind, signal: AbortSignal): Promise<Info | null> {
    const name = this.name(shelf);
    const ask = this.#api.ask((calls, init) => calls.getCollection({ collection_name: name }, init), {
      what: `describe ${name}`,
      form: collectionInfo,
      signal,
    });
    const info = await orWithout(ask, null);
    this.#seen.delete(shelf);
    if (info === null) return null;
    this.#check(name, info);
    if ((info.points_count ?? 0) > 0) this.#seen.add(shelf);
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
  async #make(shelf: CollectionKind, signal: AbortSignal): Promise<Info | null> {
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
        (calls, init) => calls.createCollection({ collection_name: this.name(shelf), ...shape }, init),
        { what: `create ${this.name(shelf)}`, form: resultOf(z.boolean()), signal, write: true },
      );
      return null;
    } catch (thrown) {
      if (thrown instanceof QdrantFailure && thrown.trouble === "exists") return this.look(shelf, signal);
      throw thrown;
    }
  }
}

/** The answer, or `without` if the collection does not exist. */
export const orWithout = <T, U>(asked: Promise<T>, without: U): Promise<T | U> =>
  unlessIn(["no-collection"], asked, without);

/**
 * Also returns `without` for a collection that is just being made: a strict server refuses to filter by a field without
 * an index.
 */
export const orBegun = <T, U>(asked: Promise<T>, without: U): Promise<T | U> =>
  unlessIn(["no-collection", "no-index"], asked, without);

async function unlessIn<T, U>(troubles: readonly Trouble[], asked: Promise<T>, without: U): Promise<T | U> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof QdrantFailure && troubles.includes(thrown.trouble)) return without;
    throw thrown;
  }
}

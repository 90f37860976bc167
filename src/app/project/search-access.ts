/** Constructs the code search, and the vectors of its questions. */
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { foldPath, protectedName } from "../../core/file-names.ts";
import { MAX_RULES_LENGTH, NestedIgnore } from "../../policy/paths/ignore-rules.ts";
import { secretAt } from "../../policy/paths/path-place.ts";
import {
  openEmbeddedStore,
  openServerOf,
  openStoreFor,
  readEmbeddedStore,
} from "../../search/stores/open-store.ts";
import type { IndexOptions, OpenedIndex } from "../../search/open-index.ts";
import type { Pruned } from "../../search/prune-indexes.ts";
import type { QdrantServer } from "../../search/stores/qdrant-api.ts";
import type { PathRules } from "../../search/files/box-files.ts";
import { type Host, workerProgram } from "../host.ts";
import { type EmbedOutcome, type EmbedProgress, weightIn } from "../../search/index-vectors.ts";
import type { FoundEmbedder, EmbedderPatience } from "./embedder-access.ts";

export const indexRoot = ({ places }: Host): string => path.join(places.state, "search");

export const PATH_RULES: PathRules = {
  ignored: NestedIgnore.none(),
  mostOfList: MAX_RULES_LENGTH,
  secret: (file) => secretAt(`/${foldPath(file)}`) !== null,
  guarded: (name, atTop) => protectedName(name, atTop) !== undefined,
};

/** The server that the settings name, with the key from the environment. */
export const qdrantOf = (
  env: Host["env"],
  { url, nodes, shard_number, replication_factor, write_consistency_factor }: Settings["search"],
): QdrantServer => ({
  url,
  nodes,
  shape: { shard_number, replication_factor, write_consistency_factor },
  apiKey: env["QDRANT_API_KEY"],
});

export const indexAccess = (
  { env }: Host,
  { search }: Settings,
  warn: (text: string) => void,
): IndexOptions => ({
  rules: PATH_RULES,
  // Until a person can declare a repository's text trustworthy.
  trust: "untrusted",
  thread: workerProgram("cut-worker", "src/search/files/cut-worker.ts"),
  openStore: async ({ earlier, only, ...opening }) => {
    const store = only && earlier !== null ? earlier : search.store;
    return openStoreFor({ ...opening, earlier, store, server: qdrantOf(env, search), warn });
  },
  named: search.store === "auto" ? null : search.store,
  openServer: async (identity, signal) => {
    if (search.store === "embedded") return null;
    return await openServerOf({ store: search.store, server: qdrantOf(env, search), identity, warn, signal });
  },
  warn,
});

/** For an index that is thrown away with its folder. */
export const embeddedOnly = (options: IndexOptions): IndexOptions => ({
  ...options,
  named: null,
  openServer: () => Promise.resolve(null),
  openStore: async ({ folder, identity, access }) => {
    return (access === "read" ? readEmbeddedStore : openEmbeddedStore)(folder, identity);
  },
});

/** Removes indexes that nothing needs, and frees their space. */
export async function pruneIndexes(
  host: Host,
  settings: Settings,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<Pruned> {
  const { prune } = await import("../../search/prune-indexes.ts");
  return prune(indexRoot(host), indexAccess(host, settings, note), signal);
}

/** How long a search waits for the vectors of changed chunks. */
const EMBED_SOME_MS = 3000;
/** How long a failed model is left alone: a run has many searches, and each would wait for it. */
const REST_MS = 60_000;

/** The parts of an index that a vector search needs. */
type Embedded = Pick<OpenedIndex, "facts" | "store">;

/** The vectors of searches: the embedder is looked for once, and left alone for a while after a failure. */
export class SearchVectors implements Disposable {
  readonly #wanted: VectorParts;
  readonly #now: () => number;
  #found: Promise<Vectors> | undefined;
  #failure: { readonly why: string; readonly at: number } | undefined;

  /** `now` in milliseconds of any monotonic clock. */
  constructor(wanted: VectorParts, now = (): number => performance.now()) {
    this.#wanted = wanted;
    this.#now = now;
  }

  /** Gives some of the new chunks vectors, if the index has vectors at all; `harness index` does the rest. */
  async embedSome(index: Embedded, signal: AbortSignal): Promise<void> {
    if (index.facts.model === null || this.#failed() !== null) return;
    const vectors = await this.#find(signal);
    if (vectors.kind === "none" || vectors.model.id !== index.facts.model) return;
    const { name } = vectors.model;
    const late = AbortSignal.timeout(EMBED_SOME_MS);
    const outcome = await embedIn(index, vectors, () => undefined, AbortSignal.any([signal, late]));
    signal.throwIfAborted();
    if (outcome.kind === "whole" || outcome.asked > 0) return;
    this.#fail(late.aborted ? `${name} returned no vector within ${EMBED_SOME_MS / 1000} s` : outcome.reason);
  }

  /** The vector of a question, if the index has vectors to compare with. */
  async of(index: Embedded, text: string, signal: AbortSignal): Promise<Float32Array | null> {
    const { model: id, dimension } = index.facts;
    // If vectors bring no benefit, the search does not wait for one.
    if (id === null || dimension === null || weightIn(index.facts) === 0) return null;
    const failed = this.#failed();
    if (failed !== null) return this.#wordsAlone(failed);
    const found = await this.#find(signal);
    if (found.kind === "none") return this.#wordsAlone(found.reason);
    if (found.model.id !== id)
      return this.#wordsAlone(`the stored vectors are from ${id}; harness index creates new ones`);
    const { queryVector } = await import("../../search/embed-model.ts");
    const question = await queryVector(found.model, text, { dimension, signal });
    if (question.kind === "vector") return question.vector;
    this.#fail(question.reason);
    return this.#wordsAlone(question.reason);
  }

  /** Disposes of the embedder once it was found; searches under way continue without it. */
  [Symbol.dispose](): void {
    void this.#found?.then(
      (found) => found[Symbol.dispose](),
      () => undefined,
    );
    this.#found = undefined;
  }

  async #find(signal: AbortSignal): Promise<Vectors> {
    const looking = (this.#found ??= vectorsFor(this.#wanted, signal));
    try {
      const found = await looking;
      if (found.kind === "none") this.#fail(found.reason);
      return found;
    } catch (thrown) {
      if (this.#found === looking) this.#found = undefined;
      throw thrown;
    }
  }

  #fail(why: string): void {
    this.#failure ??= { why, at: this.#now() };
  }

  /**
   * Why the embedder is left alone now, or null. After the pause it is looked up again, because it may have changed.
   */
  #failed(): string | null {
    if (this.#failure === undefined) return null;
    if (this.#now() - this.#failure.at < REST_MS) return this.#failure.why;
    this[Symbol.dispose]();
    this.#failure = undefined;
    return null;
  }

  #wordsAlone(why: string): null {
    this.#wanted.note(`searching by words only: ${why}`);
    return null;
  }
}

/** The embedder, or why there is none. */
export type Vectors = FoundEmbedder & Disposable;

interface VectorParts {
  readonly host: Host;
  readonly settings: Settings;
  /** The origin of each setting: a model that the user did not name is asked only if it runs on this machine. */
  readonly origins: Readonly<Record<string, string>>;
  readonly note: (text: string) => void;
  /** Left out: as long as a search may wait. */
  readonly patience?: EmbedderPatience;
}

/** Looks for an embedder, and asks for the length of its vectors. Only an abort rejects. */
export async function vectorsFor(
  { host, settings, origins, note, patience }: VectorParts,
  signal: AbortSignal,
): Promise<Vectors> {
  const { embedderAccess } = await import("./embedder-access.ts");
  using stack = new DisposableStack();
  const access = stack.use(
    embedderAccess(settings, { host, origins, warn: note, ...(patience === undefined ? {} : { patience }) }),
  );
  const found = await access.find(signal);
  stack.move();
  return { ...found, [Symbol.dispose]: () => access[Symbol.dispose]() };
}

export const noVectors = (reason: string, remedy: string): Vectors => ({
  kind: "none",
  reason,
  remedy,
  [Symbol.dispose]: () => undefined,
});

/** The identity of an index's vectors, with which its store is opened. */
export const identityOf = (vectors: Vectors): { readonly model: string; readonly dimension: number } | null =>
  vectors.kind === "none" ? null : { model: vectors.model.id, dimension: vectors.dimension };

/** Gives the chunks of an index their vectors, as many as the time allows. */
export async function embedIn(
  index: Pick<OpenedIndex, "store">,
  vectors: Vectors,
  onProgress: (progress: EmbedProgress) => void,
  signal: AbortSignal,
): Promise<EmbedOutcome> {
  if (vectors.kind === "none") {
    const { embedded, chunks } = await index.store.counts(signal);
    const { reason, remedy } = vectors;
    return { kind: "partial", embedded, chunks, reused: 0, asked: 0, reason, remedy };
  }
  const { embedAll } = await import("../../search/embed-all.ts");
  const { model, cache, dimension } = vectors;
  return embedAll(index.store, model, cache, { dimension, signal, onProgress });
}

import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import {
  checkedVectors,
  documentText,
  type EmbeddingModel,
  probedDimension,
  type VectorCache,
  vectorsFrom,
} from "./embed-model.ts";
import type { EmbedOutcome, EmbedProgress } from "./index-vectors.ts";
import type { Chunk, SearchStore } from "./search-store.ts";

export interface EmbedOptions {
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: EmbedProgress) => void;
  /** Requests in flight at a time. A local server works on one, and the next one waits there. */
  readonly concurrency?: number;
}

const CHUNKS_AT_ONCE = 512;

/** Texts in the first request, and the maximum in any request. */
const FIRST_BATCH = 8;
const MAX_BATCH = 32;
/** Target time of one request: a server goes on computing for a client that has left. */
const BATCH_MS = 1000;

/**
 * How many texts one request has: as many as the server answers within about a second, including the wait behind other
 * requests, so that an abort or a kill costs no more than that. One request at most doubles the number.
 */
export class BatchSize {
  #texts = FIRST_BATCH;

  get texts(): number {
    return this.#texts;
  }

  /** Records that `texts` were answered in `ms` milliseconds. */
  took(texts: number, ms: number): void {
    const fitting = Math.floor((texts * BATCH_MS) / Math.max(1, ms));
    this.#texts = Math.max(1, Math.min(fitting, this.#texts * 2, MAX_BATCH));
  }
}

/**
 * Embeds all chunks of a store. A failure of the embedder ends the run with a value; only failures of the store reject.
 * Each batch is durable before the next one is requested in its place.
 */
export async function embedAll(
  store: SearchStore,
  model: EmbeddingModel,
  cache: VectorCache,
  options: EmbedOptions,
): Promise<EmbedOutcome> {
  const run = new EmbedRun(store, model, cache, options);
  return run.toTheEnd();
}

class EmbedRun {
  readonly #store: SearchStore;
  readonly #model: EmbeddingModel;
  readonly #cache: VectorCache;
  readonly #options: EmbedOptions;
  readonly #started = performance.now();
  readonly #requests: VectorRequests;
  readonly #size = new BatchSize();
  /** Paths by chunk id, for texts that the model refuses to embed. */
  readonly #refused = new Map<string, string>();
  #before = { embedded: 0, chunks: 0 };
  readonly #added = { reused: 0, asked: 0 };

  constructor(store: SearchStore, model: EmbeddingModel, cache: VectorCache, options: EmbedOptions) {
    this.#store = store;
    this.#model = model;
    this.#cache = cache;
    this.#options = options;
    this.#requests = new VectorRequests(model, options);
  }

  async toTheEnd(): Promise<EmbedOutcome> {
    const { signal } = this.#options;
    try {
      this.#before = await this.#store.counts(signal);
      await this.#windows();
    } catch (thrown) {
      if (signal.aborted) return this.#outcome("cancelled", "cancelled");
      if (thrown instanceof EmbedderFailed) return this.#failed(thrown.cause);
      throw thrown;
    }
    const [path] = this.#refused.values();
    if (path === undefined) return this.#outcome("whole", "");
    const texts =
      this.#refused.size === 1 ? `a text in ${path}` : `${this.#refused.size} texts, the first in ${path}`;
    return this.#outcome("partial", `${this.#model.name} returned no vector for ${texts}`);
  }

  async #windows(): Promise<void> {
    let last: ReadonlySet<string> = new Set();
    for (;;) {
      const found = await this.#store.unembedded(CHUNKS_AT_ONCE + this.#refused.size, this.#options.signal);
      const chunks = found.filter(({ id }) => !this.#refused.has(id));
      if (chunks.length === 0) return;
      if (chunks.every(({ id }) => last.has(id)))
        throw new HarnessError(
          EXIT.failed,
          "the index did not keep the vectors that were written to it",
          "harness index",
        );
      await this.#window(chunks);
      last = new Set(chunks.map(({ id }) => id));
    }
  }

  async #window(chunks: readonly Chunk[]): Promise<void> {
    const byText = Map.groupBy(chunks, (chunk) => documentText(this.#model, chunk));
    const kept = this.#cache.get(this.#model.id, [...byText.keys()]);
    const known = [...kept].filter(([, { length }]) => length === this.#options.dimension);
    if (known.length > 0) await this.#keep(new Map(known), byText, "reused");
    for (const [text] of known) byText.delete(text);
    const texts = [...byText.keys()];
    const ends = await Promise.allSettled(
      Array.from({ length: this.#options.concurrency ?? 2 }, () => this.#work(texts, byText)),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** After a failure no further batch begins; batches in flight are kept. */
  async #work(waiting: string[], byText: ReadonlyMap<string, readonly Chunk[]>): Promise<void> {
    try {
      while (waiting.length > 0) {
        const batch = waiting.splice(0, this.#size.texts);
        const began = performance.now();
        await this.#batch(batch, byText);
        this.#size.took(batch.length, performance.now() - began);
      }
    } catch (thrown) {
      waiting.length = 0;
      throw thrown;
    }
  }

  async #batch(texts: readonly string[], byText: ReadonlyMap<string, readonly Chunk[]>): Promise<void> {
    for await (const answer of this.#requests.vectorsOf(texts))
      if (answer.kind === "refused")
        for (const { id, path } of byText.get(answer.text) ?? []) this.#refused.set(id, path);
      else {
        this.#cache.put(this.#model.id, answer.byText);
        await this.#keep(answer.byText, byText, "asked");
      }
  }

  async #keep(
    vectors: ReadonlyMap<string, Float32Array>,
    byText: ReadonlyMap<string, readonly Chunk[]>,
    from: "reused" | "asked",
  ): Promise<void> {
    const byId = new Map(
      [...vectors].flatMap(([text, vector]) =>
        (byText.get(text) ?? []).map(({ id }) => [id, vector] as const),
      ),
    );
    await this.#store.embed(byId, this.#options.signal);
    this.#added[from] += byId.size;
    this.#tell();
  }

  #tell(): void {
    const { reused, asked } = this.#added;
    const total = this.#before.chunks;
    const done = Math.min(total, this.#before.embedded + reused + asked);
    const seconds = (performance.now() - this.#started) / 1000;
    const perSecond = asked > 0 ? asked / seconds : null;
    const remainingMs = perSecond === null ? null : Math.round(((total - done) / perSecond) * 1000);
    this.#options.onProgress?.({ done, total, perSecond, remainingMs });
  }

  async #failed(thrown: unknown): Promise<EmbedOutcome> {
    const probe = await probedDimension(this.#model, this.#options.signal).catch(() => undefined);
    if (probe !== undefined && probe !== this.#options.dimension) this.#cache.forget(this.#model.id);
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
    return this.#outcome("partial", reasonOf(thrown), remedy);
  }

  async #outcome(kind: EmbedOutcome["kind"], reason: string, remedy = ""): Promise<EmbedOutcome> {
    const { embedded, chunks } = await this.#store.counts(new AbortController().signal);
    return { kind, embedded, chunks, ...this.#added, reason, remedy };
  }
}

/** Up to this many refused texts are oddities of the model; more are a failure. */
const MAX_REFUSED = 20;

/** A failure of the embedder, as opposed to the store; `cause` holds the original error. */
class EmbedderFailed extends Error {}

/** The answer of a model. A text that fails while others succeed is refused. */
type ModelAnswer =
  | { readonly kind: "vectors"; readonly byText: ReadonlyMap<string, Float32Array> }
  | { readonly kind: "refused"; readonly text: string };

/**
 * Asks a model for vectors. If a batch fails but the model still answers, the batch is narrowed down to the refused
 * texts; if the model fails at everything, embedding ends.
 */
class VectorRequests {
  readonly #model: EmbeddingModel;
  readonly #dimension: number;
  readonly #signal: AbortSignal;
  #refused = 0;

  constructor(
    model: EmbeddingModel,
    { dimension, signal }: { readonly dimension: number; readonly signal: AbortSignal },
  ) {
    this.#model = model;
    this.#dimension = dimension;
    this.#signal = signal;
  }

  /** Yields answers as they come: each text once, and all texts unless it rejects, always with an EmbedderFailed. */
  async *vectorsOf(texts: readonly string[]): AsyncGenerator<ModelAnswer> {
    let vectors: readonly Float32Array[];
    try {
      const answer = await vectorsFrom(this.#model, texts, this.#signal);
      vectors = checkedVectors(answer, texts.length, this.#dimension);
    } catch (thrown) {
      yield* this.#narrowed(texts, thrown);
      return;
    }
    yield {
      kind: "vectors",
      byText: new Map(texts.map((text, at) => [text, vectors[at] as Float32Array])),
    };
  }

  async *#narrowed(texts: readonly string[], thrown: unknown): AsyncGenerator<ModelAnswer> {
    const failed = new EmbedderFailed("the embedder failed", { cause: thrown });
    if (this.#signal.aborted || this.#refused >= MAX_REFUSED) throw failed;
    const probe = await probedDimension(this.#model, this.#signal).catch(() => undefined);
    if (probe !== this.#dimension) throw failed;
    const [text = ""] = texts;
    if (texts.length > 1) {
      const middle = Math.ceil(texts.length / 2);
      yield* this.vectorsOf(texts.slice(0, middle));
      yield* this.vectorsOf(texts.slice(middle));
    } else {
      this.#refused += 1;
      yield { kind: "refused", text };
    }
  }
}

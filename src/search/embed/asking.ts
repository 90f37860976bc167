import { checkedVectors } from "./checked.ts";
import { probedDimension } from "./dimension.ts";
import type { EmbeddingModel } from "./model.ts";
import { inTime } from "../in-time.ts";

/** So many texts that a model will have nothing of are its oddities; more are a failure. */
const MOST_REFUSED = 20;

/** A failure of the embedder, as against one of the store; the cause is what it did. */
export class EmbedderFailed extends Error {}

/** What a model makes of some texts; one that it answers with a failure, while it answers others, is refused. */
export type Given =
  | { readonly kind: "vectors"; readonly byText: ReadonlyMap<string, Float32Array> }
  | { readonly kind: "refused"; readonly text: string };

/** Asks a model for vectors. One that fails at a text is asked for the others; one that fails at everything is the end. */
export class Asking {
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

  /** As they come: each text once, all of them unless it rejects, which it does with an EmbedderFailed. */
  async *vectorsOf(texts: readonly string[]): AsyncGenerator<Given> {
    let vectors: readonly Float32Array[];
    try {
      const given = await inTime(() => this.#model.embedder.embed(texts, this.#signal), this.#signal);
      vectors = checkedVectors(given, texts.length, this.#dimension);
    } catch (thrown) {
      yield* this.#narrowed(texts, thrown);
      return;
    }
    yield {
      kind: "vectors",
      byText: new Map(texts.map((text, at) => [text, vectors[at] as Float32Array])),
    };
  }

  async *#narrowed(texts: readonly string[], thrown: unknown): AsyncGenerator<Given> {
    const failed = new EmbedderFailed("the embedder failed", { cause: thrown });
    if (this.#signal.aborted || this.#refused >= MOST_REFUSED) throw failed;
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

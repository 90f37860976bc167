import type { HeldIndex } from "../../search/index/held.ts";
import { embedIn, type Vectors, vectorsFor, type VectorsWanted } from "./vectors.ts";

/** What a search waits for the vectors of what has changed. */
const SOME_MS = 3000;
/** After it has failed, a model is not asked for so long: a run has many searches, and each would wait for it. */
const REST_MS = 60_000;

/** What of an index is needed to ask it with vectors. */
type Embedded = Pick<HeldIndex, "facts" | "store">;

/** The vectors of searches: what makes them is looked for once, and left alone for a while after it has failed. */
export class SearchVectors implements Disposable {
  readonly #wanted: VectorsWanted;
  readonly #now: () => number;
  #found: Promise<Vectors> | undefined;
  #failure: { readonly why: string; readonly at: number } | undefined;

  /** `now` in milliseconds of any clock that only goes on. */
  constructor(wanted: VectorsWanted, now = (): number => performance.now()) {
    this.#wanted = wanted;
    this.#now = now;
  }

  /** Where an index has vectors, what is new in it gets some too; what is not done in time, `harness index` does. */
  async embedSome(index: Embedded, signal: AbortSignal): Promise<void> {
    if (index.facts.model === null || this.#failed() !== null) return;
    const vectors = await this.#find(signal);
    if (vectors.kind === "none" || vectors.model.id !== index.facts.model) return;
    const { name } = vectors.model;
    const late = AbortSignal.timeout(SOME_MS);
    const outcome = await embedIn(index, vectors, () => undefined, AbortSignal.any([signal, late]));
    signal.throwIfAborted();
    if (outcome.kind === "whole" || outcome.asked > 0) return;
    this.#fail(late.aborted ? `${name} gave no vector within ${SOME_MS / 1000} s` : outcome.reason);
  }

  /** The vector of a question, where the index has some to compare it with. */
  async of(index: Embedded, text: string, signal: AbortSignal): Promise<Float32Array | null> {
    const { model: id, dimension } = index.facts;
    if (id === null || dimension === null) return null;
    const failed = this.#failed();
    if (failed !== null) return this.#wordsAlone(failed);
    const found = await this.#find(signal);
    if (found.kind === "none") return this.#wordsAlone(found.reason);
    if (found.model.id !== id)
      return this.#wordsAlone(`the vectors are of ${id}; harness index makes new ones`);
    const { queryVector } = await import("../../search/embed/query.ts");
    const question = await queryVector(found.model, text, { dimension, signal });
    if (question.kind === "vector") return question.vector;
    this.#fail(question.reason);
    return this.#wordsAlone(question.reason);
  }

  /** What is under way goes on without what is closed. */
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

  /** Why it is left alone now, or null. After its rest it is looked for anew: it may be another one by then. */
  #failed(): string | null {
    if (this.#failure === undefined) return null;
    if (this.#now() - this.#failure.at < REST_MS) return this.#failure.why;
    this[Symbol.dispose]();
    this.#failure = undefined;
    return null;
  }

  #wordsAlone(why: string): null {
    this.#wanted.note(`searching by words alone: ${why}`);
    return null;
  }
}

import { createHash } from "node:crypto";
import type { Embedder } from "../../src/core/ports.ts";
import type { EmbeddingModel } from "../../src/search/embed-model.ts";

/** Texts that share words or three-letter pieces are near each other. The same text gets the same vector. */
export function hashVector(text: string, dimension: number): Float32Array {
  const vector = new Float32Array(dimension);
  const plain = text.toLowerCase();
  const words = plain.match(/[a-z]+|\d+/g) ?? [];
  for (const word of words) {
    add(vector, word, 2);
    for (let at = 0; at + 3 <= word.length; at += 1) add(vector, word.slice(at, at + 3), 1);
  }
  add(vector, "", 0.01);
  return vector;
}

function add(vector: Float32Array, feature: string, weight: number): void {
  const hash = createHash("sha1").update(feature).digest();
  const at = hash.readUInt32LE(0) % vector.length;
  vector[at] = (vector[at] ?? 0) + (((hash[4] ?? 0) & 1) === 0 ? weight : -weight);
}

type Answer = (
  texts: readonly string[],
  signal: AbortSignal,
) => readonly Float32Array[] | Promise<readonly Float32Array[]>;

/** Embeds by hashing, unless told to answer otherwise. */
export class FakeEmbedder implements Embedder {
  readonly dimension: number;
  /** Every text so far, request after request. */
  readonly requests: (readonly string[])[] = [];
  #answer: Answer | undefined;

  constructor(dimension = 64) {
    this.dimension = dimension;
  }

  answers(answer: Answer | undefined): void {
    this.#answer = answer;
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    this.requests.push(texts);
    return (await this.#answer?.(texts, signal)) ?? this.vectorsOf(texts);
  }

  vectorsOf(texts: readonly string[]): readonly Float32Array[] {
    return texts.map((text) => hashVector(text, this.dimension));
  }

  get texts(): readonly string[] {
    return this.requests.flat();
  }
}

export const modelOf = (embedder: Embedder, more: Partial<EmbeddingModel> = {}): EmbeddingModel => ({
  id: "fake/plain",
  name: "plain",
  embedder,
  mask: (text) => text,
  ...more,
});

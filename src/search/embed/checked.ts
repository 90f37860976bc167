import { EXIT, HarnessError } from "../../core/errors.ts";

const REMEDY = "check that embed_model is a model for embeddings";

/** One vector for each text, of that many numbers, each with a direction; anything else is a failure of the embedder. */
export function checkedVectors(
  vectors: readonly Float32Array[],
  texts: number,
  dimension: number,
): readonly Float32Array[] {
  if (vectors.length !== texts) throw wrong(`${vectors.length} vectors came for ${texts} texts`);
  for (const vector of vectors) {
    if (vector.length !== dimension)
      throw wrong(`a vector has ${vector.length} numbers, those of this model have ${dimension}`);
    if (!vector.every(Number.isFinite)) throw wrong("a vector holds something that is no number");
    if (vector.every((number) => number === 0)) throw wrong("a vector is all zeros");
  }
  return vectors;
}

const wrong = (reason: string): HarnessError => new HarnessError(EXIT.model, `embeddings: ${reason}`, REMEDY);

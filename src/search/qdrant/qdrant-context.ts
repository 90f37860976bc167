import { EXIT, HarnessError } from "../../core/errors.ts";
import type { StoreIdentity } from "../search-store.ts";
import type { QdrantApi } from "./qdrant-api.ts";
import type { Collections } from "./qdrant-collections.ts";

/** What reading and writing share. */
export interface QdrantContext {
  readonly api: QdrantApi;
  readonly collections: Collections;
  readonly identity: StoreIdentity;
  readonly now: () => number;
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

/**
 * What the store needs of the vectors that are kept in its database. Chunks are known by their numbers. Called within
 * the store's own transactions; synchronous, as SQLite is.
 */
export interface VectorSeat {
  /** Vectors that are there already are replaced. */
  put(vectors: ReadonlyMap<number, Float32Array>): void;
  remove(chunks: readonly number[]): void;
  clear(): void;
  /** Best first, by cosine. */
  nearest(
    vector: Float32Array,
    limit: number,
  ): readonly { readonly chunk: number; readonly cosine: number }[];
  /** Chunks without a vector, by number; at most so many. */
  missing(limit: number): readonly number[];
  readonly count: number;
}

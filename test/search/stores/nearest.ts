/** The result of a plain search over all vectors: their places, nearest first. */
export function nearestOf(vectors: readonly Float32Array[], query: Float32Array, limit: number): number[] {
  const scores = vectors.map((vector) => cosine(vector, query));
  return [...scores.keys()]
    .toSorted((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0))
    .slice(0, limit);
}

export function cosine(one: Float32Array, other: Float32Array): number {
  let [dot, first, second] = [0, 0, 0];
  for (let at = 0; at < one.length; at += 1) {
    const [a, b] = [one[at] ?? 0, other[at] ?? 0];
    dot += a * b;
    first += a * a;
    second += b * b;
  }
  return dot / Math.sqrt(first * second);
}

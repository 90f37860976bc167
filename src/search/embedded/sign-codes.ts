/**
 * One bit for each number of a vector: whether it is above zero. The query keeps its numbers; what a code scores is
 * their sum, each with the code's sign. That orders vectors well enough to choose the few that are worth an exact look.
 */

export const codeBytes = (dimension: number): number => Math.ceil(dimension / 8);

export function writeCode(vector: Float32Array, into: Uint8Array, place: number): void {
  const bytes = codeBytes(vector.length);
  const start = place * bytes;
  into.fill(0, start, start + bytes);
  for (const [at, number] of vector.entries())
    if (number > 0) into[start + (at >> 3)] = (into[start + (at >> 3)] ?? 0) | (1 << (at & 7));
}

/** By byte of a code and by value of that byte: the sum of the query's eight numbers with those signs. */
export function signSums(query: Float32Array): Float32Array {
  const bytes = codeBytes(query.length);
  const sums = new Float32Array(bytes * 256);
  for (let byte = 0; byte < bytes; byte += 1) {
    const eight = query.subarray(byte * 8, byte * 8 + 8);
    sums[byte * 256] = -eight.reduce((sum, number) => sum + number, 0);
    for (let value = 1; value < 256; value += 1) {
      const lowest = 31 - Math.clz32(value & -value);
      sums[byte * 256 + value] = (sums[byte * 256 + (value & (value - 1))] ?? 0) + 2 * (eight[lowest] ?? 0);
    }
  }
  return sums;
}

/** The score of every code. */
export function codeScores(codes: Uint8Array, sums: Float32Array): Float32Array {
  const bytes = sums.length >> 8;
  const scores = new Float32Array(codes.length / bytes);
  for (let place = 0, at = 0; place < scores.length; place += 1) {
    let score = 0;
    for (let row = 0; row < sums.length; row += 256, at += 1)
      score += sums[row + (codes[at] as number)] as number;
    scores[place] = score;
  }
  return scores;
}

/**
 * Vectors are stored with length one, as 16-bit floats. A cosine is then off by less than 0.0002. 8-bit integers would
 * be off by up to 0.003 if a few numbers of a model's vectors are far larger than the others, which is usual, and that
 * costs a few of a hundred places among the first ten.
 */

/** Scales a vector to length one; undefined if it has no direction. */
export function unit(vector: Float32Array): Float32Array | undefined {
  const length = largest(vector);
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  // Scaled first: squares of very small or very large numbers leave the range.
  const scaled = vector.map((number) => number / length);
  const norm = Math.sqrt(dot(scaled, scaled));
  return scaled.map((number) => number / norm);
}

function largest(vector: Float32Array): number {
  let most = 0;
  for (const number of vector) {
    if (!Number.isFinite(number)) return Number.NaN;
    most = Math.max(most, Math.abs(number));
  }
  return most;
}

export function dot(one: Float32Array | Float16Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < other.length; at += 1) sum += (one[at] as number) * (other[at] as number);
  return sum;
}

export const packed = (vector: Float32Array): Uint8Array => new Uint8Array(new Float16Array(vector).buffer);

/** Undefined if the bytes do not hold `dimension` numbers. */
export function unpacked(bytes: Uint8Array, dimension: number): Float16Array | undefined {
  if (bytes.byteLength !== dimension * 2) return undefined;
  const whole = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Float16Array(whole.buffer, whole.byteOffset, dimension);
}

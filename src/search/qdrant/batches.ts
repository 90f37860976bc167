/** Qdrant takes 32 MB in one request unless it is told otherwise, and works on one while it is held. */
export const MOST_POINTS = 256;
const MOST_BYTES = 8 * 2 ** 20;
/** Requests of one call that are under way at a time. */
const SIDE_BY_SIDE = 2;

/** In their order, each batch within the bounds; what is larger than they are is alone. */
export function batches<T>(items: readonly T[], bytesOf: (item: T) => number): readonly (readonly T[])[] {
  const all: T[][] = [];
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = bytesOf(item);
    if (batch.length > 0 && (batch.length >= MOST_POINTS || bytes + size > MOST_BYTES)) {
      all.push(batch);
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += size;
  }
  return batch.length > 0 ? [...all, batch] : all;
}

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Begins nothing more after a failure, and rejects with the first one when all that was begun is over. */
export async function sideBySide<T>(
  items: readonly T[],
  act: (item: T) => Promise<void>,
  most = SIDE_BY_SIDE,
): Promise<void> {
  const failures: unknown[] = [];
  const rest = items.values();
  const work = async (): Promise<void> => {
    for (const item of rest) {
      if (failures.length > 0) return;
      await act(item).catch((thrown: unknown) => void failures.push(thrown));
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, work));
  if (failures.length > 0) throw failures[0];
}

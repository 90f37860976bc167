import { reasonOf } from "../../core/errors.ts";
import { isBeingRemoved, isMissing } from "../failure.ts";

export interface Thing {
  readonly id: string;
  readonly remove: () => Promise<unknown>;
}

interface Failed<K> {
  readonly kind: K;
  readonly id: string;
  readonly reason: string;
}

/** Removes many things, whatever becomes of each. */
export class Removal<K extends string> {
  readonly failed: Failed<K>[] = [];
  /** Another start, or a run's own end, is removing these: what hangs on them is left to it. */
  readonly going = new Set<string>();

  /** Those that are gone by it. */
  async each(kind: K, things: readonly Thing[]): Promise<readonly string[]> {
    const gone = things.map(async ({ id, remove }) => {
      try {
        await remove();
        return [id];
      } catch (thrown) {
        if (isBeingRemoved(thrown)) this.going.add(id);
        else if (!isMissing(thrown)) this.failed.push({ kind, id, reason: reasonOf(thrown) });
        return [];
      }
    });
    return (await Promise.all(gone)).flat();
  }

  /** A list that cannot be had is a failure, and empty. */
  async orNone<T>(kind: K, id: string, list: Promise<readonly T[]>): Promise<readonly T[]> {
    return list.catch((thrown: unknown) => {
      this.failed.push({ kind, id, reason: reasonOf(thrown) });
      return [];
    });
  }
}

export type Groups<T> = Map<string, T[]>;

/** The things by the key that `keyOf` gives, groups in the order in which they first came. */
export function groupBy<T>(things: readonly T[], keyOf: (thing: T) => string): Groups<T> {
  throw new Error("not written yet");
}

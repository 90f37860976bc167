const WIDEST = 8;

/**
 * The calls of one reply in the waves in which they run: neighbours that may run beside others together, everything else
 * alone, all in the order in which they were called.
 */
export function waves<Call extends { readonly beside: boolean }>(
  calls: readonly Call[],
): readonly (readonly Call[])[] {
  const all: Call[][] = [];
  for (const call of calls) {
    const last = all.at(-1);
    if (call.beside && last?.at(-1)?.beside === true && last.length < WIDEST) last.push(call);
    else all.push([call]);
  }
  return all;
}

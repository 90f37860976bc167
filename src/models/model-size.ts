/* How large a model is: by its user's setting, the size in its name, its server's count, or its window. */

/** No model with fewer parameters is usable here: a smaller count is something else. */
const LEAST_PARAMETERS = 10_000_000;

/** A count in billions, rounded to a tenth as usual for sizes: 1,543,714,304 becomes 1.5. */
export const billions = (count: number | null | undefined): number | null =>
  typeof count === "number" && count >= LEAST_PARAMETERS ? Math.max(0.1, Math.round(count / 1e8) / 10) : null;

/** The statements of a model of at most this size count for less. */
const FEW_BILLIONS = 4;

/** In billions: `qwen2.5-coder:1.5b`, `smollm2:135m`; undefined if the name gives no size. */
function sizeInName(model: string): number | undefined {
  const sizes = Array.from(
    model.matchAll(/(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])/gi),
    (size) => Number(size[1]) / (size[2]?.toLowerCase() === "m" ? 1000 : 1),
  );
  return sizes.length > 0 ? Math.max(...sizes) : undefined;
}

/** `byUser` is the user's figure and wins; `byServer` is used if the name gives no figure. Both in billions. */
export function hasFewParameters(model: string, byServer?: number, byUser?: number): boolean {
  const size = byUser ?? sizeInName(model) ?? byServer;
  return size !== undefined && size <= FEW_BILLIONS;
}

/** A window of this size has no room for many files and outputs. */
const SMALL_WINDOW = 16_384;

export const isSmallWindow = (window: { readonly tokens: number; readonly known: boolean }): boolean =>
  window.known && window.tokens <= SMALL_WINDOW;

/* How large a model is: by the word of its user, by the size in its name, by what its server counts, by its window. */

/** Nobody asks a model of fewer parameters for work: a smaller count is something else. */
const LEAST_PARAMETERS = 10_000_000;

/** A count in billions to a tenth, as sizes are told: 1,543,714,304 are 1.5. */
export const billions = (count: number | null | undefined): number | null =>
  typeof count === "number" && count >= LEAST_PARAMETERS ? Math.max(0.1, Math.round(count / 1e8) / 10) : null;

/** Of no more billions a model's word counts for less. */
const FEW_BILLIONS = 4;

/** In billions: `qwen2.5-coder:1.5b`, `smollm2:135m`; undefined where a name says nothing. */
function sizeInName(model: string): number | undefined {
  const sizes = Array.from(
    model.matchAll(/(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])/gi),
    (size) => Number(size[1]) / (size[2]?.toLowerCase() === "m" ? 1000 : 1),
  );
  return sizes.length > 0 ? Math.max(...sizes) : undefined;
}

/** `told`: billions by its server, which count where its name says nothing. `said`: by the user, whose word goes before both. */
export function hasFewParameters(model: string, told?: number, said?: number): boolean {
  const size = said ?? sizeInName(model) ?? told;
  return size !== undefined && size <= FEW_BILLIONS;
}

/** A window of so few tokens has no room for many looks. */
const SMALL_WINDOW = 16_384;

export const isSmallWindow = (window: { readonly tokens: number; readonly known: boolean }): boolean =>
  window.known && window.tokens <= SMALL_WINDOW;

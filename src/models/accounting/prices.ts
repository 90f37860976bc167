import type { Usage } from "../../core/messages.ts";

/** Prices per million tokens, of every model whose name begins so. Without `cached`, what was kept costs like the rest. */
export interface Price {
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly cached?: number | undefined;
}

const MILLION = 1e6;

/** The row with the longest beginning of the model's name; undefined when none fits. */
export function priceOf(model: string, prices: readonly Price[]): Price | undefined {
  let best: Price | undefined;
  for (const price of prices)
    if (model.startsWith(price.model) && price.model.length > (best?.model.length ?? -1)) best = price;
  return best;
}

/** null where the price or a count that it needs is unknown. */
export function costOf(usage: Usage, price: Price | undefined): number | null {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage;
  if (price === undefined || prompt === null || completion === null) return null;
  const cached = Math.min(usage.cached_tokens ?? 0, prompt);
  const input = (prompt - cached) * price.input + cached * (price.cached ?? price.input);
  return (input + completion * price.output) / MILLION;
}

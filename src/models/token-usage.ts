/** What a request used: tokens as counted or estimated, and what they cost. */

import type { ModelRequest, Price, Usage } from "../core/model-provider.ts";

/** One server's counts for one request. */
export interface Counted {
  readonly prompt?: number;
  readonly completion?: number;
  readonly cached?: number;
}

export const NO_USAGE: Usage = {
  requests: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cost: 0,
};

/** A request that was refused before a model read it. */
export const REFUSED_USAGE: Usage = { ...NO_USAGE, requests: 1 };

/** The usage of one request. Invalid counts become unknown. */
export const usageOf = (counted: Counted): Usage => ({
  requests: 1,
  prompt_tokens: countOrNull(counted.prompt),
  completion_tokens: countOrNull(counted.completion),
  cached_tokens: countOrNull(counted.cached),
  cost: null,
});

const countOrNull = (count: number | undefined): number | null =>
  count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : null;

/** A sum is unknown if either part is. */
export const sumUsage = (a: Usage, b: Usage): Usage => ({
  requests: a.requests + b.requests,
  prompt_tokens: sum(a.prompt_tokens, b.prompt_tokens),
  completion_tokens: sum(a.completion_tokens, b.completion_tokens),
  cached_tokens: sum(a.cached_tokens, b.cached_tokens),
  cost: sum(a.cost, b.cost),
});

const sum = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

const MILLION = 1e6;

/**
 * The price for the model on this day (2026-03-01): among the rows in force, the one whose prefix of the name is
 * longest, and among equals the most recent; undefined if none fits.
 */
export function priceOf(model: string, prices: readonly Price[], day: string): Price | undefined {
  let best: Price | undefined;
  for (const price of prices) {
    const { from = "" } = price;
    if (!model.startsWith(price.model) || from > day) continue;
    const [length, known] = [price.model.length, best?.model.length ?? -1];
    if (length > known || (length === known && from > (best?.from ?? ""))) best = price;
  }
  return best;
}

/** Prices change at midnight UTC. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** null if the price or a required count is unknown. */
export function costOf(usage: Usage, price: Price | undefined): number | null {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage;
  if (price === undefined || prompt === null || completion === null) return null;
  const cached = Math.min(usage.cached_tokens ?? 0, prompt);
  const input = (prompt - cached) * price.input + cached * (price.cached ?? price.input);
  return (input + completion * price.output) / MILLION;
}

/** Used until a server has counted something. */
const TOKENS_PER_BYTE = 1 / 4;
/** How strongly one count moves the estimate. */
const ESTIMATE_WEIGHT = 0.3;
/** No tokeniser goes beyond these ratios; a count outside them does not belong to this prompt. */
const MIN_TOKENS_PER_BYTE = 1 / 20;
const MAX_TOKENS_PER_BYTE = 2;
/** In smaller prompts, the template around the messages distorts the ratio. */
const MIN_SIZE = 1000;
/** If the server counted less than this part of a prompt, the prompt was cut or the estimate is far off. */
const CUT_SHARE = 0.6;
const CUT_AT_FIRST = 0.5;

/** Estimates the tokens of a text, and learns the ratio of each model from its server's counts. */
export class TokenEstimator {
  readonly #ratios = new Map<string, number>();

  tokens(model: string, bytes: number): number {
    return Math.ceil(bytes * (this.#ratios.get(model) ?? TOKENS_PER_BYTE));
  }

  /** Learns from the server's count for a prompt of this many bytes. */
  learn(model: string, bytes: number, counted: number): void {
    const seen = counted / bytes;
    if (bytes < MIN_SIZE || this.looksCut(model, bytes, counted)) return;
    if (!(seen >= MIN_TOKENS_PER_BYTE && seen <= MAX_TOKENS_PER_BYTE)) return;
    const known = this.#ratios.get(model);
    this.#ratios.set(model, known === undefined ? seen : known + ESTIMATE_WEIGHT * (seen - known));
  }

  /** The server has read far less than was sent. */
  looksCut(model: string, bytes: number, counted: number): boolean {
    const estimate = this.tokens(model, bytes);
    const part = this.#ratios.has(model) ? CUT_SHARE : CUT_AT_FIRST;
    return estimate >= MIN_SIZE && counted < estimate * part;
  }
}

/** The bytes of everything in a request that becomes part of the prompt. */
export function promptBytes({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number {
  let bytes = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools));
  for (const message of messages) {
    bytes += Buffer.byteLength(message.text);
    if (message.role === "assistant" && message.calls.length > 0)
      bytes += Buffer.byteLength(JSON.stringify(message.calls));
  }
  return bytes;
}

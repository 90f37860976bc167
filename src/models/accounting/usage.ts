import type { Usage } from "../../core/messages.ts";

/** What one server said of one request. */
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

/** One request, as it was counted. Counts that are no counts are not believed. */
export const usageOf = (counted: Counted): Usage => ({
  requests: 1,
  prompt_tokens: believed(counted.prompt),
  completion_tokens: believed(counted.completion),
  cached_tokens: believed(counted.cached),
  cost: null,
});

const believed = (count: number | undefined): number | null =>
  count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : null;

/** A sum is unknown as soon as one part of it is. */
export const sumUsage = (a: Usage, b: Usage): Usage => ({
  requests: a.requests + b.requests,
  prompt_tokens: sum(a.prompt_tokens, b.prompt_tokens),
  completion_tokens: sum(a.completion_tokens, b.completion_tokens),
  cached_tokens: sum(a.cached_tokens, b.cached_tokens),
  cost: sum(a.cost, b.cost),
});

const sum = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

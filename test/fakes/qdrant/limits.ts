import { Refusal } from "./refusal.ts";

/** Limits set by an administrator: the parts of strict mode that the store could meet. */
export interface Limits {
  readonly query?: number;
  readonly searches?: number;
  readonly upsert?: number;
  /** Whether exact searches and counts are allowed. */
  readonly exact?: boolean;
}

interface Body {
  readonly limit?: number | null;
  readonly exact?: boolean | null;
  readonly points?: readonly unknown[];
  readonly searches?: readonly { readonly limit?: number | null }[];
}

export function keepLimits(limits: Limits, operation: string, body: unknown): void {
  const { limit, exact, points = [], searches = [] } = (body ?? {}) as Body;
  within(limits.searches, searches.length, "search batch size");
  for (const each of [limit, ...searches.map((one) => one.limit)]) within(limits.query, each ?? 0, "limit");
  if (operation === "upsert_points") within(limits.upsert, points.length, "upsert limit");
  if (operation === "update_vectors") within(limits.upsert, points.length, "update limit");
  if (limits.exact === false && exact === true) strict("Exact search disabled!", "Set exact=false.");
}

function within(limit: number | undefined, value: number, name: string): void {
  if (limit !== undefined && value > limit)
    strict(
      `Limit exceeded ${value} > ${limit} for "${name}"`,
      `Reduce the "${name}" parameter to or below ${limit}.`,
    );
}

function strict(error: string, solution: string): never {
  throw new Refusal(400, `Bad request: ${error}. Help: ${solution}`);
}

import type { Capabilities } from "../../core/provider.ts";
import { ownRowOf, rowOf } from "./family.ts";
import { UNKNOWN } from "./table.ts";

/** What one source says; null where it says nothing. */
export interface Word {
  readonly context: number | null;
  readonly tools: boolean | null;
  readonly thinking: boolean | null;
  readonly cache: boolean | null;
}

export const NO_WORD: Word = { context: null, tools: null, thinking: null, cache: null };

/** A row of the setting `capabilities`. */
interface OwnRow {
  readonly prefix: string;
  readonly context?: number | undefined;
  readonly tools?: boolean | undefined;
  readonly thinking?: boolean | undefined;
}

export interface Sources {
  readonly user: readonly OwnRow[];
  /** The setting max_context_tokens: a bound on whatever else is believed. */
  readonly maxContext: number | null;
  /** What a probe of this model on this server found. */
  readonly probe: boolean | null;
  readonly server: Word;
}

type Origin = Capabilities["origin"]["context"];
type Value<T> = readonly [T, Origin];

/**
 * The user knows best, then a probe, which saw the calls with its own eyes, then the server, then the table. Where the
 * user's row leaves room, max_context_tokens takes it away.
 */
export function believe(model: string, { user, maxContext, probe, server }: Sources): Capabilities {
  const own = ownRowOf(user, model);
  const row = rowOf(model);
  const context = bounded(
    first<number>([
      [own?.context, "user"],
      [server.context, "server"],
      [row?.context, "table"],
      [UNKNOWN.context, "guess"],
    ]),
    maxContext,
  );
  const tools = first<boolean>([
    [own?.tools, "user"],
    [probe, "probe"],
    [server.tools, "server"],
    [row?.tools, "table"],
    [UNKNOWN.tools, "guess"],
  ]);
  const thinking = first<boolean>([
    [own?.thinking, "user"],
    [server.thinking, "server"],
    [row?.thinking, "table"],
    [UNKNOWN.thinking, "guess"],
  ]);
  const cache = first<boolean>([
    [server.cache, "server"],
    [row?.cache, "table"],
    [UNKNOWN.cache, "guess"],
  ]);
  return {
    context: context[0],
    tools: tools[0],
    thinking: thinking[0],
    cache: cache[0],
    origin: { context: context[1], tools: tools[1], thinking: thinking[1], cache: cache[1] },
  };
}

/** The window that the user wants for a model: the row's, or the setting's. */
export function wantedWindow(
  model: string,
  { user, maxContext }: Pick<Sources, "user" | "maxContext">,
): number | null {
  const own = ownRowOf(user, model)?.context;
  return own === undefined ? maxContext : Math.min(own, maxContext ?? own);
}

function first<T>(values: readonly (readonly [T | null | undefined, Origin])[]): Value<T> {
  for (const [value, origin] of values) if (value !== null && value !== undefined) return [value, origin];
  throw new Error("the last value is always there");
}

const bounded = (value: Value<number>, most: number | null): Value<number> =>
  most !== null && most < value[0] ? [most, "user"] : value;

import type { Capabilities, Provider } from "../../core/model-provider.ts";
import type { Wire } from "../model-api.ts";
import type { ContextInForce, ModelInForce } from "../ollama/ollama-session.ts";
import { makeProvider, type ProviderOptions } from "../provider.ts";
import { type Fallbacks, RememberedFallbacks } from "../text-protocol.ts";
import { type Row, TABLE, UNKNOWN } from "./model-families.ts";

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

/**
 * A model's name as the table writes it: in lower case, without the registry, owner and maker in front, the version
 * joined to the word before it. `hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M` is `qwen3-8b-gguf:q4_k_m`, `Meta-Llama-3.1-8B` is
 * `llama3.1-8b`.
 */
export function familyName(model: string): string {
  const lower = model.trim().toLowerCase();
  const last = lower.slice(lower.lastIndexOf("/") + 1);
  return last.replace(/^(?:meta|nvidia|ibm|google|microsoft|c4ai)[-_]/, "").replace(VERSION, "$1$2");
}

/** The first number, unless it is a size: `gpt-oss-20b`, `mistral-7b`. */
const VERSION = /^([a-z]+(?:-[a-z]+)*?)[-_](\d+(?:\.\d+)?)(?![\d.]*[bmx])/;

/** The row with the longest prefix of the name. */
export const rowOf = (model: string): Row | undefined => longest(TABLE, [familyName(model)]);

/** Among the user's rows: they may write the name as the server does, or as the family is called. */
export const ownRowOf = <T extends { readonly prefix: string }>(
  rows: readonly T[],
  model: string,
): T | undefined => {
  const whole = model.trim().toLowerCase();
  const names = [whole, whole.slice(whole.lastIndexOf("/") + 1), familyName(model)];
  return longest(rows, names);
};

function longest<T extends { readonly prefix: string }>(
  rows: readonly T[],
  names: readonly string[],
): T | undefined {
  let best: T | undefined;
  for (const row of rows) {
    const prefix = row.prefix.toLowerCase();
    // Of two rows alike the later counts.
    if (prefix.length >= (best?.prefix.length ?? 0) && names.some((name) => name.startsWith(prefix)))
      best = row;
  }
  return best;
}

/**
 * A provider that goes by what is believed: a model that calls no tools natively finds them in its prompt from the
 * first request on. Beliefs are asked for each time, as a server that was away knows more when it is back.
 */
export function believingProvider(wire: Wire, options: ProviderOptions): Provider {
  const refused = options.fallbacks ?? new RememberedFallbacks();
  const native = new Map<string, boolean>();
  const fallbacks: Fallbacks = {
    has: (model) => refused.has(model) || native.get(model) === false,
    add: (model, reason) => refused.add(model, reason),
  };
  const provider = makeProvider(wire, { ...options, fallbacks });
  /** A belief that cannot be had changes nothing: the port never throws. */
  const beliefIn = (model: string, signal: AbortSignal): Promise<boolean | null> =>
    options.capabilities(model, signal).then(
      ({ tools }) => tools,
      () => null,
    );
  return {
    capabilities: options.capabilities,
    async *stream(request, signal) {
      const believed = request.tools.length > 0 ? await beliefIn(request.model, signal) : null;
      if (believed !== null) native.set(request.model, believed);
      yield* provider.stream(request, signal);
    },
  };
}

/** Who is behind each bound of the window. */
const ORIGINS = {
  trained: "server",
  setting: "user",
  memory: "guess",
  default: "guess",
} as const satisfies Record<ContextInForce["limit"], Capabilities["origin"]["context"]>;

/** Of Ollama the window is not believed: it is the one that every request asks for. */
export function believeOllama(
  model: string,
  facts: ModelInForce,
  sources: Omit<Sources, "server">,
): Capabilities {
  const server = { context: null, tools: facts.tools, thinking: facts.thinks, cache: true };
  const believed = believe(model, { ...sources, server });
  const { tokens, limit } = facts.window;
  return { ...believed, context: tokens, origin: { ...believed.origin, context: ORIGINS[limit] } };
}

import type { CallForm, Capabilities, Provider } from "../core/model-provider.ts";
import { lastName } from "../core/file-names.ts";
import type { ModelWire } from "./model-api.ts";
import { billions } from "./model-kinds.ts";
import { FAMILIES } from "./model-families.generated.ts";
import type { ContextInForce, ModelInForce } from "./providers/ollama-server.ts";
import { makeProvider, type ProviderOptions } from "./provider.ts";
import { type Fallbacks, RememberedFallbacks } from "./text-calls/text-protocol.ts";

/** What one source reports about a model; null where the source reports nothing. */
export interface Reported {
  readonly context: number | null;
  readonly tools: boolean | null;
  readonly thinking: boolean | null;
  readonly cache: boolean | null;
  /** Billions. */
  readonly parameters: number | null;
}

export const NOT_REPORTED: Reported = {
  context: null,
  tools: null,
  thinking: null,
  cache: null,
  parameters: null,
};

/** A row of the setting `capabilities`. */
interface OwnRow {
  readonly prefix: string;
  readonly context?: number | undefined;
  readonly tools?: boolean | undefined;
  readonly thinking?: boolean | undefined;
  readonly calls?: CallForm | undefined;
  /** An absolute count: 7 billion parameters are 7000000000. */
  readonly parameters?: number | undefined;
}

export interface Sources {
  readonly user: readonly OwnRow[];
  /** The setting max_context_tokens: an upper bound on what the other sources say. */
  readonly maxContext: number | null;
  /** The call form that worked best when this model was probed on this server. */
  readonly probe: CallForm | null;
  readonly server: Reported;
}

type Origin = Capabilities["origin"]["context"];
type Value<T> = readonly [T, Origin];

/**
 * The user's row wins, then the probe (it saw real calls), then the server, then the table. max_context_tokens caps the
 * window, whichever source gave it.
 */
export function capabilitiesOf(model: string, { user, maxContext, probe, server }: Sources): Capabilities {
  const own = ownRowOf(user, model);
  const row = rowOf(model);
  const context = limitValue(
    firstKnown<number>([
      [own?.context, "user"],
      [server.context, "server"],
      [row?.context, "table"],
      [UNKNOWN.context, "guess"],
    ]),
    maxContext,
  );
  const tools = firstKnown<boolean>([
    [own?.tools, "user"],
    [own?.calls === undefined ? undefined : own.calls === "native", "user"],
    [probe === null ? null : probe === "native", "probe"],
    [server.tools, "server"],
    [row?.tools, "table"],
    [UNKNOWN.tools, "guess"],
  ]);
  const calls = firstKnown<CallForm>([
    [own?.calls, "user"],
    [own?.tools === undefined ? probe : undefined, "probe"],
    [tools[0] ? "native" : "text", tools[1]],
  ]);
  const thinking = firstKnown<boolean>([
    [own?.thinking, "user"],
    [server.thinking, "server"],
    [row?.thinking, "table"],
    [UNKNOWN.thinking, "guess"],
  ]);
  const cache = firstKnown<boolean>([
    [server.cache, "server"],
    [row?.cache, "table"],
    [UNKNOWN.cache, "guess"],
  ]);
  return {
    context: context[0],
    tools: tools[0],
    calls: calls[0],
    thinking: thinking[0],
    cache: cache[0],
    ...reportedSize(own, server),
    origin: { context: context[1], tools: tools[1], calls: calls[1], thinking: thinking[1], cache: cache[1] },
  };
}

function reportedSize(own: OwnRow | undefined, server: Reported): Pick<Capabilities, "parameters"> {
  const parameters = billions(own?.parameters) ?? server.parameters;
  return parameters === null ? {} : { parameters };
}

/** Billions of parameters, according to the user's row. */
export const parametersFromUser = (model: string, user: Sources["user"]): number | undefined =>
  billions(ownRowOf(user, model)?.parameters) ?? undefined;

/** The context window that the user wants for a model: from the row, or from the setting. */
export function wantedWindow(
  model: string,
  { user, maxContext }: Pick<Sources, "user" | "maxContext">,
): number | null {
  const own = ownRowOf(user, model)?.context;
  return own === undefined ? maxContext : Math.min(own, maxContext ?? own);
}

function firstKnown<T>(values: readonly (readonly [T | null | undefined, Origin])[]): Value<T> {
  for (const [value, origin] of values) if (value !== null && value !== undefined) return [value, origin];
  throw new Error("the last value is always there");
}

const limitValue = (value: Value<number>, most: number | null): Value<number> =>
  most !== null && most < value[0] ? [most, "user"] : value;

/**
 * Normalizes a model's name to the form used in the table: lower case, without the registry, owner and maker in front,
 * the version joined to the word before it. `hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M` becomes `qwen3-8b-gguf:q4_k_m`,
 * `Meta-Llama-3.1-8B` becomes `llama3.1-8b`.
 */
export function familyName(model: string): string {
  const lower = model.trim().toLowerCase();
  const last = lastName(lower);
  return last.replace(/^(?:meta|nvidia|ibm|google|microsoft|c4ai)[-_]/, "").replace(VERSION, "$1$2");
}

/** Matches the first number, unless that number is a size: `gpt-oss-20b`, `mistral-7b`. */
const VERSION = /^([a-z]+(?:-[a-z]+)*?)[-_](\d+(?:\.\d+)?)(?![\d.]*[bmx])/;

/** The row whose prefix is the longest match of the name. */
export const rowOf = (model: string): Row | undefined => longest(FAMILIES, [familyName(model)]);

/** Looks among the user's rows, which may use the server's name or the family's name. */
export const ownRowOf = <T extends { readonly prefix: string }>(
  rows: readonly T[],
  model: string,
): T | undefined => {
  const whole = model.trim().toLowerCase();
  const names = [whole, lastName(whole), familyName(model)];
  return longest(rows, names);
};

function longest<T extends { readonly prefix: string }>(
  rows: readonly T[],
  names: readonly string[],
): T | undefined {
  let best: T | undefined;
  for (const row of rows) {
    const prefix = row.prefix.toLowerCase();
    // If two prefixes are equal, the later row wins.
    if (prefix.length >= (best?.prefix.length ?? 0) && names.some((name) => name.startsWith(prefix)))
      best = row;
  }
  return best;
}

/**
 * A provider that follows the assumed capabilities: a model without native tool calls gets the tools in its prompt from
 * the first request on. Each request looks the capabilities up again, because a server that was down reports more once
 * it is back.
 */
export function providerWithCapabilities(wire: ModelWire, options: ProviderOptions): Provider {
  const refused = options.fallbacks ?? new RememberedFallbacks();
  const assumed = new Map<string, Capabilities>();
  const fallbacks: Fallbacks = {
    has: (model) => refused.has(model) || assumed.get(model)?.tools === false,
    add: (model, reason) => refused.add(model, reason),
  };
  const known = (model: string) => assumed.get(model) ?? {};
  const provider = makeProvider(wire, { ...options, fallbacks, known });
  /** If the lookup fails, nothing changes: the port never throws. */
  const capabilities = (model: string, signal: AbortSignal): Promise<Capabilities | null> =>
    options.capabilities(model, signal).catch(() => null);
  return {
    capabilities: options.capabilities,
    async *stream(request, signal) {
      const found = request.tools.length > 0 ? await capabilities(request.model, signal) : null;
      if (found !== null) assumed.set(request.model, found);
      yield* provider.stream(request, signal);
    },
  };
}

/** Maps the limit that bounds the window to the origin that reports show. */
const ORIGINS = {
  trained: "server",
  setting: "user",
  memory: "guess",
  default: "guess",
} as const satisfies Record<ContextInForce["limit"], Capabilities["origin"]["context"]>;

/** For Ollama the window is not assumed: every request asks for exactly this window. */
export function ollamaCapabilities(
  model: string,
  facts: ModelInForce,
  sources: Omit<Sources, "server">,
): Capabilities {
  const { tools, thinks: thinking, parameters } = facts;
  const server = { context: null, tools, thinking, cache: true, parameters };
  const assumed = capabilitiesOf(model, { ...sources, server });
  const { tokens, limit } = facts.window;
  return { ...assumed, context: tokens, origin: { ...assumed.origin, context: ORIGINS[limit] } };
}

/** What `model-families.yaml` says about a family. */
interface Row {
  readonly prefix: string;
  readonly context: number;
  readonly tools: boolean;
  readonly thinking: boolean;
  /** The family's servers cache the prefix they have already read. */
  readonly cache: boolean;
}

/**
 * A model of no known family: its tools go into the prompt, which works with every server. Some servers silently drop
 * `tools`.
 */
const UNKNOWN: Omit<Row, "prefix"> = {
  context: 32 * 1024,
  tools: false,
  thinking: false,
  cache: false,
};

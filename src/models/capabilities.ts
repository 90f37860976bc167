import type { Capabilities, Provider } from "../core/model-provider.ts";
import type { Wire } from "./model-api.ts";
import type { ContextInForce, ModelInForce } from "./ollama/ollama-session.ts";
import { makeProvider, type ProviderOptions } from "./provider.ts";
import { type Fallbacks, RememberedFallbacks } from "./text-protocol.ts";

/** What one source says; null where it says nothing. */
export interface Reported {
  readonly context: number | null;
  readonly tools: boolean | null;
  readonly thinking: boolean | null;
  readonly cache: boolean | null;
}

export const NOT_REPORTED: Reported = { context: null, tools: null, thinking: null, cache: null };

/** A row of the setting `capabilities`. */
interface OwnRow {
  readonly prefix: string;
  readonly context?: number | undefined;
  readonly tools?: boolean | undefined;
  readonly thinking?: boolean | undefined;
}

export interface Sources {
  readonly user: readonly OwnRow[];
  /** The setting max_context_tokens: a bound on whatever the other sources say. */
  readonly maxContext: number | null;
  /** What a probe of this model on this server found. */
  readonly probe: boolean | null;
  readonly server: Reported;
}

type Origin = Capabilities["origin"]["context"];
type Value<T> = readonly [T, Origin];

/**
 * The user knows best, then a probe, which saw the calls with its own eyes, then the server, then the table. Where the
 * user's row leaves room, max_context_tokens takes it away.
 */
export function capabilitiesOf(model: string, { user, maxContext, probe, server }: Sources): Capabilities {
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
 * A provider that goes by the assumed capabilities: a model that calls no tools natively finds them in its prompt from the
 * first request on. They are asked for each time, as a server that was away knows more when it is back.
 */
export function providerWithCapabilities(wire: Wire, options: ProviderOptions): Provider {
  const refused = options.fallbacks ?? new RememberedFallbacks();
  const nativeByModel = new Map<string, boolean>();
  const fallbacks: Fallbacks = {
    has: (model) => refused.has(model) || nativeByModel.get(model) === false,
    add: (model, reason) => refused.add(model, reason),
  };
  const provider = makeProvider(wire, { ...options, fallbacks });
  /** What cannot be found out changes nothing: the port never throws. */
  const takesTools = (model: string, signal: AbortSignal): Promise<boolean | null> =>
    options.capabilities(model, signal).then(
      ({ tools }) => tools,
      () => null,
    );
  return {
    capabilities: options.capabilities,
    async *stream(request, signal) {
      const native = request.tools.length > 0 ? await takesTools(request.model, signal) : null;
      if (native !== null) nativeByModel.set(request.model, native);
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

/** Of Ollama the window is not assumed: it is the one that every request asks for. */
export function ollamaCapabilities(
  model: string,
  facts: ModelInForce,
  sources: Omit<Sources, "server">,
): Capabilities {
  const server = { context: null, tools: facts.tools, thinking: facts.thinks, cache: true };
  const assumed = capabilitiesOf(model, { ...sources, server });
  const { tokens, limit } = facts.window;
  return { ...assumed, context: tokens, origin: { ...assumed.origin, context: ORIGINS[limit] } };
}

/** What is known of families, by the longest prefix of a name as `familyName` writes it. */

interface Row {
  readonly prefix: string;
  /** Tokens. Of variants the smaller: too few compact early, too many fail. */
  readonly context: number;
  /** Was made to call tools in a format that servers read. */
  readonly tools: boolean;
  readonly thinking: boolean;
  /** Its servers keep what they have read of the same prefix. */
  readonly cache: boolean;
}

const K = 1024;

const row = (prefix: string, context: number, ...marks: readonly ("tools" | "thinking")[]): Row => ({
  prefix,
  context,
  tools: marks.includes("tools"),
  thinking: marks.includes("thinking"),
  cache: true,
});

export const TABLE: readonly Row[] = [
  row("qwen", 32 * K),
  row("qwen2", 32 * K, "tools"),
  row("qwen2.5", 32 * K, "tools"),
  // Writes its calls as plain JSON, which no server reads as one.
  row("qwen2.5-coder", 32 * K),
  row("qwen3", 40 * K, "tools", "thinking"),
  row("qwen3-30b-a3b-instruct-2507", 256 * K, "tools"),
  row("qwen3-4b-instruct-2507", 256 * K, "tools"),
  row("qwen3-235b-a22b-instruct-2507", 256 * K, "tools"),
  row("qwen3-30b-a3b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-4b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-235b-a22b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-coder", 256 * K, "tools"),
  row("qwen3-next", 256 * K, "tools", "thinking"),
  row("qwen3-vl", 256 * K, "tools", "thinking"),
  row("qwen3.5", 256 * K, "tools", "thinking"),
  row("qwen3.6", 256 * K, "tools", "thinking"),
  row("qwq", 40 * K, "tools", "thinking"),

  row("codestral", 32 * K),
  row("devstral", 128 * K, "tools"),
  row("mistral", 32 * K, "tools"),
  row("mistral-nemo", 128 * K, "tools"),
  row("mistral-large", 128 * K, "tools"),
  row("mistral-medium", 128 * K, "tools"),
  row("mistral-small", 32 * K, "tools"),
  row("mistral-small3.1", 128 * K, "tools"),
  row("mistral-small3.2", 128 * K, "tools"),
  row("mixtral", 32 * K, "tools"),
  row("ministral", 128 * K, "tools"),
  row("magistral", 40 * K, "tools", "thinking"),

  row("gpt-oss", 128 * K, "tools", "thinking"),

  row("codellama", 16 * K),
  row("llama2", 4 * K),
  row("llama3", 8 * K),
  row("llama3.1", 128 * K, "tools"),
  row("llama3.2", 128 * K, "tools"),
  row("llama3.3", 128 * K, "tools"),
  row("llama4", 1024 * K, "tools"),

  row("gemma2", 8 * K),
  row("gemma3", 128 * K),
  row("gemma3:1b", 32 * K),
  row("gemma3-1b", 32 * K),
  row("gemma3n", 32 * K),
  row("gemma4", 128 * K, "tools", "thinking"),
  row("functiongemma", 32 * K, "tools"),

  row("granite3", 128 * K, "tools"),
  row("granite3-dense", 4 * K, "tools"),
  row("granite3-moe", 4 * K, "tools"),
  row("granite3.0", 4 * K, "tools"),
  row("granite3.2", 128 * K, "tools", "thinking"),
  row("granite3.3", 128 * K, "tools", "thinking"),
  row("granite4", 128 * K, "tools"),

  row("deepseek-coder", 16 * K),
  row("deepseek-coder-v2", 160 * K),
  row("deepseek-v2", 160 * K),
  row("deepseek-v3", 160 * K, "tools"),
  row("deepseek-v3.1", 160 * K, "tools", "thinking"),
  row("deepseek-v3.2", 160 * K, "tools", "thinking"),
  // Most that bear the name are distilled into models that were never taught to call.
  row("deepseek-r1", 128 * K, "thinking"),
  row("deepseek-chat", 128 * K, "tools"),
  row("deepseek-reasoner", 128 * K, "tools", "thinking"),

  row("phi3", 4 * K),
  row("phi3.5", 128 * K),
  row("phi4", 16 * K),
  row("phi4-mini", 128 * K, "tools"),
  row("phi4-mini-reasoning", 128 * K, "thinking"),
  row("phi4-reasoning", 32 * K, "thinking"),

  row("glm4", 128 * K, "tools"),
  row("glm4.5", 128 * K, "tools", "thinking"),
  row("glm4.6", 198 * K, "tools", "thinking"),
  row("glm4.7", 198 * K, "tools", "thinking"),
  row("glm5", 198 * K, "tools", "thinking"),
  row("kimi-k2", 128 * K, "tools"),
  row("kimi-k2-thinking", 256 * K, "tools", "thinking"),
  row("kimi-k2.5", 256 * K, "tools", "thinking"),
  row("minimax-m2", 192 * K, "tools", "thinking"),

  row("command-r", 128 * K, "tools"),
  row("command-r7b", 128 * K, "tools"),
  row("command-a", 256 * K, "tools"),
  row("smollm", 2 * K),
  row("smollm2", 8 * K, "tools"),
  row("smollm3", 64 * K, "tools", "thinking"),
  row("hermes3", 128 * K, "tools"),
  row("cogito", 128 * K, "tools", "thinking"),
  row("nemotron", 128 * K, "tools"),
  row("nemotron3", 256 * K, "tools", "thinking"),
  row("lfm2", 32 * K, "tools"),
  row("olmo3", 64 * K, "tools"),
  row("exaone", 32 * K),
  row("starcoder2", 16 * K),

  row("claude", 200_000, "tools", "thinking"),
  row("claude3", 200_000, "tools"),
  row("claude3-7", 200_000, "tools", "thinking"),
  row("gpt", 128_000, "tools"),
  row("gpt3.5", 16_385, "tools"),
  row("gpt4", 8192, "tools"),
  row("gpt4-turbo", 128_000, "tools"),
  row("gpt4o", 128_000, "tools"),
  row("gpt4.1", 1_047_576, "tools"),
  row("gpt5", 400_000, "tools", "thinking"),
  row("gpt5-chat", 128_000, "tools"),
  row("o1", 200_000, "tools", "thinking"),
  row("o3", 200_000, "tools", "thinking"),
  row("o4-mini", 200_000, "tools", "thinking"),
];

/**
 * A model of no known family: tools stand in its prompt, which works with every server, while some drop
 * `tools` in silence.
 */
const UNKNOWN: Omit<Row, "prefix"> = {
  context: 32 * K,
  tools: false,
  thinking: false,
  cache: false,
};

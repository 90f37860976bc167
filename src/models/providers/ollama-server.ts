/** What an Ollama server reports: its state, its models, and the facts that a session's requests use. */

import { totalmem } from "node:os";
import type { Ollama } from "ollama/browser";
import { quote } from "shell-quote";
import { z } from "zod";
import { type HttpAnswer, NO_ANSWER } from "../http-request.ts";
import { WireFailure } from "../model-api.ts";
import { billions, kindOf, type ModelKind, usableMemory } from "../model-kinds.ts";
import { askOllama, isLoopback } from "./ollama-client.ts";
import { waitingTimeout } from "../../platform/waits.ts";

/** What was found at an address. Every possible failure is an arm of this type. */
export type OllamaStatus =
  | NoServer
  | { readonly kind: "model-missing"; readonly version: string; readonly models: readonly string[] }
  | ReadyModel;

type OllamaListing =
  | NoServer
  | {
      readonly kind: "listed";
      readonly version: string;
      readonly models: readonly {
        readonly name: string;
        readonly size: number | null;
        /** Digest of what the name stands for now; another pull may change it. */
        readonly digest: string | null;
      }[];
    };

type NoServer =
  | { readonly kind: "down"; readonly reason: string }
  | { readonly kind: "not-ollama"; readonly reason: string }
  | { readonly kind: "too-old"; readonly version: string }
  /** It is Ollama, but a required answer did not come. */
  | { readonly kind: "failing"; readonly version: string; readonly reason: string };

export interface ReadyModel {
  readonly kind: "ready";
  readonly version: string;
  /** In the server's spelling. */
  readonly model: string;
  /** In tokens; `loaded` is null unless the model is in memory now. */
  readonly context: { readonly trained: number | null; readonly loaded: number | null };
  readonly capabilities: readonly string[] | null;
  /** Bytes on disk. */
  readonly size: number | null;
  /** Billions of parameters. */
  readonly parameters: number | null;
}

export interface StatusRequest {
  readonly baseUrl: string;
  readonly model: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** The first version with `truncate: false` and `shift: false`; older ones silently cut a long prompt. */
export const MIN_OLLAMA = "0.12.6";

export const tooOldText = (version: string, baseUrl: string): string =>
  `Ollama ${version} at ${baseUrl} cuts long prompts without saying so; ${MIN_OLLAMA} or newer is needed`;

/** The next step for a person. */
export const UPDATE_OLLAMA = "update Ollama: https://ollama.com/download";
export const OTHER_ADDRESS = "harness config set base_url http://HOST:11434";

const text = z.string().max(1000);
const tokens = z.number().int().positive();
const versionAnswer = z.object({ version: text });
const size = z.number().nullish().transform(orNull);
const window = tokens.nullish().catch(null).transform(orNull);
const digest = text.nullish().catch(null).transform(orNull);
const tagsAnswer = z.object({ models: listOf(z.object({ name: text, size, digest })) });
const psAnswer = z.object({ models: listOf(z.object({ name: text, context_length: window })) });
const showAnswer = z.object({
  model_info: z
    .record(z.string(), z.unknown())
    .nullish()
    .transform((info) => info ?? {}),
  capabilities: z.array(text).nullish().transform(orNull),
  template: text.nullish().catch(null).transform(orNull),
  renderer: text.nullish().catch(null).transform(orNull),
  details: z
    .object({ parameter_size: text.nullish().catch(null) })
    .nullish()
    .catch(null),
});
type ShowAnswer = z.output<typeof showAnswer>;

/** Matches a template that prints a tool as a Go struct, not as JSON. */
const PRINTS_TOOLS = /\{\{-?\s*\.Function(?:\.Parameters)?\s*-?\}\}/;

/**
 * From 0.14 on, a template that prints a tool directly prints Go's structs instead of JSON, and models copy what they
 * see; yet the server reports "tools". Such a model gets its tools in the prompt instead. If the server has its own
 * renderer for the model, it does not use the template.
 */
function usableCapabilities({ capabilities, template, renderer }: ShowAnswer): readonly string[] | null {
  const broken = renderer === null && template !== null && PRINTS_TOOLS.test(template);
  return broken && capabilities !== null ? capabilities.filter((name) => name !== "tools") : capabilities;
}

function orNull<T>(value: T | null | undefined): T | null {
  return value ?? null;
}

/** Go sometimes writes an empty list as null. */
function listOf<T>(item: z.ZodType<T>) {
  return z
    .array(item)
    .nullish()
    .transform((items) => items ?? []);
}

/** Whether `model` can be used at `baseUrl`. Never throws; all its requests together end within `timeoutMs`. */
export async function ollamaStatus(request: StatusRequest): Promise<OllamaStatus> {
  const call = callFor(request);
  const listing = await listingOf(call);
  return listing.kind === "listed" ? modelStatus(listing, request.model, call) : listing;
}

/** The models at `baseUrl`, in the server's order. Never throws either, and has the same time limit. */
export const ollamaListing = (request: Omit<StatusRequest, "model">): Promise<OllamaListing> =>
  listingOf(callFor(request));

type Call = (ask: (client: Ollama) => Promise<unknown>) => Promise<HttpAnswer>;

function callFor({ baseUrl, signal, timeoutMs }: Omit<StatusRequest, "model">): Call {
  const either = AbortSignal.any([signal, waitingTimeout(timeoutMs)]);
  return (ask) => askOllama(baseUrl, either, ask);
}

async function listingOf(call: Call): Promise<OllamaListing> {
  const hello = await call((client) => client.version());
  const version = read(versionAnswer, hello)?.version;
  if (version === undefined) return unidentified(hello);
  if (isOlder(version)) return { kind: "too-old", version };
  const tags = await call((client) => client.list());
  const list = read(tagsAnswer, tags);
  if (list === undefined) return { kind: "failing", version, reason: `/api/tags: ${answerProblem(tags)}` };
  return { kind: "listed", version, models: list.models };
}

async function modelStatus(
  { version, models }: Extract<OllamaListing, { readonly kind: "listed" }>,
  wanted: string,
  call: Call,
): Promise<OllamaStatus> {
  const found = models.find(named(wanted));
  const missing = { kind: "model-missing", version, models: models.map(({ name }) => name) } as const;
  if (found === undefined) return missing;
  const [show, ps] = await Promise.all([
    call((client) => client.show({ model: found.name })),
    call((client) => client.ps()),
  ]);
  if (show.kind === "refused" && show.status === 404) return missing;
  const shown = read(showAnswer, show);
  if (shown === undefined) return { kind: "failing", version, reason: `/api/show: ${answerProblem(show)}` };
  const loaded = read(psAnswer, ps)?.models.find(named(found.name))?.context_length ?? null;
  return {
    kind: "ready",
    version,
    model: found.name,
    context: { trained: trainedContext(shown.model_info), loaded },
    capabilities: usableCapabilities(shown),
    size: found.size,
    parameters: parametersIn(shown),
  };
}

/** Whether two names mean the same model: `latest` is the tag of a name without one. */
export const isSameModel = (one: string, other: string): boolean => fullName(one) === fullName(other);

const named =
  (wanted: string) =>
  ({ name }: { readonly name: string }): boolean =>
    isSameModel(name, wanted);

/** What the address belongs to if it gave no version. A 5xx is usually a proxy whose server is down. */
function unidentified(answer: HttpAnswer): NoServer {
  const gone = answer.kind === "unreachable" || (answer.kind === "refused" && answer.status >= 500);
  return { kind: gone ? "down" : "not-ollama", reason: answerProblem(answer) };
}

function answerProblem(answer: HttpAnswer): string {
  if (answer.kind === "json") return "it answers with unexpected JSON";
  if (answer.kind !== "refused") return answer.reason;
  return answer.error === "" ? `HTTP ${answer.status}` : `HTTP ${answer.status}: ${answer.error}`;
}

function read<T>(schema: z.ZodType<T>, answer: HttpAnswer): T | undefined {
  return answer.kind === "json" ? schema.safeParse(answer.value).data : undefined;
}

/** Builds from source have the version 0.0.0 or one without numbers; they count as new. */
function isOlder(version: string): boolean {
  const own = numbersIn(version);
  if (own.every((part) => part === 0)) return false;
  const differing = numbersIn(MIN_OLLAMA).map((oldest, index) => (own[index] ?? 0) - oldest);
  return (differing.find((difference) => difference !== 0) ?? 0) < 0;
}

const numbersIn = (version: string): number[] =>
  (/^v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);

/** Vision and audio parts have their own windows; the architecture's window is the one that counts. */
function trainedContext(info: Readonly<Record<string, unknown>>): number | null {
  const architecture = info["general.architecture"];
  return typeof architecture === "string"
    ? (tokens.safeParse(info[`${architecture}.context_length`]).data ?? null)
    : null;
}

const counted = z.number().positive();

/** The count in the model file, or else the server's text: `1.5B`, `494.03M`. */
function parametersIn({ model_info: info, details }: ShowAnswer): number | null {
  const reported = billions(counted.safeParse(info["general.parameter_count"]).data);
  if (reported !== null) return reported;
  const [, size, unit] = /^(\d+(?:\.\d+)?)\s?([MB])$/i.exec(details?.parameter_size ?? "") ?? [];
  return size === undefined ? null : billions(Number(size) * (unit?.toUpperCase() === "M" ? 1e6 : 1e9));
}

/**
 * One spelling per model: `qwen3` equals `qwen3:latest` and `registry.ollama.ai/library/qwen3:latest`. Ignores case,
 * like Ollama.
 */
export function fullName(name: string): string {
  const short = name
    .trim()
    .toLowerCase()
    .replace(/^registry\.ollama\.ai\//, "")
    .replace(/^library\//, "");
  return /:[^/]*$/.test(short) ? short : `${short}:latest`;
}

/** A shell command that runs Ollama's own client or server against this address. */
export function ollamaLine(address: string, ...words: readonly string[]): string {
  const line = ["ollama", ...words.map(quoted)].join(" ");
  return address === "http://127.0.0.1:11434" ? line : `OLLAMA_HOST=${quoted(address)} ${line}`;
}

/** The `shell-quote` package would put a backslash before each colon of an address or a model's tag. */
export const quoted = (word: string): string => (/^[\w./:@%+=,-]+$/.test(word) ? word : quote([word]));

/** A model on a server. */
export interface ServerModel {
  readonly name: string;
  /** Bytes on disk. */
  readonly size: number | null;
  readonly kind: ModelKind;
  /** The model was made to call tools; null if the server does not say. */
  readonly tools: boolean | null;
}

type ServerModels =
  | { readonly kind: "models"; readonly models: readonly ServerModel[] }
  | { readonly kind: "none"; readonly reason: string };

const shown = z.object({ capabilities: z.array(z.string().max(1000)).nullish().catch(null) });

/** A server's models and their kinds, in the server's order. Never throws; all requests end within `timeoutMs`. */
export async function ollamaModels(request: Omit<StatusRequest, "model">): Promise<ServerModels> {
  const listing = await ollamaListing(request);
  if (listing.kind !== "listed")
    return {
      kind: "none",
      reason: listing.kind === "too-old" ? `Ollama ${listing.version} is too old` : listing.reason,
    };
  const signal = AbortSignal.any([request.signal, waitingTimeout(request.timeoutMs)]);
  const models = listing.models.map(async ({ name, size }): Promise<ServerModel> => {
    const answer = await askOllama(request.baseUrl, signal, (client) => client.show({ model: name }));
    const capabilities =
      answer.kind === "json" ? (shown.safeParse(answer.value).data?.capabilities ?? null) : null;
    return { name, size, kind: kindOf(name, capabilities), tools: capabilities?.includes("tools") ?? null };
  });
  return { kind: "models", models: await Promise.all(models) };
}

/** The facts that every request for a model shares: another window would reload the model. */
export interface ModelInForce {
  readonly window: ContextInForce;
  /** null if the server does not say. */
  readonly tools: boolean | null;
  readonly thinks: boolean | null;
  /** Billions of parameters. */
  readonly parameters: number | null;
  readonly version: string | null;
}

export interface SessionOptions {
  readonly baseUrl: string;
  /** The window that the user wants for a model; null leaves the choice to this file. */
  readonly wanted?: (model: string) => number | null;
  /** Memory of the server's machine in bytes; detected if left out. */
  readonly memory?: number | null;
  /** Requests replies that are not streamed. */
  readonly whole?: boolean;
}

const STATUS_MS = 10_000;

/** Decides once per model what the session's requests use. */
export class OllamaSession {
  readonly #options: SessionOptions;
  readonly #settled = new Map<string, ModelInForce>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Throws a WireFailure if there is no server to ask. Nothing is settled for a model that the server does not list.
   */
  async modelInForce(model: string, signal: AbortSignal): Promise<ModelInForce> {
    const known = this.#settled.get(model);
    if (known !== undefined) return known;
    const { baseUrl } = this.#options;
    const status = await ollamaStatus({ baseUrl, model, signal, timeoutMs: STATUS_MS });
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    const facts = this.#factsOf(model, status);
    // If two first requests run at once, both use the facts that arrived first.
    const settled = this.#settled.get(model) ?? facts;
    if (status.kind === "ready") this.#settled.set(model, settled);
    return settled;
  }

  /** The server reported wrongly that the model can think. */
  cannotThink(model: string, facts: ModelInForce): ModelInForce {
    const changed = { ...facts, thinks: false };
    this.#settled.set(model, changed);
    return changed;
  }

  #factsOf(model: string, status: OllamaStatus): ModelInForce {
    const { baseUrl } = this.#options;
    switch (status.kind) {
      case "ready":
        return this.#ready(model, status);
      case "model-missing":
        // The chat request reports a missing model better, and a cloud model need not be in the list.
        return {
          window: this.#window(model, null, null),
          tools: null,
          thinks: null,
          parameters: null,
          version: status.version,
        };
      case "too-old":
        throw new WireFailure("refused", tooOldText(status.version, baseUrl), { remedy: UPDATE_OLLAMA });
      case "failing":
        throw new WireFailure("server", `Ollama ${status.version} at ${baseUrl} fails: ${status.reason}`, {
          passing: true,
          remedy: `restart Ollama (${ollamaLine(baseUrl, "serve")})`,
        });
      default:
        throw noServer(baseUrl, status);
    }
  }

  #ready(model: string, status: Extract<OllamaStatus, { kind: "ready" }>): ModelInForce {
    const able = (name: string): boolean | null => status.capabilities?.includes(name) ?? null;
    return {
      window: this.#window(model, status.context.trained, status.size),
      tools: able("tools"),
      thinks: able("thinking"),
      parameters: status.parameters,
      version: status.version,
    };
  }

  #window(model: string, trained: number | null, modelSize: number | null): ContextInForce {
    const { baseUrl, wanted, memory = serverMemory(baseUrl) } = this.#options;
    return contextInForce({ trained, maxContext: wanted?.(model) ?? null, memory, modelSize });
  }
}

function noServer(baseUrl: string, status: { readonly kind: string; readonly reason: string }): WireFailure {
  if (status.kind !== "down")
    return new WireFailure("unreachable", `what answers at ${baseUrl} is not Ollama: ${status.reason}`, {
      remedy: OTHER_ADDRESS,
    });
  const late = status.reason === NO_ANSWER;
  return new WireFailure(
    late ? "timeout" : "unreachable",
    `no Ollama answers at ${baseUrl}: ${status.reason}`,
    {
      remedy: ollamaLine(baseUrl, "serve"),
      passing: late,
    },
  );
}

export interface ContextRequest {
  /** The window that the model was trained for; null if the server does not say. */
  readonly trained: number | null;
  /** The setting max_context_tokens. */
  readonly maxContext: number | null;
  /** Memory of the server's machine in bytes; null if that is another machine. */
  readonly memory: number | null;
  /** Bytes of the model on disk. */
  readonly modelSize: number | null;
}

export interface ContextInForce {
  readonly tokens: number;
  /** What limits the window. */
  readonly limit: "trained" | "setting" | "memory" | "default";
}

const DEFAULT_TOKENS = 32_768;
const MIN_TOKENS = 4096;
const TOKEN_STEP = 1024;
/** Keys and values of one token at f16 in a 32B model (64 layers x 8 heads x 128); smaller models need less. */
const BYTES_PER_TOKEN = 256 * 2 ** 10;

/**
 * The window of a session. The chat adapter sends it as `num_ctx` in every request, always with the same value: without
 * it, Ollama uses 4,096 on most machines and cuts silently; if it changes, Ollama reloads the model.
 *
 * Without a setting the window is at most 32,768, even if more would fit: the whole cache is allocated when the model
 * is loaded, and once it exceeds the graphics card's memory, whose size no server reports, each token takes many times
 * as long. The memory bound is an estimate, so it never overrules the user's setting.
 */
export function contextInForce(request: ContextRequest): ContextInForce {
  const bounds: ContextInForce[] = [];
  if (request.trained !== null) bounds.push({ tokens: request.trained, limit: "trained" });
  if (request.maxContext === null) {
    bounds.push({ tokens: DEFAULT_TOKENS, limit: "default" });
    const fitting = tokensInMemory(request);
    if (fitting !== null) bounds.push({ tokens: fitting, limit: "memory" });
  } else {
    bounds.push({ tokens: request.maxContext, limit: "setting" });
  }
  return bounds.reduce((least, bound) => (bound.tokens < least.tokens ? bound : least));
}

/** Memory for the model, as far as this process can tell: known only if the server runs on this machine. */
export const serverMemory = (baseUrl: string): number | null => (isLoopback(baseUrl) ? totalmem() : null);

function tokensInMemory({ memory, modelSize }: ContextRequest): number | null {
  if (memory === null || modelSize === null) return null;
  const fitting = Math.floor((usableMemory(memory) - modelSize) / BYTES_PER_TOKEN);
  return Math.max(MIN_TOKENS, Math.floor(fitting / TOKEN_STEP) * TOKEN_STEP);
}

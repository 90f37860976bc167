import { totalmem } from "node:os";
import { NO_ANSWER } from "../http-request.ts";
import { WireFailure } from "../model-api.ts";
import { isLoopback } from "./ollama-address.ts";
import { MIN_OLLAMA, ollamaLine, type OllamaStatus, ollamaStatus } from "./ollama-server.ts";

/** What every request for a model carries alike: another value would load the model again. */
export interface ModelInForce {
  readonly window: ContextInForce;
  /** null where the server does not tell. */
  readonly tools: boolean | null;
  readonly thinks: boolean | null;
  /** Billions. */
  readonly parameters: number | null;
  readonly version: string | null;
}

export interface SessionOptions {
  readonly baseUrl: string;
  /** The window that the user wants for a model; null leaves it to what is found. */
  readonly wanted?: (model: string) => number | null;
  /** Bytes of the server's machine; found out unless given. */
  readonly memory?: number | null;
  /** Asks for replies as a whole. */
  readonly whole?: boolean;
}

const STATUS_MS = 10_000;

/** Settles once for each model what a session asks with. */
export class OllamaSession {
  readonly #options: SessionOptions;
  readonly #settled = new Map<string, ModelInForce>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Throws a WireFailure when there is no server to ask. A model that it does not list is settled by nobody yet. */
  async modelInForce(model: string, signal: AbortSignal): Promise<ModelInForce> {
    const known = this.#settled.get(model);
    if (known !== undefined) return known;
    const { baseUrl } = this.#options;
    const status = await ollamaStatus({ baseUrl, model, signal, timeoutMs: STATUS_MS });
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    const facts = this.#factsOf(model, status);
    // Two first requests at once settle on the earlier one's word.
    const settled = this.#settled.get(model) ?? facts;
    if (status.kind === "ready") this.#settled.set(model, settled);
    return settled;
  }

  /** The server's own word on thinking was wrong. */
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
        // The chat itself says so, and better: a cloud model need not be in the list.
        return {
          window: this.#window(model, null, null),
          tools: null,
          thinks: null,
          parameters: null,
          version: status.version,
        };
      case "too-old":
        throw new WireFailure(
          "refused",
          `Ollama ${status.version} at ${baseUrl} cuts long prompts without saying so; ${MIN_OLLAMA} or newer is needed`,
          { remedy: "update Ollama: https://ollama.com/download" },
        );
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
      remedy: "harness config set base_url http://HOST:11434",
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
  /** What the model was trained for; null when the server does not tell. */
  readonly trained: number | null;
  /** The setting max_context_tokens. */
  readonly maxContext: number | null;
  /** Bytes of memory of the server's machine; null when that is another machine. */
  readonly memory: number | null;
  /** Bytes of the model on disk. */
  readonly modelSize: number | null;
}

export interface ContextInForce {
  readonly tokens: number;
  /** What bounds it. */
  readonly limit: "trained" | "setting" | "memory" | "default";
}

const DEFAULT_TOKENS = 32_768;
const FEWEST_TOKENS = 4096;
const STEP = 1024;
/** Keys and values of one token at f16 in a model of 32B (64 layers x 8 heads x 128); smaller ones need less. */
const BYTES_PER_TOKEN = 256 * 2 ** 10;
/** The rest is for the system, the container and what else is open. */
const USABLE = 0.75;

/**
 * The window of a session. The chat adapter sends it as `num_ctx` in every request, always the same: left
 * out, Ollama takes 4,096 on most machines and cuts without a word; changed, it loads the model again.
 *
 * Without a setting it is 32,768 at most, even where more would fit: the whole cache is taken when the
 * model is loaded, and once it leaves the graphics card's memory, which no server tells us, each token
 * takes many times as long. The memory bound is an estimate, so it never overrules what the user set.
 */
export function contextInForce(request: ContextRequest): ContextInForce {
  const bounds: ContextInForce[] = [];
  if (request.trained !== null) bounds.push({ tokens: request.trained, limit: "trained" });
  if (request.maxContext === null) {
    bounds.push({ tokens: DEFAULT_TOKENS, limit: "default" });
    const held = tokensInMemory(request);
    if (held !== null) bounds.push({ tokens: held, limit: "memory" });
  } else {
    bounds.push({ tokens: request.maxContext, limit: "setting" });
  }
  return bounds.reduce((least, bound) => (bound.tokens < least.tokens ? bound : least));
}

/** What this process can know of the memory that the model will be loaded into. */
export const serverMemory = (baseUrl: string): number | null => (isLoopback(baseUrl) ? totalmem() : null);

function tokensInMemory({ memory, modelSize }: ContextRequest): number | null {
  if (memory === null || modelSize === null) return null;
  const held = Math.floor((memory * USABLE - modelSize) / BYTES_PER_TOKEN);
  return Math.max(FEWEST_TOKENS, Math.floor(held / STEP) * STEP);
}

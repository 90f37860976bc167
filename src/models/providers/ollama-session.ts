import { totalmem } from "node:os";
import { NO_ANSWER } from "../http-request.ts";
import { WireFailure } from "../model-api.ts";
import { isLoopback } from "./ollama-address.ts";
import { MIN_OLLAMA, ollamaLine, type OllamaStatus, ollamaStatus } from "./ollama-server.ts";

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
const FEWEST_TOKENS = 4096;
const STEP = 1024;
/** Keys and values of one token at f16 in a 32B model (64 layers x 8 heads x 128); smaller models need less. */
const BYTES_PER_TOKEN = 256 * 2 ** 10;
/** The rest is for the system, the container and other programs. */
const USABLE = 0.75;

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
    const held = tokensInMemory(request);
    if (held !== null) bounds.push({ tokens: held, limit: "memory" });
  } else {
    bounds.push({ tokens: request.maxContext, limit: "setting" });
  }
  return bounds.reduce((least, bound) => (bound.tokens < least.tokens ? bound : least));
}

/** Memory for the model, as far as this process can tell: known only if the server runs on this machine. */
export const serverMemory = (baseUrl: string): number | null => (isLoopback(baseUrl) ? totalmem() : null);

function tokensInMemory({ memory, modelSize }: ContextRequest): number | null {
  if (memory === null || modelSize === null) return null;
  const held = Math.floor((memory * USABLE - modelSize) / BYTES_PER_TOKEN);
  return Math.max(FEWEST_TOKENS, Math.floor(held / STEP) * STEP);
}

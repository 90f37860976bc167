import { WireFailure } from "../wire.ts";
import { contextInForce, type ContextInForce, serverMemory } from "./context.ts";
import { NO_ANSWER } from "./http.ts";
import { ollamaLine } from "./names.ts";
import { OLDEST_OLLAMA, type OllamaStatus, ollamaStatus } from "./server.ts";

/** What every request for a model carries alike: another value would load the model again. */
export interface ModelInForce {
  readonly window: ContextInForce;
  /** null where the server does not tell. */
  readonly tools: boolean | null;
  readonly thinks: boolean | null;
  readonly version: string | null;
}

export interface SessionOptions {
  readonly baseUrl: string;
  /** The window that the user wants for a model; null leaves it to what is found. */
  readonly wanted?: (model: string) => number | null;
  /** Bytes of the server's machine; found out unless given. */
  readonly memory?: number | null;
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
          version: status.version,
        };
      case "too-old":
        throw new WireFailure(
          "refused",
          `Ollama ${status.version} at ${baseUrl} cuts long prompts without saying so; ${OLDEST_OLLAMA} or newer is needed`,
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

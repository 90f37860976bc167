import { totalmem } from "node:os";
import { isLoopback } from "./address.ts";

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

import type { ServerResponse } from "node:http";
import { hashVector } from "./embedder.ts";
import { type FakeOllama, sendJson, startFakeOllama } from "./ollama-server.ts";

/** A fake Ollama with a model that embeds by hashing. */
export interface EmbeddingOllama extends AsyncDisposable {
  readonly server: FakeOllama;
  /** The texts of every request so far, in order. */
  readonly requests: readonly (readonly string[])[];
}

interface EmbeddingOptions {
  readonly dimension?: number;
  readonly delayMs?: number;
  /** Returns true if it has answered in place of the model. */
  readonly instead?: (texts: readonly string[], response: ServerResponse, request: number) => boolean;
}

export const EMBED_MODEL = "nomic-embed-text";

export async function startEmbeddingOllama({
  dimension = 64,
  delayMs = 0,
  instead,
}: EmbeddingOptions = {}): Promise<EmbeddingOllama> {
  const requests: (readonly string[])[] = [];
  const server = await startFakeOllama({
    models: [{ name: `${EMBED_MODEL}:latest`, capabilities: ["embedding"] }],
    delayMs,
    routes: {
      "/api/embed": (body, response) => {
        const { input } = body as { readonly input: readonly string[] };
        requests.push(input);
        if (instead?.(input, response, requests.length) === true) return;
        sendJson(response, { embeddings: input.map((text) => [...hashVector(text, dimension)]) });
      },
    },
  });
  return { server, requests, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

import type { Embedder } from "../../core/ports.ts";
import { askForList, BatchEmbedder, type EmbedLimits } from "../embed-batches.ts";
import { ollamaLine } from "./ollama-server.ts";

/**
 * Ollama's `/api/embed`. It cuts a text that does not fit the model's window; what is left of it is its beginning, as
 * with every embedder here.
 */
export function ollamaEmbedder(baseUrl: string, model: string, limits: Partial<EmbedLimits> = {}): Embedder {
  const asked = { url: `${baseUrl}/api/embed`, model, key: "", keyName: "", tools: false };
  return new BatchEmbedder(
    (input, signal) =>
      askForList("embeddings", { asked, headers: {}, body: { model, input, truncate: true }, signal }),
    limits,
    { no_model: ollamaLine(baseUrl, "pull", model), unreachable: ollamaLine(baseUrl, "serve") },
  );
}

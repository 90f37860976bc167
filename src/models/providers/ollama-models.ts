import { z } from "zod";
import { type ModelKind, kindOf } from "../model-kinds.ts";
import { askOllama } from "./ollama-client.ts";
import { ollamaListing, type StatusRequest } from "./ollama-server.ts";

/** A model on a server. */
export interface ServerModel {
  readonly name: string;
  /** Bytes on disk. */
  readonly size: number | null;
  readonly kind: ModelKind;
  /** The model was made to call tools; null if the server does not say. */
  readonly tools: boolean | null;
}

export type ServerModels =
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
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(request.timeoutMs)]);
  const models = listing.models.map(async ({ name, size }): Promise<ServerModel> => {
    const answer = await askOllama(request.baseUrl, signal, (client) => client.show({ model: name }));
    const capabilities =
      answer.kind === "json" ? (shown.safeParse(answer.value).data?.capabilities ?? null) : null;
    return { name, size, kind: kindOf(name, capabilities), tools: capabilities?.includes("tools") ?? null };
  });
  return { kind: "models", models: await Promise.all(models) };
}

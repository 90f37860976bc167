import { z } from "zod";
import { type ModelKind, kindOf } from "../model-kinds.ts";
import { askOllama } from "./ollama-client.ts";
import { ollamaListing, type StatusRequest } from "./ollama-server.ts";

/** A model that a server has. */
export interface ServerModel {
  readonly name: string;
  /** Bytes on disk. */
  readonly size: number | null;
  readonly kind: ModelKind;
  /** Was made to call tools; null where the server does not tell. */
  readonly tools: boolean | null;
}

export type ServerModels =
  | { readonly kind: "models"; readonly models: readonly ServerModel[] }
  | { readonly kind: "none"; readonly reason: string };

const shown = z.object({ capabilities: z.array(z.string().max(1000)).nullish().catch(null) });

/** The models of a server with what each is for, in the server's order. Never throws; all requests end in `timeoutMs`. */
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

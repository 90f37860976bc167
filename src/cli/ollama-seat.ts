import type { Capabilities } from "../core/provider.ts";
import { believe, NO_WORD, type Sources, wantedWindow } from "../models/capabilities/believe.ts";
import { believeOllama } from "../models/capabilities/ollama.ts";
import type { ProbeSubject } from "../models/capabilities/probes.ts";
import { ollamaAddress } from "../models/ollama/address.ts";
import { ollamaListing } from "../models/ollama/server.ts";
import { OllamaWire } from "../models/ollama/wire.ts";
import { makeProvider } from "../models/provider.ts";
import type { ModelListing, ModelSeat } from "./model-seat.ts";
import { probed } from "./probed.ts";

const TIMEOUT_MS = 5000;

/** Ollama's models, over one session: whatever asks gets the same window. */
export function ollamaSeat(base: string | null, own: Pick<Sources, "user" | "maxContext">): ModelSeat {
  const baseUrl = ollamaAddress(process.env, base);
  const wire = new OllamaWire({ baseUrl, wanted: (model) => wantedWindow(model, own) });
  const subject = async (model: string, signal: AbortSignal): Promise<ProbeSubject> => {
    const facts = await wire.modelInForce(model, signal).catch(() => undefined);
    return { model, server: baseUrl, version: facts?.version ?? "" };
  };
  const capabilities = async (model: string, signal: AbortSignal): Promise<Capabilities> => {
    const facts = await wire.modelInForce(model, signal).catch(() => undefined);
    if (facts === undefined) return believe(model, { ...own, probe: null, server: NO_WORD });
    const probe = await probed({ model, server: baseUrl, version: facts.version ?? "" });
    return believeOllama(model, facts, { ...own, probe });
  };
  return {
    server: baseUrl,
    list: (signal) => listOf(baseUrl, signal),
    capabilities,
    subject,
    provider: (tools) =>
      makeProvider(wire, {
        capabilities: async (model, signal) => {
          const believed = await capabilities(model, signal);
          return tools === undefined ? believed : { ...believed, tools };
        },
      }),
  };
}

async function listOf(baseUrl: string, signal: AbortSignal): Promise<ModelListing> {
  const listing = await ollamaListing({ baseUrl, signal, timeoutMs: TIMEOUT_MS });
  if (listing.kind === "listed") return { models: listing.models.map(({ name }) => name), reason: "" };
  const reason = listing.kind === "too-old" ? `Ollama ${listing.version} is too old` : listing.reason;
  return { models: null, reason };
}

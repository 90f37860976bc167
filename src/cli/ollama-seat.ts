import type { Settings } from "../config/schema.ts";
import type { Capabilities } from "../core/provider.ts";
import { believe, NO_WORD, wantedWindow } from "../models/capabilities/believe.ts";
import { believeOllama } from "../models/capabilities/ollama.ts";
import type { ProbeSubject } from "../models/capabilities/probes.ts";
import { believingProvider } from "../models/capabilities/provider.ts";
import { ollamaAddress } from "../models/ollama/address.ts";
import { ollamaListing } from "../models/ollama/server.ts";
import { OllamaWire } from "../models/ollama/wire.ts";
import { limitsOf } from "./model-limits.ts";
import type { ModelListing, ModelSeat } from "./model-seat.ts";
import { probed } from "./probed.ts";

const TIMEOUT_MS = 5000;

/** Ollama's models, over one session: whatever asks gets the same window. */
export function ollamaSeat(settings: Settings): ModelSeat {
  const { base_url, capabilities: user, max_context_tokens: maxContext, prices } = settings;
  const own = { user, maxContext };
  const baseUrl = ollamaAddress(process.env, base_url);
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
      believingProvider(wire, {
        limits: limitsOf(settings),
        prices,
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

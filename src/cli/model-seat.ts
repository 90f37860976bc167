import type { Settings } from "../config/schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Capabilities, Provider } from "../core/provider.ts";
import { believe, NO_WORD, type Sources } from "../models/capabilities/believe.ts";
import { askServer, type ServerAnswer } from "../models/capabilities/keyed-server.ts";
import type { ProbeSubject } from "../models/capabilities/probes.ts";
import { keyedServer } from "../models/health.ts";
import { ollamaSeat } from "./ollama-seat.ts";
import { probed } from "./probed.ts";

/** Owned by wire.ts: constructs what speaks to models, as the settings want it. */

export interface ModelSeat {
  /** As people and probes name it. */
  readonly server: string;
  readonly list: (signal: AbortSignal) => Promise<ModelListing>;
  /** What is believed of a model. It never fails: where no server answers, the table has the last word. */
  readonly capabilities: (model: string, signal: AbortSignal) => Promise<Capabilities>;
  /** What a probe of the model is kept under. */
  readonly subject: (model: string, signal: AbortSignal) => Promise<ProbeSubject>;
  /** With `tools`, they are native or not whatever is believed. */
  readonly provider: (tools?: boolean) => Provider;
}

export interface ModelListing {
  /** null when the server gave no list. */
  readonly models: readonly string[] | null;
  readonly reason: string;
}

const TIMEOUT_MS = 5000;

export function modelSeat(settings: Settings): ModelSeat {
  const { provider, capabilities: user, max_context_tokens: maxContext, base_url: baseUrl } = settings;
  const own = { user, maxContext };
  switch (provider) {
    case "ollama":
      return ollamaSeat(settings);
    case "openai":
    case "anthropic":
      return keyedSeat(provider, baseUrl, own);
    default:
      return {
        server: "a scenario file",
        list: () => Promise.resolve({ models: [], reason: "" }),
        capabilities: (model) => Promise.resolve(believe(model, { ...own, probe: null, server: NO_WORD })),
        subject: (model) => Promise.resolve({ model, server: "scripted", version: "" }),
        provider: () => unbuilt(provider),
      };
  }
}

function keyedSeat(
  name: "openai" | "anthropic",
  baseUrl: string | null,
  own: Pick<Sources, "user" | "maxContext">,
): ModelSeat {
  const reached = keyedServer(name, { baseUrl, env: process.env });
  let known: ServerAnswer | undefined;
  const answer = async (signal: AbortSignal): Promise<ServerAnswer> => {
    if (known !== undefined) return known;
    const asked = await askServer({ ...reached, signal, timeoutMs: TIMEOUT_MS });
    if (asked.models !== null) known = asked;
    return asked;
  };
  const subject = (model: string): ProbeSubject => ({ model, server: reached.base, version: "" });
  return {
    server: reached.base,
    list: answer,
    capabilities: async (model, signal) => {
      const [{ wordOn }, probe] = await Promise.all([answer(signal), probed(subject(model))]);
      return believe(model, { ...own, probe, server: wordOn(model) });
    },
    subject: (model) => Promise.resolve(subject(model)),
    provider: () => unbuilt(name),
  };
}

function unbuilt(provider: string): never {
  throw new HarnessError(
    EXIT.usage,
    `the provider ${provider}: not built yet in this version`,
    "leave it out: CHANGELOG says when",
  );
}

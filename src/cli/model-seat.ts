import type { Settings } from "../config/schema.ts";
import type { Capabilities, Provider } from "../core/provider.ts";
import type { ProbeSubject } from "../models/capabilities/probes.ts";
import { keyedSeat } from "./keyed-seat.ts";
import { ollamaSeat } from "./ollama-seat.ts";
import { scriptedSeat } from "./scripted-seat.ts";

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

export function modelSeat(settings: Settings): ModelSeat {
  const { provider } = settings;
  switch (provider) {
    case "ollama":
      return ollamaSeat(settings);
    case "openai":
    case "anthropic":
      return keyedSeat(provider, settings);
    default:
      return scriptedSeat(settings);
  }
}

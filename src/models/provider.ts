import type { Capabilities, Provider } from "../core/provider.ts";
import type { Limits } from "./timeouts.ts";
import type { Wire } from "./wire.ts";

export interface ProviderOptions {
  readonly capabilities: (model: string, signal: AbortSignal) => Promise<Capabilities>;
  readonly limits?: Partial<Limits>;
  readonly retry?: { readonly wait?: (ms: number, signal: AbortSignal) => Promise<void> };
  /** Never shown: a failure's text has a mark in their place. */
  readonly keys?: readonly string[];
}

/** The port over one API. */
export function makeProvider(_wire: Wire, options: ProviderOptions): Provider {
  return {
    stream: () => {
      throw new Error("not yet");
    },
    capabilities: options.capabilities,
  };
}

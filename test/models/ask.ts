import type { ModelRequest, ProviderEvent } from "../../src/core/model-provider.ts";
import { makeProvider, type ProviderOptions } from "../../src/models/provider.ts";
import type { ModelWire, WireEvent, WireRequest } from "../../src/models/model-api.ts";
import { answerFrom, type Answer, REQUEST } from "../contract/provider-ask.ts";

/** One attempt: its events, then the failure if there is one. */
export type Played = readonly (WireEvent | Error)[];

/** A wire that plays one list of events for each attempt; the last one for all further attempts. */
export function playing(...attempts: readonly Played[]): { wire: ModelWire; sent: WireRequest[] } {
  const sent: WireRequest[] = [];
  return {
    sent,
    wire: {
      async *send(request) {
        const played = attempts[Math.min(sent.length, attempts.length - 1)] ?? [];
        sent.push(request);
        await Promise.resolve();
        for (const event of played) {
          if (event instanceof Error) throw event;
          yield event;
        }
      },
    },
  };
}

export function providerOver(wire: ModelWire, options: Partial<ProviderOptions> = {}) {
  return makeProvider(wire, {
    capabilities: () => Promise.reject(new Error("nobody asks")),
    retry: { wait: () => Promise.resolve() },
    ...options,
  });
}

export async function asked(
  wire: ModelWire,
  options: Partial<ProviderOptions> = {},
  change: Partial<ModelRequest> = {},
): Promise<Answer> {
  const stream = providerOver(wire, options).stream({ ...REQUEST, ...change }, new AbortController().signal);
  const events: ProviderEvent[] = [];
  for await (const event of stream) events.push(event);
  return answerFrom(events);
}

export const text = (text: string): WireEvent => ({ type: "text", text });

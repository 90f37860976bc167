import type { Provider } from "../../core/provider.ts";
import { type Fallbacks, RememberedFallbacks } from "../fallbacks.ts";
import { makeProvider, type ProviderOptions } from "../provider.ts";
import type { Wire } from "../wire.ts";

/**
 * A provider that goes by what is believed: a model that calls no tools natively finds them in its prompt from the
 * first request on. Beliefs are asked for each time, as a server that was away knows more when it is back.
 */
export function believingProvider(wire: Wire, options: ProviderOptions): Provider {
  const refused = options.fallbacks ?? new RememberedFallbacks();
  const native = new Map<string, boolean>();
  const fallbacks: Fallbacks = {
    has: (model) => refused.has(model) || native.get(model) === false,
    add: (model, reason) => refused.add(model, reason),
  };
  const provider = makeProvider(wire, { ...options, fallbacks });
  return {
    capabilities: options.capabilities,
    async *stream(request, signal) {
      if (request.tools.length > 0)
        native.set(request.model, (await options.capabilities(request.model, signal)).tools);
      yield* provider.stream(request, signal);
    },
  };
}

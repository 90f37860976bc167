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
  /** A belief that cannot be had changes nothing: the port never throws. */
  const beliefIn = (model: string, signal: AbortSignal): Promise<boolean | null> =>
    options.capabilities(model, signal).then(
      ({ tools }) => tools,
      () => null,
    );
  return {
    capabilities: options.capabilities,
    async *stream(request, signal) {
      const believed = request.tools.length > 0 ? await beliefIn(request.model, signal) : null;
      if (believed !== null) native.set(request.model, believed);
      yield* provider.stream(request, signal);
    },
  };
}

import type { Capabilities, ModelRequest, Provider, ProviderEvent } from "../core/model-provider.ts";
import { TokenEstimator, type Price } from "./usage.ts";
import { type Clock, pause, realClock } from "./model-clock.ts";
import { Exchange, type Means, RETRIES, type RetryRules } from "./exchange.ts";
import { type Fallbacks, RememberedFallbacks, plainText, type ReadsWritten } from "./text-protocol.ts";
import { redact } from "./api-keys.ts";
import { CallStream } from "./text-calls/text-call-stream.ts";
import { type Limits, LIMITS } from "./timeouts.ts";
import type { Wire } from "./model-api.ts";

export interface ProviderOptions {
  readonly capabilities: (model: string, signal: AbortSignal) => Promise<Capabilities>;
  readonly limits?: Partial<Limits>;
  readonly retry?: Partial<RetryRules> & {
    /** Resolves after so long, or as soon as the signal fires. */
    readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  };
  /** Never shown: a text about a failure has a mark in their place. */
  readonly keys?: readonly string[];
  readonly prices?: readonly Price[];
  readonly estimator?: TokenEstimator;
  readonly fallbacks?: Fallbacks;
  /** Reads calls from the text; an own one knows more of the tools. */
  readonly written?: ReadsWritten;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** The port over one API: what it lacks of the contract is added here, the same for every API. */
export function makeProvider(wire: Wire, options: ProviderOptions): Provider {
  const means = meansFrom(wire, options);
  const clock = means.clock;
  const wait = options.retry?.wait ?? ((ms, signal) => pause(clock, ms, signal));
  return {
    stream: (request, signal) => stream(new Exchange(means, request, signal), wait, signal),
    capabilities: options.capabilities,
  };
}

async function* stream(
  exchange: Exchange,
  wait: (ms: number, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<ProviderEvent> {
  for (;;) {
    if (signal.aborted) return void (yield exchange.cancelled());
    const attempt = exchange.begin();
    try {
      for (let event = await attempt.next(); event !== null; event = await attempt.next()) yield event;
    } finally {
      attempt.end();
    }
    const events = exchange.after(attempt);
    yield* events;
    const last = events.at(-1);
    if (last?.type !== "waiting") return;
    if (last.ms > 0) await wait(last.ms, signal);
  }
}

function meansFrom(wire: Wire, options: ProviderOptions): Means {
  const { keys = [], written = (tools) => new CallStream(tools) } = options;
  return {
    wire,
    limits: { ...LIMITS, ...options.limits },
    rules: { ...RETRIES, ...options.retry },
    clean: (text) => redact(text, keys),
    prices: options.prices ?? [],
    estimator: options.estimator ?? new TokenEstimator(),
    fallbacks: options.fallbacks ?? new RememberedFallbacks(),
    written: ({ format, tools }: ModelRequest) => (format === undefined ? written(tools) : plainText(tools)),
    clock: options.clock ?? realClock,
    random: options.random ?? Math.random,
  };
}

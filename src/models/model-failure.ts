import { formatDuration } from "../core/bounds.ts";
import { reasonOf } from "../core/errors.ts";
import type { FailureKind, ModelFailure } from "../core/model-provider.ts";
import { WireFailure } from "./model-api.ts";

const LONGEST_REASON = 2000;

/** The next thing to do where an adapter knows nothing better. */
const REMEDIES: Readonly<Record<FailureKind, string>> = {
  unreachable: "Start the model server, or name its address with --base-url.",
  unauthorised: "Check the key, and that it belongs to this server.",
  no_model: "See what there is with: harness model list",
  too_long: "Choose a model with a larger window, or begin a new session.",
  rate_limited: "Wait, and try again.",
  server: "Look into the log of the model server, and try again.",
  garbled: "Check that --provider is what the server at --base-url speaks.",
  timeout: "Look whether the model server is still at work; a smaller model answers sooner.",
  out_of_memory: "Choose a smaller model or a smaller window: harness config set max_context_tokens 8192",
  empty: "Try again, or choose another model.",
  cut: "Try again, or choose another model; where every reply is endless, look into the log of the model server.",
  refused: "Word the task in another way, or choose another model.",
  cancelled: "",
};

/** Whatever was thrown, as the failure of an attempt. Only a defect throws anything but a `WireFailure`. */
export const asFailure = (thrown: unknown): WireFailure =>
  thrown instanceof WireFailure ? thrown : new WireFailure("garbled", reasonOf(thrown));

export function modelFailure(failure: WireFailure, clean: (text: string) => string): ModelFailure {
  const { kind, retryAfterMs } = failure;
  const asked =
    retryAfterMs !== null && retryAfterMs > 0
      ? ` (the server asks to wait ${formatDuration(retryAfterMs)})`
      : "";
  const reason = `${inShort(failure.message.trim() || kind, clean)}${asked}`;
  return { kind, reason, remedy: clean(failure.remedy || REMEDIES[kind]) };
}

/** The beginning, which says what happened, and the end, which often says why. */
export function inShort(text: string, clean: (text: string) => string): string {
  const whole = clean(text);
  if (whole.length <= LONGEST_REASON) return whole;
  return `${whole.slice(0, LONGEST_REASON * 0.75)} … ${whole.slice(-LONGEST_REASON * 0.25)}`.toWellFormed();
}

const BEFORE_READING: ReadonlySet<FailureKind> = new Set([
  "unreachable",
  "unauthorised",
  "no_model",
  "too_long",
  "rate_limited",
  "server",
  "refused",
]);

/** The server gave the request back before a model read it, so it used nothing. */
export const wasRefused = ({ kind, raw, refusesTools }: WireFailure): boolean =>
  refusesTools || (raw === null && BEFORE_READING.has(kind));

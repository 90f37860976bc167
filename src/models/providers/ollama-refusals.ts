/** What Ollama's refusals mean, and what a person can do about them. */

import { errorCode, reasonOf } from "../../core/errors.ts";
import { anyOf } from "../../core/text/expression-table.ts";
import type { FailureKind } from "../../core/model-provider.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { parseRetryAfter, isBusy } from "../../core/server-wait.ts";
import { WireFailure } from "../model-api.ts";
import { Refused } from "./ollama-client.ts";
import { ollamaLine, OTHER_ADDRESS, UPDATE_OLLAMA } from "./ollama-server.ts";

/** The server and model of a request, for remedies. */
interface OllamaContext {
  readonly baseUrl: string;
  readonly model: string;
  /** The request contained a schema for the reply. */
  readonly hasSchema?: boolean;
}

interface Refusal {
  readonly status: number;
  /** The server's own words. */
  readonly words: string;
  /** Its Retry-After header. */
  readonly retryAfter?: string | undefined;
  /** The answer's date, by the server's clock. */
  readonly date?: string | undefined;
}

interface Row {
  readonly statuses: readonly number[] | null;
  readonly words: Pick<RegExp, "test">;
  readonly kind: FailureKind;
  readonly remedy: (context: OllamaContext) => string;
  readonly passing?: true;
  readonly refusesTools?: true;
}

const noRemedy = (): string => "";
const otherModel = (): string => "harness config set chat_model NAME";
const update = (): string => UPDATE_OLLAMA;
const ANY = /(?:)/;
const MAX_REASON_LENGTH = 500;

const NO_MEMORY = anyOf(
  [
    /out of (?:device )?memory|requires more system memory|not enough memory|insufficient memory|erroroutofmemory/,
    /(?:cuda|hip)malloc failed|failed to allocate|allocation failed/,
  ],
  { flags: "i" },
);
const TOO_LONG = anyOf(
  [
    /exceeds? (?:the )?(?:available |maximum |model'?s? )*context|longer than the (?:maximum )?context/,
    /exceed_context_size|prompt is too long|input (?:is )?too (?:long|large)/,
  ],
  { flags: "i" },
);

/** What Ollama's words mean; the first matching row counts. A stream's error line counts as status 500. */
const ROWS: readonly Row[] = [
  {
    statuses: null,
    words: NO_MEMORY,
    kind: "out_of_memory",
    remedy: () => "harness config set max_context_tokens 8192, or choose a smaller model",
  },
  {
    statuses: null,
    words: TOO_LONG,
    kind: "too_long",
    remedy: () => "shorten the task, or make more room: harness config set max_context_tokens 65536",
  },
  {
    statuses: [400],
    words: /does not support tools/i,
    kind: "refused",
    remedy: otherModel,
    refusesTools: true,
  },
  { statuses: [400], words: /does not support (?:chat|completion)/i, kind: "refused", remedy: otherModel },
  {
    statuses: null,
    words: /newer version of ollama|no longer compatible with your version/i,
    kind: "refused",
    remedy: update,
  },
  { statuses: [412], words: ANY, kind: "refused", remedy: update },
  { statuses: [401, 403], words: ANY, kind: "unauthorised", remedy: () => "ollama signin" },
  {
    statuses: [404],
    words: /model.*not found|try pulling/i,
    kind: "no_model",
    remedy: ({ baseUrl, model }) => ollamaLine(baseUrl, "pull", model),
  },
  {
    statuses: [400],
    words: /invalid model name|model is required/i,
    kind: "no_model",
    remedy: otherModel,
  },
  {
    statuses: [301, 302, 303, 307, 308, 404, 405],
    words: ANY,
    kind: "unreachable",
    remedy: () => OTHER_ADDRESS,
  },
  { statuses: [429], words: ANY, kind: "rate_limited", remedy: noRemedy, passing: true },
  { statuses: [503], words: /busy|maximum pending/i, kind: "rate_limited", remedy: noRemedy, passing: true },
  {
    statuses: [499, 500, 502, 503, 504],
    words: ANY,
    kind: "server",
    remedy: ({ baseUrl }) => `check Ollama's log, or restart it (${ollamaLine(baseUrl, "serve")})`,
    passing: true,
  },
];
const OTHERWISE: Row = { statuses: null, words: ANY, kind: "refused", remedy: otherModel };

/** From llama-server, on a reply that its grammar cannot parse; the reply follows. */
const UNREAD_REPLY = /Failed to parse input at pos \d+:\s?([\s\S]*)$/;
/** From Ollama's own parsers of calls, which do not return the text that they could not parse. */
const UNREAD_CALL = anyOf(
  [
    /error parsing tool call|failed to parse|failed to produce valid JSON|XML syntax error|mismatched arg_key/,
    /^invalid (?:format|tool call|argument|function call|object)|^empty (?:function|argument) name/,
    /^expected (?:'call:' prefix|'\{' in tool call)|^tool ['"].*['"] (?:not found|is not declared)/,
    /^required argument .* is missing|^incomplete \w+ tool call|^unterminated string/,
  ],
  { flags: "i" },
);

/** The refusal of a server that accepts no schema, or cannot build a grammar from this one. */
const NO_SCHEMA = /\bformat\b|schema|grammar|structured output/i;

export const refusesThinking = ({ status, words }: Refusal): boolean =>
  status === 400 && /does not support thinking/i.test(words);

export function failureOf(refusal: Refusal, context: OllamaContext): WireFailure {
  const words = unwrapped(refusal.words);
  const { kind, remedy, passing, refusesTools } = rowFor(refusal.status, words);
  const raw = unreadIn(words);
  const shown = (raw === null || raw === "" ? words : "the server could not read the model's reply").trim();
  const reason = shown === "" ? `HTTP ${refusal.status}` : shown.slice(0, MAX_REASON_LENGTH);
  return new WireFailure(kind, `Ollama at ${context.baseUrl}: ${reason}`, {
    remedy: remedy(context),
    passing: passing === true,
    busy: isBusy(refusal.status),
    refusesTools: refusesTools === true,
    refusesHold:
      context.hasSchema === true &&
      [400, 422, 500, 501].includes(refusal.status) &&
      raw === null &&
      NO_SCHEMA.test(words),
    retryAfterMs: parseRetryAfter(refusal.retryAfter, Date.now(), refusal.date),
    raw,
  });
}

const unreadIn = (words: string): string | null =>
  UNREAD_REPLY.exec(words)?.[1] ?? (UNREAD_CALL.test(words) ? "" : null);

const rowFor = (status: number, words: string): Row =>
  ROWS.find(({ statuses, words: pattern }) => (statuses?.includes(status) ?? true) && pattern.test(words)) ??
  OTHERWISE;

/** Turns anything thrown on the way into the failure that it stands for. */
export function failureIn(
  thrown: unknown,
  context: OllamaContext,
  begun: boolean,
  signal: AbortSignal,
): WireFailure {
  if (signal.aborted) return new WireFailure("cancelled", "cancelled");
  if (thrown instanceof WireFailure) return thrown;
  if (thrown instanceof Refused) return failureOf(thrown, context);
  const code = errorCode(thrown);
  if (begun) {
    const reason =
      code === "ECONNRESET" ? "the connection broke off in the middle of the reply" : reasonOf(thrown);
    return new WireFailure("garbled", reason, { passing: true });
  }
  if (code?.startsWith("HPE_") === true)
    return new WireFailure("unreachable", `what answers at ${context.baseUrl} does not speak HTTP`, {
      remedy: OTHER_ADDRESS,
    });
  const late = code === "ETIMEDOUT";
  return new WireFailure(
    late ? "timeout" : "unreachable",
    `no Ollama answers at ${context.baseUrl}: ${reasonOf(thrown)}`,
    {
      remedy: ollamaLine(context.baseUrl, "serve"),
      passing: late || code === "ECONNRESET" || code === "EPIPE",
    },
  );
}

/** Ollama passes on its runner's answer, JSON included. */
function unwrapped(words: string): string {
  const value = words.trimStart().startsWith("{") ? parsedJson(words) : undefined;
  if (typeof value !== "object" || value === null) return words;
  const { error = value } = value as { readonly error?: unknown };
  if (typeof error === "string") return error;
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : words;
}

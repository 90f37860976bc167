import { anyOf } from "../../core/text/expression-table.ts";
import type { FailureKind } from "../../core/model-provider.ts";
import { isBusy } from "../../core/server-wait.ts";
import { asFields, asText, type Fields } from "../../core/raw-data.ts";
import { truncate } from "../../core/wording.ts";
import { WireFailure } from "../model-api.ts";

/** A server's refusal. */
export interface ApiRefusal {
  /** The HTTP status; for an error inside a successful response, the status that its own code means. */
  readonly status: number;
  /** It came with HTTP 200, usually in the middle of a stream. */
  readonly late: boolean;
  /** The error's `type` and `code`, if they are strings. */
  readonly code: string;
  readonly text: string;
  readonly retryAfterMs: number | null;
  /** The model's reply, if the server could not parse it and returns it. */
  readonly raw: string | null;
}

/** The parts of a request that a failure has to name. */
export interface RequestContext {
  readonly url: string;
  readonly model: string;
  /** Removed from every text. */
  readonly key: string;
  /** The variable that holds the key. */
  readonly keyName: string;
  /** Whether tools were sent. */
  readonly tools: boolean;
  /** Whether a schema for the reply was sent. */
  readonly hasSchema?: boolean;
}

const MAX_REASON = 500;
/** Enough for every message that is searched for; patterns never see more. */
const MAX_WORDS = 4000;

/** For errors without a number: Anthropic's types, OpenAI's types and codes. */
const STATUS_OF: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  billing_error: 402,
  insufficient_quota: 402,
  permission_error: 403,
  not_found_error: 404,
  model_not_found: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  api_error: 500,
  server_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

/** The error in a body or an event that came with HTTP `status`; undefined if it is not an error. */
export function refusalIn(
  value: unknown,
  status: number,
  retryAfterMs: number | null = null,
): ApiRefusal | undefined {
  // Some routers in front of Google's API wrap the error in a list.
  const body = asFields(Array.isArray(value) ? value[0] : value);
  const error = body === undefined ? undefined : errorOf(body, status >= 400);
  if (error === undefined) return undefined;
  const fields = asFields(error) ?? { message: error };
  const code = [fields["type"], fields["code"]].filter((part) => typeof part === "string").join(" ");
  return {
    status: status >= 400 ? status : ownStatus(fields, code),
    late: status < 400,
    code,
    text: messageOf(fields),
    retryAfterMs,
    raw: asText(fields["failed_generation"]) ?? null,
  };
}

function errorOf(body: Fields, refused: boolean): unknown {
  if (body["error"] !== undefined && body["error"] !== null && body["error"] !== "") return body["error"];
  if (body["type"] === "error" || body["object"] === "error" || refused) return body;
  return undefined;
}

function ownStatus(fields: Fields, code: string): number {
  const number = Number(fields["code"] ?? fields["status"]);
  if (number >= 400 && number < 600) return number;
  return (
    code
      .split(" ")
      .map((word) => STATUS_OF[word])
      .find((status) => status !== undefined) ?? 500
  );
}

/** The server's words, followed by those of the upstream server, if a router passes them on. */
function messageOf(fields: Fields): string {
  const own = fields["message"] ?? fields["detail"] ?? fields["error"] ?? fields;
  const upstream = asFields(fields["metadata"])?.["raw"];
  return [own, upstream]
    .filter((part) => part !== undefined && part !== null && part !== "")
    .map((part) => (typeof part === "string" ? part : JSON.stringify(part)))
    .join(": ");
}

interface Row {
  /** Any status if left out. */
  readonly status?: readonly number[];
  readonly says?: Pick<RegExp, "test">;
  readonly kind: FailureKind;
  readonly passing?: true;
  readonly remedy: (context: RequestContext) => string;
}

const CREDIT =
  /insufficient_quota|exceeded your current quota|billing|credit balance|insufficient (?:balance|credits)/i;
const NO_MEMORY =
  /out of memory|insufficient (?:system )?(?:memory|resources)|not enough memory|more system memory|failed to allocate/i;
const TOO_LONG = anyOf(
  [
    // Codes.
    /exceed_context_size|context_length_exceeded/,
    /prompt is too long|too many (?:input |prompt )?tokens|input is too (?:long|large)|reduce the length/,
    /token count[^.]{0,60}exceed/,
    /(?:exceed|maximum|longer than|larger than|greater than|overflow|not enough)[^.]{0,80}context/,
    /context[^.]{0,80}(?:exceed|overflow|of only|is only|too small)/,
  ],
  { flags: "i" },
);
const FILTERED = /content_filter|content_policy|content management policy|flagged|moderation/i;
const NO_MODEL = anyOf(
  [
    // Codes.
    /model_not_found|not_found_error model/,
    /no models? (?:is )?loaded|not a valid model|(?:unknown|invalid|no such|could not find|cannot find) model\b/,
    /model[^.]{0,120}(?:not found|not exist|not loaded|not available)/,
    // A router's words.
    /no endpoints found for/,
  ],
  { flags: "i" },
);
const NO_TOOLS = anyOf(
  [
    /n[o']t (?:yet )?support(?:ed|s)?[^.]{0,40}(?:tool|function.call)/,
    /(?:tool|function.call)[^.]{0,60}(?:not (?:yet |fully |currently )*(?:supported|available|enabled|permitted)|unsupported|requires? [`"']?--)/,
    /(?:unsupported|unrecognized|unknown|unexpected)[^.]{0,40}\btools\b|that support tool use/,
    // vLLM's option, and templates that have no place for tools.
    /--enable-auto-tool-choice|parser for this template/,
    /jinja|chat.?template|template (?:error|exception|rendering)/,
  ],
  { flags: "i" },
);
const NO_SCHEMA = /response_format|json_schema|schema|structured output|grammar|guided|json mode/i;
const UNREAD = /Failed to parse input at pos(?:ition)? \d+: ?([\s\S]*)$/;

const CHOOSE = "harness config set chat_model NAME";
const SERVER_LOG = "check the server's log";

/** What refusals mean; the first matching row counts. */
const ROWS: readonly Row[] = [
  { status: [402], kind: "rate_limited", remedy: () => "add credit at the provider, or choose another one" },
  {
    status: [400, 403, 429],
    says: CREDIT,
    kind: "rate_limited",
    remedy: () => "add credit at the provider, or choose another one",
  },
  { status: [429], kind: "rate_limited", passing: true, remedy: () => "wait, or choose another model" },
  {
    status: [401],
    kind: "unauthorised",
    remedy: ({ key, keyName }) => (key === "" ? `set ${keyName}` : `check ${keyName}`),
  },
  { says: NO_MEMORY, kind: "out_of_memory", remedy: () => `choose a smaller model: ${CHOOSE}` },
  {
    says: TOO_LONG,
    kind: "too_long",
    remedy: () => "shorten the task, or load the model with a larger context window",
  },
  { status: [413], kind: "too_long", remedy: () => "shorten the task" },
  {
    status: [400, 403, 422],
    says: FILTERED,
    kind: "refused",
    remedy: () => "word the task differently, or choose another model",
  },
  { status: [400, 403, 404, 422], says: NO_MODEL, kind: "no_model", remedy: () => CHOOSE },
  { status: [403], kind: "unauthorised", remedy: ({ keyName }) => `check ${keyName} and its permissions` },
  {
    status: [404, 405],
    kind: "unreachable",
    remedy: () => "check the address: harness config set base_url URL",
  },
  { status: [501, 505], kind: "server", remedy: () => SERVER_LOG },
  { status: [408, 409, 425], kind: "server", passing: true, remedy: () => SERVER_LOG },
];

const FALLBACK_ROW: Row = { kind: "server", remedy: () => SERVER_LOG };

/** The failure that a refusal stands for. */
export function failureOf(refusal: ApiRefusal, context: RequestContext): WireFailure {
  const raw = refusal.raw ?? UNREAD.exec(refusal.text)?.[1];
  if (raw !== undefined)
    return new WireFailure("garbled", "the server cannot read the model's reply", {
      remedy: "update the server, or choose another model",
      passing: true,
      raw,
    });
  const words = `${refusal.code} ${refusal.text}`.slice(0, MAX_WORDS);
  const { retryAfterMs } = refusal;
  if (
    context.hasSchema === true &&
    [400, 404, 422, 500, 501].includes(refusal.status) &&
    NO_SCHEMA.test(words)
  )
    return new WireFailure("server", reasonOf(refusal, context), { remedy: CHOOSE, refusesHold: true });
  if (
    context.tools &&
    [400, 404, 422, 500, 501].includes(refusal.status) &&
    NO_TOOLS.test(words) &&
    !TOO_LONG.test(words)
  )
    return new WireFailure("server", reasonOf(refusal, context), { remedy: CHOOSE, refusesTools: true });
  const row = ROWS.find(
    ({ status, says }) => (status?.includes(refusal.status) ?? true) && (says?.test(words) ?? true),
  );
  return new WireFailure((row ?? FALLBACK_ROW).kind, reasonOf(refusal, context), {
    remedy: (row ?? FALLBACK_ROW).remedy(context),
    passing: row === undefined ? refusal.status >= 500 : row.passing === true,
    busy: isBusy(refusal.status),
    retryAfterMs,
  });
}

function reasonOf({ status, late, text }: ApiRefusal, { key }: RequestContext): string {
  const clean = (key === "" ? text : text.replaceAll(key, "[key]")).replaceAll(/\s+/g, " ").trim();
  const short = truncate(clean, MAX_REASON);
  const origin = late ? "the server failed" : `HTTP ${status}`;
  return short === "" ? origin : `${origin}: ${short}`;
}

const MAX_SHOWN = 60;
const LOG_AND_VERSION = "check the server's log and its version";

export const OTHER_JSON = "it answers with unexpected JSON";

/** The address belongs to something that is not a model server. */
export const notModelServer = ({ url }: RequestContext, what: string): WireFailure =>
  new WireFailure("unreachable", `${originOf(url)} is not a model server: ${what}`, {
    remedy: "check the address: harness config set base_url URL",
  });

/** The stream ended before the server said that the reply is complete. */
export const replyBrokeOff = (reason = ""): WireFailure =>
  new WireFailure("garbled", `the reply broke off before its end${reason === "" ? "" : ` (${reason})`}`, {
    passing: true,
    remedy: "check the server's log",
  });

/** `what` is the expected form, `text` what arrived. */
export const unexpectedAnswer = (what: string, text: string): WireFailure =>
  new WireFailure("garbled", `the server sent something that is not ${what}: ${quoteText(text)}`, {
    passing: true,
    remedy: LOG_AND_VERSION,
  });

export const quoteText = (text: string): string => JSON.stringify(text.slice(0, MAX_SHOWN));

export const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "base_url");

import { formatDuration } from "../../core/wording.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { parseRetryAfter } from "../../core/server-wait.ts";
import { visibleLine } from "../../core/visible.ts";

/**
 * Converts whatever the client has thrown. No message of ours contains the key, and the server's words on a refused key
 * are not repeated.
 */
export function failureOf(thrown: unknown, context: QdrantRequest): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const status = statusOf(thrown);
  if (status !== null)
    return refusalOf({ status, ...messageIn(thrown), retryAfterMs: waitIn(thrown) }, context);
  const { url, what } = context;
  if (thrown instanceof Error && thrown.name === "TimeoutError") {
    const within = formatDuration(context.timeoutMs);
    return new QdrantFailure("timeout", `Qdrant at ${url} took longer than ${within} to ${what}`, LOG, {
      cause: thrown,
    });
  }
  if (thrown instanceof SyntaxError) return garbledAnswer("the answer is not JSON", context, thrown);
  const message = visibleLine(reasonOf(thrown));
  // `fetch` reports this for a connection that ends too early.
  const reason = message === "terminated" ? "the connection was lost in the middle of its answer" : message;
  if (/redirect/i.test(reason)) return garbledAnswer("it redirects", context, thrown);
  if (thrown instanceof Error && thrown.name.startsWith("QdrantClient"))
    return garbledAnswer(reason, context, thrown);
  return new QdrantFailure(
    "unreachable",
    `Qdrant at ${url} cannot be reached to ${what}: ${reason}`,
    `./start.sh   (or: ${USE_EMBEDDED})`,
    { cause: thrown },
  );
}

/**
 * Combines the failures of all nodes. A busy node makes the request worth repeating; each node's message is included.
 */
export function combinedFailure(failures: readonly QdrantFailure[]): QdrantFailure {
  const [first, ...more] = failures;
  if (first === undefined) throw new Error("a Qdrant server needs an address");
  if (more.length === 0) return first;
  const { trouble, retryAfterMs, remedy } = failures.find((each) => each.trouble === "not-ready") ?? first;
  const message = `none of the ${failures.length} Qdrant nodes could be used: ${failures.map((each) => each.message).join("; ")}`;
  return new QdrantFailure(trouble, message, remedy, { cause: first, retryAfterMs });
}

/**
 * The status in the client's error. For too many requests the client reports only that there is a time to wait, or an
 * unreadable one.
 */
function statusOf(thrown: unknown): number | null {
  if (typeof thrown !== "object" || thrown === null) return null;
  if ("status" in thrown && typeof thrown.status === "number") return thrown.status;
  const waits =
    "retry_after" in thrown || (thrown instanceof Error && thrown.message.startsWith("Invalid retryAfter"));
  return waits ? 429 : null;
}

/** The server's Retry-After. For a 429 the client keeps only its first character, which is useless. */
function waitIn(thrown: unknown): number | null {
  const headers =
    typeof thrown === "object" && thrown !== null && "headers" in thrown ? thrown.headers : null;
  return headers instanceof Headers
    ? parseRetryAfter(headers.get("retry-after"), Date.now(), headers.get("date"))
    : null;
}

/** Qdrant's own message, or the body that something else has sent. */
function messageIn(thrown: unknown): { readonly detail: string; readonly byQdrant: boolean } {
  const data: unknown = typeof thrown === "object" && thrown !== null && "data" in thrown ? thrown.data : "";
  if (typeof data === "string") return { detail: visibleLine(data.trim()), byQdrant: false };
  const status: unknown = typeof data === "object" && data !== null && "status" in data ? data.status : null;
  const error: unknown =
    typeof status === "object" && status !== null && "error" in status ? status.error : null;
  return typeof error === "string"
    ? { detail: visibleLine(error), byQdrant: true }
    : { detail: "", byQdrant: false };
}

/** An error response. */
interface Refusal {
  readonly status: number;
  readonly detail: string;
  /** Whether the error has Qdrant's form; otherwise a proxy may have sent it. */
  readonly byQdrant: boolean;
  readonly retryAfterMs: number | null;
}

const FULL =
  /no space left|disk (?:is )?full|not enough (?:disk )?space|available disk space|quota exceeded|out of (?:disk|memory)|^insufficient storage/i;
const NOT_READY =
  /being created|not ready|still (?:loading|initializ)|shutting down|recover(?:y|ing) in progress|temporarily unavailable/i;
const TOO_LARGE = /larger than (?:allowed|the limit)|exceeded limit|payload too large|too large/i;
/** A missing index of a field used in a filter or a count. */
const NO_INDEX = /no appropriate index|index required but not found/i;
/** Strict mode, and limits set by an administrator. */
const LIMITED =
  /\. help: |max \w.* limit (?:of .* )?reached|max collections limit|has a limit of \d+|limit reached/i;

interface Rule {
  readonly trouble: Trouble;
  readonly when: (refusal: Refusal) => boolean;
  /** Takes the address and what was wanted. */
  readonly message: (url: string, what: string) => string;
  readonly remedy: string;
}

const USE_EMBEDDED = "harness config set search.store embedded";
const LOG = "Check Qdrant's log, then try again.";

/** The first matching rule applies. */
const RULES: readonly Rule[] = [
  {
    trouble: "full",
    when: ({ status, detail }) => status === 507 || FULL.test(detail),
    message: (url, what) => `Qdrant at ${url} has no space left to ${what}`,
    remedy: "Free space where it stores its data, then: harness index",
  },
  {
    trouble: "too-large",
    when: ({ status, detail }) => status === 413 || (status < 500 && TOO_LARGE.test(detail)),
    message: (url, what) => `the request to ${what} is larger than Qdrant at ${url} accepts`,
    remedy: "Raise its service.max_request_size_mb and the limit of any proxy in front of it.",
  },
  {
    trouble: "no-index",
    when: ({ status, detail }) => status === 400 && NO_INDEX.test(detail),
    message: (url, what) => `Qdrant at ${url} lost a field index that it needs to ${what}`,
    remedy: "harness index",
  },
  {
    trouble: "limited",
    when: ({ status, detail }) => status === 400 && LIMITED.test(detail),
    message: (url, what) => `a limit set in Qdrant at ${url} does not allow it to ${what}`,
    remedy: `Raise it in the collection's strict_mode_config or in Qdrant's settings   (or: ${USE_EMBEDDED})`,
  },
  {
    trouble: "timeout",
    when: ({ status }) => status === 408 || status === 504,
    message: (url, what) => `Qdrant at ${url} did not ${what} within its time limit`,
    remedy: LOG,
  },
  {
    trouble: "not-ready",
    when: ({ status, detail }) => status === 429 || status === 503 || NOT_READY.test(detail),
    message: (url, what) => `Qdrant at ${url} cannot ${what} now`,
    remedy: "Wait a little, and try again.",
  },
  {
    trouble: "server",
    when: ({ status }) => status >= 500,
    message: (url, what) => `Qdrant at ${url} failed to ${what}`,
    remedy: LOG,
  },
];
const REFUSED: Omit<Rule, "when"> = {
  trouble: "refused",
  message: (url, what) => `Qdrant at ${url} refuses to ${what}`,
  remedy: `./start.sh renews it   (or: ${USE_EMBEDDED})`,
};

function refusalOf(refusal: Refusal, context: QdrantRequest): QdrantFailure {
  const { status, detail } = refusal;
  if (status === 401 || status === 403) return forbidden(refusal, context);
  const rule = RULES.find(({ when }) => when(refusal));
  if (rule === undefined && (status === 404 || status === 409)) return byName(refusal, context);
  const { trouble, message, remedy } = rule ?? REFUSED;
  const text = detail === "" ? `HTTP ${status}` : `HTTP ${status}, ${detail}`;
  return new QdrantFailure(trouble, `${message(context.url, context.what)} (${text})`, remedy, {
    retryAfterMs: refusal.retryAfterMs,
  });
}

function byName({ status, detail }: Refusal, context: QdrantRequest): QdrantFailure {
  const again = "harness index";
  if (status === 409 || /already exists/i.test(detail)) return new QdrantFailure("exists", detail, again);
  if (/collection .*(?:doesn't exist|not found)|not found: collection/i.test(detail))
    return new QdrantFailure("no-collection", `Qdrant at ${context.url} lost a collection: ${detail}`, again);
  if (/no point with id/i.test(detail))
    return new QdrantFailure("no-point", `Qdrant at ${context.url} lost a chunk: ${detail}`, again);
  return garbledAnswer(`it answers HTTP ${status}`, context);
}

/** A wrong key is refused in plain text; a key without enough rights, in Qdrant's own format. */
function forbidden(
  { status, detail, byQdrant }: Refusal,
  { url, hasKey, what }: QdrantRequest,
): QdrantFailure {
  if (byQdrant && /^storage locked/i.test(detail))
    return new QdrantFailure(
      "locked",
      `Qdrant at ${url} is locked and cannot ${what} (HTTP ${status}, ${detail})`,
      `Unlock it, then try again   (or: ${USE_EMBEDDED})`,
    );
  if (byQdrant && status === 403 && hasKey)
    return new QdrantFailure(
      "rights",
      `the key in QDRANT_API_KEY does not allow Qdrant at ${url} to ${what} (HTTP ${status}, ${detail})`,
      `export QDRANT_API_KEY=KEY   (one that may read and write; or: ${USE_EMBEDDED})`,
    );
  const why = hasKey ? "rejects the key" : "requires a key, and QDRANT_API_KEY is not set";
  return new QdrantFailure(
    "key",
    `Qdrant at ${url} ${why}: it did not ${what} (HTTP ${status})`,
    "export QDRANT_API_KEY=KEY",
  );
}

export type Trouble =
  | "unreachable"
  | "timeout"
  | "key"
  | "rights"
  | "locked"
  | "no-collection"
  | "no-point"
  | "no-index"
  | "exists"
  | "too-large"
  | "limited"
  | "full"
  | "not-ready"
  | "server"
  | "refused"
  | "garbled";

/** A failed request to Qdrant, or to whatever answers at its address. */
export class QdrantFailure extends HarnessError {
  readonly trouble: Trouble;
  /** The wait that the server asked for, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(
    trouble: Trouble,
    message: string,
    remedy: string,
    { cause, retryAfterMs = null }: { readonly cause?: unknown; readonly retryAfterMs?: number | null } = {},
  ) {
    super(EXIT.failed, message, remedy, cause);
    this.trouble = trouble;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface QdrantRequest {
  readonly url: string;
  readonly hasKey: boolean;
  /** What was wanted, as a phrase that follows "to": `store 12 chunks`. */
  readonly what: string;
  readonly timeoutMs: number;
}

export const garbledAnswer = (why: string, { url, what }: QdrantRequest, cause?: unknown): QdrantFailure =>
  new QdrantFailure(
    "garbled",
    `what answers at ${url} is not a Qdrant server that harness understands: asked to ${what}, ${why}`,
    `Check what listens at ${url}   (or: ${USE_EMBEDDED})`,
    { cause },
  );

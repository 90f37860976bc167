import { formatDuration } from "../../core/bounds.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";

export type Trouble =
  | "unreachable"
  | "timeout"
  | "key"
  | "no-collection"
  | "no-point"
  | "exists"
  | "too-large"
  | "full"
  | "not-ready"
  | "server"
  | "refused"
  | "garbled";

/** What Qdrant, or what stands in its place, did instead of what it was asked. */
export class QdrantFailure extends HarnessError {
  readonly trouble: Trouble;

  constructor(trouble: Trouble, message: string, remedy: string, cause?: unknown) {
    super(EXIT.failed, message, remedy, cause);
    this.trouble = trouble;
  }
}

export interface Asked {
  readonly url: string;
  readonly hasKey: boolean;
  /** What was wanted, to be read after "to": `store 12 chunks`. */
  readonly what: string;
  readonly timeoutMs: number;
}

const WITHOUT = "harness config set search.store embedded";
const LOG = "Look into Qdrant's log, and try again.";

/** Of whatever the client has thrown. The key is in no text of ours, and of a server's refusal of a key nothing is said. */
export function failureOf(thrown: unknown, asked: Asked): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const status = statusOf(thrown);
  if (status !== null) return byStatus(status, saidIn(thrown), asked);
  const { url, what } = asked;
  if (thrown instanceof Error && thrown.name === "TimeoutError") {
    const within = formatDuration(asked.timeoutMs);
    return new QdrantFailure(
      "timeout",
      `Qdrant at ${url} took longer than ${within} to ${what}`,
      LOG,
      thrown,
    );
  }
  if (thrown instanceof SyntaxError) return garbled("its answer is no JSON", asked, thrown);
  const said = visibleLine(reasonOf(thrown));
  // What fetch says of a connection that ends too early.
  const reason = said === "terminated" ? "the connection was lost in the middle of its answer" : said;
  if (/redirect/i.test(reason)) return garbled("it sends elsewhere", asked, thrown);
  if (thrown instanceof Error && thrown.name.startsWith("QdrantClient"))
    return garbled(reason, asked, thrown);
  return new QdrantFailure(
    "unreachable",
    `Qdrant at ${url} is not reached, asked to ${what}: ${reason}`,
    `./start.sh   (or: ${WITHOUT})`,
    thrown,
  );
}

export const garbled = (why: string, { url, what }: Asked, cause?: unknown): QdrantFailure =>
  new QdrantFailure(
    "garbled",
    `what answers at ${url} is no Qdrant that harness understands: asked to ${what}, ${why}`,
    `Look what listens at ${url}   (or: ${WITHOUT})`,
    cause,
  );

/** The client's errors carry the status; of too many requests only that there was a time to wait. */
function statusOf(thrown: unknown): number | null {
  if (typeof thrown !== "object" || thrown === null) return null;
  if ("status" in thrown && typeof thrown.status === "number") return thrown.status;
  return "retry_after" in thrown ? 429 : null;
}

/** Qdrant's own words, or of something else the first of its body. */
function saidIn(thrown: unknown): string {
  const data: unknown = typeof thrown === "object" && thrown !== null && "data" in thrown ? thrown.data : "";
  if (typeof data === "string") return visibleLine(data.trim());
  const status: unknown = typeof data === "object" && data !== null && "status" in data ? data.status : null;
  const error: unknown =
    typeof status === "object" && status !== null && "error" in status ? status.error : null;
  return typeof error === "string" ? visibleLine(error) : "";
}

const FULL =
  /no space left|disk (?:is )?full|not enough (?:disk )?space|quota exceeded|out of (?:disk|memory)/i;
const NOT_READY =
  /being created|not ready|still (?:loading|initializ)|shutting down|recover(?:y|ing) in progress/i;
const TOO_LARGE = /larger than (?:allowed|the limit)|payload too large|too large/i;

interface Rule {
  readonly trouble: Trouble;
  readonly when: (status: number, said: string) => boolean;
  /** Of the address, and of what was wanted. */
  readonly message: (url: string, what: string) => string;
  readonly remedy: string;
}

/** The first that fits. */
const RULES: readonly Rule[] = [
  {
    trouble: "full",
    when: (status, said) => status === 507 || FULL.test(said),
    message: (url, what) => `Qdrant at ${url} has no room left to ${what}`,
    remedy: "Make room where it stores, then: harness index",
  },
  {
    trouble: "too-large",
    when: (status, said) => status === 413 || (status < 500 && TOO_LARGE.test(said)),
    message: (url, what) => `Qdrant at ${url} takes no request as large as was needed to ${what}`,
    remedy: "Raise its service.max_request_size_mb.",
  },
  {
    trouble: "not-ready",
    when: (status, said) => status === 429 || status === 503 || NOT_READY.test(said),
    message: (url, what) => `Qdrant at ${url} cannot ${what} now`,
    remedy: "Wait a little, and try again.",
  },
  {
    trouble: "server",
    when: (status) => status >= 500,
    message: (url, what) => `Qdrant at ${url} failed to ${what}`,
    remedy: LOG,
  },
];
const REFUSED: Omit<Rule, "when"> = {
  trouble: "refused",
  message: (url, what) => `Qdrant at ${url} refuses to ${what}`,
  remedy: `./start.sh renews it   (or: ${WITHOUT})`,
};

function byStatus(status: number, said: string, asked: Asked): QdrantFailure {
  if (status === 401 || status === 403) return refusedKey(status, asked);
  const rule = RULES.find(({ when }) => when(status, said));
  if (rule === undefined && (status === 404 || status === 409)) return byName(status, said, asked);
  const { trouble, message, remedy } = rule ?? REFUSED;
  const text = said === "" ? `HTTP ${status}` : `HTTP ${status}, ${said}`;
  return new QdrantFailure(trouble, `${message(asked.url, asked.what)} (${text})`, remedy);
}

function byName(status: number, said: string, asked: Asked): QdrantFailure {
  const again = "harness index";
  if (status === 409 || /already exists/i.test(said)) return new QdrantFailure("exists", said, again);
  if (/collection .*(?:doesn't exist|not found)|not found: collection/i.test(said))
    return new QdrantFailure("no-collection", `Qdrant at ${asked.url} lost a collection: ${said}`, again);
  if (/no point with id/i.test(said))
    return new QdrantFailure("no-point", `Qdrant at ${asked.url} lost a chunk: ${said}`, again);
  return garbled(`it answers HTTP ${status}`, asked);
}

function refusedKey(status: number, { url, hasKey, what }: Asked): QdrantFailure {
  const why = hasKey ? "refuses the key" : "wants a key, and QDRANT_API_KEY is not set";
  return new QdrantFailure(
    "key",
    `Qdrant at ${url} ${why}, asked to ${what} (HTTP ${status})`,
    "export QDRANT_API_KEY=KEY",
  );
}

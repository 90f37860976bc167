import { type Asked, garbled, LOG, QdrantFailure, type Trouble, WITHOUT } from "./failure.ts";

/** What came instead of a result. */
interface Refusal {
  readonly status: number;
  readonly said: string;
  /** In the form in which Qdrant says why; else it is a proxy's word, or nobody's. */
  readonly byQdrant: boolean;
}

const FULL =
  /no space left|disk (?:is )?full|not enough (?:disk )?space|available disk space|quota exceeded|out of (?:disk|memory)|^insufficient storage/i;
const NOT_READY =
  /being created|not ready|still (?:loading|initializ)|shutting down|recover(?:y|ing) in progress|temporarily unavailable/i;
const TOO_LARGE = /larger than (?:allowed|the limit)|exceeded limit|payload too large|too large/i;
/** Of a field by which is filtered or counted. */
const NO_INDEX = /no appropriate index|index required but not found/i;
/** Strict mode, and what an administrator has bounded. */
const LIMITED =
  /\. help: |max \w.* limit (?:of .* )?reached|max collections limit|has a limit of \d+|limit reached/i;

interface Rule {
  readonly trouble: Trouble;
  readonly when: (refusal: Refusal) => boolean;
  /** Of the address, and of what was wanted. */
  readonly message: (url: string, what: string) => string;
  readonly remedy: string;
}

/** The first that fits. */
const RULES: readonly Rule[] = [
  {
    trouble: "full",
    when: ({ status, said }) => status === 507 || FULL.test(said),
    message: (url, what) => `Qdrant at ${url} has no room left to ${what}`,
    remedy: "Make room where it stores, then: harness index",
  },
  {
    trouble: "too-large",
    when: ({ status, said }) => status === 413 || (status < 500 && TOO_LARGE.test(said)),
    message: (url, what) => `Qdrant at ${url} takes no request as large as was needed to ${what}`,
    remedy: "Raise its service.max_request_size_mb, and what a proxy before it takes.",
  },
  {
    trouble: "no-index",
    when: ({ status, said }) => status === 400 && NO_INDEX.test(said),
    message: (url, what) => `Qdrant at ${url} lost what it needs to ${what}`,
    remedy: "harness index",
  },
  {
    trouble: "limited",
    when: ({ status, said }) => status === 400 && LIMITED.test(said),
    message: (url, what) => `a limit that is set in Qdrant at ${url} is against what was needed to ${what}`,
    remedy: `Raise it in the collection's strict_mode_config or in Qdrant's settings   (or: ${WITHOUT})`,
  },
  {
    trouble: "timeout",
    when: ({ status }) => status === 408 || status === 504,
    message: (url, what) => `Qdrant at ${url} did not ${what} in the time that it is given there`,
    remedy: LOG,
  },
  {
    trouble: "not-ready",
    when: ({ status, said }) => status === 429 || status === 503 || NOT_READY.test(said),
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
  remedy: `./start.sh renews it   (or: ${WITHOUT})`,
};

export function refusalOf(refusal: Refusal, asked: Asked): QdrantFailure {
  const { status, said } = refusal;
  if (status === 401 || status === 403) return forbidden(refusal, asked);
  const rule = RULES.find(({ when }) => when(refusal));
  if (rule === undefined && (status === 404 || status === 409)) return byName(refusal, asked);
  const { trouble, message, remedy } = rule ?? REFUSED;
  const text = said === "" ? `HTTP ${status}` : `HTTP ${status}, ${said}`;
  return new QdrantFailure(trouble, `${message(asked.url, asked.what)} (${text})`, remedy);
}

function byName({ status, said }: Refusal, asked: Asked): QdrantFailure {
  const again = "harness index";
  if (status === 409 || /already exists/i.test(said)) return new QdrantFailure("exists", said, again);
  if (/collection .*(?:doesn't exist|not found)|not found: collection/i.test(said))
    return new QdrantFailure("no-collection", `Qdrant at ${asked.url} lost a collection: ${said}`, again);
  if (/no point with id/i.test(said))
    return new QdrantFailure("no-point", `Qdrant at ${asked.url} lost a chunk: ${said}`, again);
  return garbled(`it answers HTTP ${status}`, asked);
}

/** A key that is wrong is refused in plain text, what a key does not allow in Qdrant's own form. */
function forbidden({ status, said, byQdrant }: Refusal, { url, hasKey, what }: Asked): QdrantFailure {
  if (byQdrant && /^storage locked/i.test(said))
    return new QdrantFailure(
      "locked",
      `Qdrant at ${url} takes no writes, asked to ${what} (HTTP ${status}, ${said})`,
      `Unlock it, and try again   (or: ${WITHOUT})`,
    );
  if (byQdrant && status === 403 && hasKey)
    return new QdrantFailure(
      "rights",
      `the key in QDRANT_API_KEY does not allow Qdrant at ${url} to ${what} (HTTP ${status}, ${said})`,
      `export QDRANT_API_KEY=KEY   (one that may read and write; or: ${WITHOUT})`,
    );
  const why = hasKey ? "refuses the key" : "wants a key, and QDRANT_API_KEY is not set";
  return new QdrantFailure(
    "key",
    `Qdrant at ${url} ${why}, asked to ${what} (HTTP ${status})`,
    "export QDRANT_API_KEY=KEY",
  );
}

import { formatDuration } from "../../core/bounds.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Asked, garbled, LOG, QdrantFailure, WITHOUT } from "./failure.ts";
import { refusalOf } from "./refusals.ts";

/** Of whatever the client has thrown. The key is in no text of ours, and of a server's refusal of a key nothing is said. */
export function failureOf(thrown: unknown, asked: Asked): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const status = statusOf(thrown);
  if (status !== null) return refusalOf({ status, ...saidIn(thrown) }, asked);
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

/** The client's errors carry the status; of too many requests only that there was a time to wait, or none it can read. */
function statusOf(thrown: unknown): number | null {
  if (typeof thrown !== "object" || thrown === null) return null;
  if ("status" in thrown && typeof thrown.status === "number") return thrown.status;
  const waits =
    "retry_after" in thrown || (thrown instanceof Error && thrown.message.startsWith("Invalid retryAfter"));
  return waits ? 429 : null;
}

/** Qdrant's own words, or of something else the first of its body. */
function saidIn(thrown: unknown): { readonly said: string; readonly byQdrant: boolean } {
  const data: unknown = typeof thrown === "object" && thrown !== null && "data" in thrown ? thrown.data : "";
  if (typeof data === "string") return { said: visibleLine(data.trim()), byQdrant: false };
  const status: unknown = typeof data === "object" && data !== null && "status" in data ? data.status : null;
  const error: unknown =
    typeof status === "object" && status !== null && "error" in status ? status.error : null;
  return typeof error === "string"
    ? { said: visibleLine(error), byQdrant: true }
    : { said: "", byQdrant: false };
}

import { EXIT, HarnessError } from "../../core/errors.ts";

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

export const WITHOUT = "harness config set search.store embedded";
export const LOG = "Look into Qdrant's log, and try again.";

export const garbled = (why: string, { url, what }: Asked, cause?: unknown): QdrantFailure =>
  new QdrantFailure(
    "garbled",
    `what answers at ${url} is no Qdrant that harness understands: asked to ${what}, ${why}`,
    `Look what listens at ${url}   (or: ${WITHOUT})`,
    cause,
  );

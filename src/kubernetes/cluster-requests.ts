import { HarnessError, reasonOf } from "../core/errors.ts";
import { ClusterTrouble, type TroubleKind } from "./batch-cluster.ts";
import { ApiFailure, type Cluster, type Method } from "./cluster.ts";

/** What a batch asks of the API server. Every failure has a kind, and how long one is waited for is the batch's to say. */
export interface ClusterRequest {
  readonly method: Method;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Answers beside those of the 200s that are no trouble. */
  readonly expected?: readonly number[];
}

export interface ClusterAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** An answer is waited for so long. */
const ANSWER_MS = 30_000;

export class ClusterRequests {
  readonly #cluster: Cluster;

  /** One that waits for nothing itself. */
  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async ask(request: ClusterRequest, signal: AbortSignal): Promise<ClusterAnswer> {
    const { method, body, expected = [] } = request;
    const late = AbortSignal.timeout(ANSWER_MS);
    try {
      const bounded = AbortSignal.any([signal, late]);
      return {
        status: 200,
        body: await this.#cluster.call(whereOf(request), { method, body, signal: bounded }),
      };
    } catch (thrown) {
      if (thrown instanceof ApiFailure && expected.includes(thrown.status))
        return { status: thrown.status, body: undefined };
      throw troubleOf(thrown, signal, late);
    }
  }

  /**
   * The events of a watch, to its end: a server ends each after some minutes. A silent connection is held for lost after
   * `silentMs`, as what comes no more is not told.
   */
  async watch(
    { path, query }: Pick<ClusterRequest, "path" | "query">,
    onEvent: (event: unknown) => void,
    { silentMs, signal }: { readonly silentMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const silent = new AbortController();
    const timer = setTimeout(() => silent.abort(), silentMs);
    try {
      const where = whereOf({ path, query: { ...query, watch: "true", allowWatchBookmarks: "true" } });
      for await (const event of this.#cluster.watch(where, AbortSignal.any([signal, silent.signal]))) {
        timer.refresh();
        onEvent(event);
      }
    } catch (thrown) {
      if (silent.signal.aborted && !signal.aborted) return;
      throw troubleOf(thrown, signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

const whereOf = ({ path, query = {} }: Pick<ClusterRequest, "path" | "query">): string =>
  Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query).toString()}`;

/** Of what was thrown on the way; who asked and left is told their own reason. */
function troubleOf(thrown: unknown, signal: AbortSignal, late?: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (thrown instanceof ApiFailure) return refusal(thrown);
  const why = late?.aborted === true ? `no answer in ${ANSWER_MS / 1000} s` : reasonOf(thrown);
  // A kubeconfig that is wrong has its own words.
  if (thrown instanceof HarnessError && thrown.cause === undefined) return thrown;
  return new ClusterTrouble("away", why, { cause: thrown });
}

const KIND_OF_STATUS: ReadonlyMap<number, TroubleKind> = new Map<number, TroubleKind>([
  [400, "invalid"],
  [401, "unauthorised"],
  [403, "forbidden"],
  [404, "no_namespace"],
  [409, "invalid"],
  [410, "expired"],
  [413, "invalid"],
  [422, "invalid"],
]);

/** What cannot be told apart is asked again: a proxy on the way, a server that is ended, one that has too much to do. */
function refusal(failure: ApiFailure): ClusterTrouble {
  const { status, message, retryAfterMs } = failure;
  const kind = KIND_OF_STATUS.get(status) ?? "away";
  return new ClusterTrouble(
    kind === "forbidden" && /exceeded quota/.test(message) ? "quota" : kind,
    message,
    {
      cause: failure,
      retryAfterMs,
    },
  );
}

export const field = (value: unknown, ...keys: readonly string[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Readonly<Record<string, unknown>>)[key]
        : undefined,
    value,
  );

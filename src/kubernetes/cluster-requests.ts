import { HarnessError, reasonOf } from "../core/errors.ts";
import { ClusterTrouble, type TroubleKind } from "./batch-cluster.ts";
import { ApiFailure, type Cluster, type Method } from "./cluster.ts";

/** A request of a batch to the API server. Every failure has a kind; the batch decides how long to wait for each. */
export interface ClusterRequest {
  readonly method: Method;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Status codes outside the 200s that are no trouble. */
  readonly expected?: readonly number[];
}

export interface ClusterAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Time limit for an answer. */
const ANSWER_MS = 30_000;

export class ClusterRequests {
  readonly #cluster: Cluster;

  /** `cluster` must not wait or retry by itself. */
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
   * Passes on the events of a watch until it ends: a server ends each watch after some minutes. A connection that is
   * silent for `silentMs` counts as lost, since a lost connection is not reported.
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

/** Converts an error; if the caller has aborted, returns the caller's own reason. */
function troubleOf(thrown: unknown, signal: AbortSignal, late?: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (thrown instanceof ApiFailure) return refusal(thrown);
  const why = late?.aborted === true ? `no answer in ${ANSWER_MS / 1000} s` : reasonOf(thrown);
  // An error about a bad kubeconfig has its own message.
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

/** Unclear refusals count as "away" and are retried: a proxy on the way, a server that is ending, a busy server. */
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

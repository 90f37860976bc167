import { setTimeout as wakeAfter } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import { ClusterTrouble } from "../../kubernetes/batch-cluster.ts";
import { batchName } from "../../kubernetes/batch-job.ts";

/** Trouble of a batch with its cluster: which passes and is waited for, and what the other kinds mean. */

export interface Clock {
  readonly now: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
}

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: async (ms, signal) => {
    await wakeAfter(ms, undefined, { signal });
  },
  random: Math.random,
};

const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 30_000;
/** Upper bound of the wait that a server asks for. */
const MAX_SERVER_WAIT_MS = 120_000;
/** How long to wait for an API server that is away, and for a batch in which no pod begins. */
export const PATIENCE_MS = 10 * 60_000;

/** What is asked for: by whose clock, for which batch. */
export interface Asking {
  readonly clock: Clock;
  readonly warn: (text: string) => void;
  readonly hash: string;
  /** What was reported of the troubles that are met now: several requests meet the same one. */
  readonly troubles: Map<symbol, string>;
}

/**
 * Asks again while the cluster is away; any other trouble is reported. A server that has just started refuses for a
 * moment what it allows: with `wasAllowed`, such a refusal passes as well.
 */
export async function retryWhileAway<T>(
  { clock, warn, hash, troubles }: Asking,
  ask: () => Promise<T>,
  signal: AbortSignal,
  wasAllowed = false,
): Promise<T> {
  const since = clock.now();
  const own = Symbol("request");
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(MAX_WAIT_MS, wait * 2)) {
    try {
      const answer = await ask();
      if (troubles.has(own)) {
        // A watch would report it only at its end.
        troubles.clear();
        warn("the cluster answers again");
      }
      return answer;
    } catch (thrown) {
      if (!(thrown instanceof ClusterTrouble)) throw thrown;
      const what = passingTrouble(thrown, wasAllowed);
      if (what === undefined || clock.now() - since > PATIENCE_MS) throw clusterError(thrown, hash);
      if (![...troubles.values()].includes(what))
        warn(
          `${what} (${visibleLine(thrown.message)}); what runs there continues, and the harness keeps asking`,
        );
      if (!troubles.has(own)) troubles.set(own, what);
      // Up to half of each wait is random, so that many watchers do not come back at the same time.
      const pause = wait * (0.5 + clock.random() / 2);
      await clock.sleep(Math.max(pause, Math.min(thrown.retryAfterMs ?? 0, MAX_SERVER_WAIT_MS)), signal);
    }
  }
}

function passingTrouble({ kind }: ClusterTrouble, wasAllowed: boolean): string | undefined {
  if (kind === "away") return "the cluster does not answer";
  const isRefusal = kind === "forbidden" || kind === "unauthorised";
  return isRefusal && wasAllowed ? "the cluster refuses what it allowed before" : undefined;
}

export const describeJob = (hash: string): string => `kubectl describe job ${batchName(hash)}`;

/** Each kind of trouble has its own wording and next step. */
function clusterError(trouble: ClusterTrouble, hash: string): HarnessError {
  const message = visibleLine(trouble.message);
  switch (trouble.kind) {
    case "away":
    case "expired":
      return new HarnessError(
        EXIT.sandbox,
        `the cluster does not answer: ${message}`,
        "kubectl version; what runs there continues, and --resume watches it again",
        trouble,
      );
    case "quota":
      return new HarnessError(
        EXIT.sandbox,
        `a quota of the namespace is used up: ${message}`,
        "kubectl describe quota; once there is room, continue with --resume",
        trouble,
      );
    case "forbidden":
      return new HarnessError(
        EXIT.usage,
        `the cluster forbids it: ${message}`,
        "kubectl auth can-i --list",
        trouble,
      );
    case "unauthorised":
      return new HarnessError(
        EXIT.usage,
        `the cluster does not accept your credentials: ${message}`,
        "kubectl auth whoami",
        trouble,
      );
    case "no_namespace":
      return new HarnessError(EXIT.usage, `not found: ${message}`, "kubectl get namespaces", trouble);
    case "invalid":
      return new HarnessError(
        EXIT.sandbox,
        `the cluster rejected it: ${message}`,
        describeJob(hash),
        trouble,
      );
  }
}

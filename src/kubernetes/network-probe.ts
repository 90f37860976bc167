import { startCommand } from "../boxes/box-command.ts";
import type { RunnerClient } from "../boxes/runner/runner-client.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { API_VARIABLE } from "./pod-spec.ts";

/**
 * What a box has seen of its network since its probe began, as sandbox/probe/probe.c reports it; times are milliseconds
 * on its clock.
 */
export interface Sight {
  readonly at: number;
  /** Answers so far: a refused connection counts as an answer. */
  readonly answered: number;
  /** The time of the slowest answer. */
  readonly slowest: number;
  /** How long the first connection that began after the last answer has waited. */
  readonly quiet: number;
  /** How many connections to each target have waited a while since then. */
  readonly waited: number;
}

export interface NetworkProbe {
  /** The next report. */
  readonly look: () => Promise<Sight>;
  readonly end: () => Promise<void>;
}

const PROGRAM = "/usr/local/lib/harness/probe";
const STEP_MS = 20;
const DAY_MS = 24 * 3_600_000;
const KUBELET = 10_250;

/** Host and port of the API server's service as the pod knows them, and of its node's kubelet. */
export const targetsOn = (node: string): readonly string[] => [`$${API_VARIABLE}`, `${node} ${KUBELET}`];

/** Probes all targets at once until it is ended; each target is a host and a port. */
export function startProbe(client: RunnerClient, targets: readonly string[]): NetworkProbe {
  const state = { next: expected(), rest: "" };
  const take = (line: string): void => {
    const sight = sightIn(line);
    const { resolve, reject } = state.next;
    if (sight === undefined) return reject(failed(`it printed ${JSON.stringify(line.slice(0, 80))}`));
    state.next = expected();
    resolve(sight);
  };
  const started = startCommand(
    client,
    {
      words: [PROGRAM, String(STEP_MS), ...targets],
      folder: "/",
      timeoutMs: DAY_MS,
      keep: { head: Number.MAX_SAFE_INTEGER, tail: 0 },
      onOutput: (stream, bytes) => {
        if (stream === "stderr") return;
        const lines = (state.rest + Buffer.from(bytes).toString("latin1")).split("\n");
        state.rest = lines.pop() ?? "";
        for (const line of lines) take(line);
      },
    },
    { workspace: "/" },
  );
  const over = (async () => {
    try {
      const { exit_code } = await started.ended;
      const stderr = started.errors().trim();
      state.next.reject(failed(`${exit_code}${stderr === "" ? "" : `: ${stderr}`}`));
    } catch (thrown) {
      state.next.reject(thrown);
    }
  })();
  return {
    look: () => state.next.promise,
    end: () => {
      started.end("cancelled");
      return over;
    },
  };
}

function expected(): PromiseWithResolvers<Sight> {
  const next = Promise.withResolvers<Sight>();
  // Perhaps nobody awaits it.
  next.promise.catch(() => undefined);
  return next;
}

function sightIn(line: string): Sight | undefined {
  const numbers = /^(\d+) (\d+) (\d+) (\d+) (\d+)$/.exec(line)?.slice(1).map(Number);
  if (numbers === undefined) return undefined;
  const [at = 0, answered = 0, slowest = 0, quiet = 0, waited = 0] = numbers;
  return { at, answered, slowest, quiet, waited };
}

const failed = (why: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `no pod as a box: its network is not shut: the probe failed (${why})`,
    "the image must be of this version: harness sandbox build, and for environments harness env build --rebuild",
  );

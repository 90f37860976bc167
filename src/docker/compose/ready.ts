import { setTimeout as pause } from "node:timers/promises";
import type { Container, ContainerInspectInfo } from "dockerode";
import type { Sidecar } from "./sidecar.ts";

export interface ReadyBounds {
  /** How long a container may take to become healthy. */
  readonly healthMs: number;
  readonly signal: AbortSignal;
}

type Ending = Pick<Sidecar, "state" | "detail">;

const POLL_MS = 250;
const OUTPUT_LINES = 5;
const OUTPUT_CHARS = 300;

/** Waits until the container answers its health check, dies, or the bound is reached. */
export async function waitUntilReady(container: Container, bounds: ReadyBounds): Promise<Ending> {
  const end = performance.now() + bounds.healthMs;
  const abortSignal = bounds.signal;
  const first = await container.inspect({ abortSignal });
  for (let looks = 1, seen = first; ; looks += 1, seen = await container.inspect({ abortSignal })) {
    const { State: state, RestartCount: restarts } = seen;
    const looping = state.Restarting || restarts > first.RestartCount;
    if (looping || !state.Running) return await deathOf(container, { state, looping }, abortSignal);
    const ending = endingOf(state, looks);
    if (ending !== undefined) return ending;
    if (performance.now() >= end) {
      const detail = `not healthy within ${bounds.healthMs / 1000} s${lastProbe(state)}`;
      return { state: "unhealthy", detail };
    }
    await pause(POLL_MS, undefined, { signal: abortSignal });
  }
}

/** Without a health check, one that still runs at the third look counts as running. */
function endingOf({ Health: health }: ContainerInspectInfo["State"], looks: number): Ending | undefined {
  if (health === undefined || health.Status === "none")
    return looks < 3 ? undefined : { state: "running", detail: "running" };
  if (health.Status === "healthy") return { state: "running", detail: "healthy" };
  // While paused the engine says unhealthy though no probe failed; after that only a new probe counts.
  const failed = (health.Log?.at(-1)?.ExitCode ?? 0) !== 0;
  if (health.Status !== "unhealthy" || !failed) return undefined;
  return { state: "unhealthy", detail: `unhealthy${lastProbe({ Health: health })}` };
}

function lastProbe({ Health: health }: Pick<ContainerInspectInfo["State"], "Health">): string {
  const last = health?.Log?.at(-1);
  if (last === undefined) return "";
  return `; the last probe ended with ${last.ExitCode}${quoted(last.Output)}`;
}

async function deathOf(
  container: Container,
  { state, looping }: { readonly state: ContainerInspectInfo["State"]; readonly looping: boolean },
  abortSignal: AbortSignal,
): Promise<Ending> {
  const cause = state.OOMKilled
    ? "ran out of memory"
    : looping
      ? "ends again and again"
      : `ended with ${state.ExitCode}`;
  const logs = await container.logs({ stdout: true, stderr: true, tail: OUTPUT_LINES, abortSignal });
  return { state: "failed", detail: `it ${cause}${quoted(state.Error || textOf(logs))}` };
}

/** The text inside the engine's frames: a header of 8 bytes, the last four of them the length. */
function textOf(frames: Buffer): string {
  const parts: string[] = [];
  for (let at = 0; at + 8 <= frames.length;) {
    const next = at + 8 + frames.readUInt32BE(at + 4);
    parts.push(frames.toString("utf8", at + 8, next));
    at = next;
  }
  return parts.join("");
}

function quoted(output: string): string {
  const line = output.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  if (line === "") return "";
  return `: ${line.length > OUTPUT_CHARS ? `${line.slice(0, OUTPUT_CHARS)}…` : line}`;
}

import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type Docker from "dockerode";
import type { Container, ContainerInspectInfo } from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { type Compose, composeUp } from "./compose-cli.ts";
import type { ComposeFile } from "./compose-file.ts";
import {
  lostItsNetwork,
  placeContainer,
  planSidecars,
  removeContainer,
  type SidecarPlan,
  startContainer,
  startFailure,
} from "./compose-plan.ts";
import { engineSays, ensureNetwork, isContention, unlessMissing } from "./shared-compose.ts";
import { isOurs, LABEL, type Sidecar } from "./sidecar.ts";

interface UpRequest {
  /** Default: every service under no profile. A name that the file does not hold is an error of usage. */
  readonly services?: readonly string[];
  /** `docker compose`, where `findCompose` found it; else the Engine API does it all. */
  readonly compose?: Compose | undefined;
  readonly signal?: AbortSignal;
  readonly silenceMs?: number;
  readonly healthMs?: number;
}

interface Run {
  readonly api: Docker;
  readonly file: string;
  readonly compose: Compose | undefined;
  readonly signal: AbortSignal;
  readonly silenceMs: number;
  readonly healthMs: number;
  /** One network for all services, made when the first of them needs it. */
  readonly network: (plan: SidecarPlan) => Promise<void>;
}

const SILENCE_MS = 20_000;
const HEALTH_MS = 60_000;
const TRIES = 5;
const RETRY_MS = 200;

/** Brings services up, side by side. What runs as planned is kept; whatever goes wrong is a value. */
export async function upSidecars(
  api: Docker,
  file: ComposeFile,
  request: UpRequest = {},
): Promise<readonly Sidecar[]> {
  const plans = planSidecars(file, request.services);
  const signal = request.signal ?? new AbortController().signal;
  let made: Promise<void> | undefined;
  const run: Run = {
    api,
    file: file.path,
    compose: request.compose,
    signal,
    silenceMs: request.silenceMs ?? SILENCE_MS,
    healthMs: request.healthMs ?? HEALTH_MS,
    network: (plan) => (made ??= ensureNetwork(api, plan.network, signal)),
  };
  return await Promise.all(plans.map((plan) => upOne(run, plan)));
}

async function upOne(run: Run, plan: SidecarPlan): Promise<Sidecar> {
  const { service } = plan;
  try {
    run.signal.throwIfAborted();
    const placed = await placeOrJoin(run, plan);
    if ("state" in placed) return placed;
    const { state, detail } = await waitUntilReady(placed, run);
    const where = plan.addresses.length === 0 ? "" : ` on ${plan.addresses.join(", ")}`;
    return { service, state, detail: state === "running" ? `${plan.image}${where}` : detail };
  } catch (thrown) {
    const detail = run.signal.aborted ? "cancelled" : engineSays(reasonOf(thrown));
    return { service, state: "failed", detail };
  }
}

/** Two harnesses at a time: the one that comes second looks anew and joins the first one's container. */
async function placeOrJoin(run: Run, plan: SidecarPlan): Promise<Container | Sidecar> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await place(run, plan);
    } catch (thrown) {
      if (tries === TRIES || !isContention(thrown)) throw thrown;
      await pause(RETRY_MS * tries, undefined, { signal: run.signal });
    }
  }
}

/** The container of a plan, started by whichever way there is; or why there is none. */
async function place(run: Run, plan: SidecarPlan): Promise<Container | Sidecar> {
  const { api, signal } = run;
  const { service, name, image } = plan;
  const found = await unlessMissing(api.getContainer(name).inspect({ abortSignal: signal }));
  if (found !== undefined && !isOurs(found.Config.Labels, plan.project, service)) {
    const detail = `the name ${name} is taken by a container that harness did not make; remove or rename that one`;
    return { service, state: "failed", detail };
  }
  if (run.compose === undefined && found !== undefined && isAsPlanned(found, plan)) {
    const kept = await resume(run, plan, found);
    if (kept !== undefined) return kept;
  }
  const lack = await lackOfImage(api, image, run);
  if (lack !== undefined) {
    const detail = `the image ${image} is not here and cannot be had: ${engineSays(lack)}`;
    return { service, state: "no-image", detail };
  }
  if (run.compose !== undefined) return await byCompose(run, plan, run.compose);
  await run.network(plan);
  if (found !== undefined) await removeContainer(api, found, signal);
  return await placeContainer(api, plan, signal);
}

/** A container that the engine is taking down or could not take down is made anew. */
const isAsPlanned = ({ Config, State }: ContainerInspectInfo, plan: SidecarPlan): boolean =>
  Config.Labels[LABEL.hash] === plan.hash && State.Status !== "dead" && State.Status !== "removing";

/** The same container, running; undefined when it has to be made anew. */
async function resume(
  run: Run,
  plan: SidecarPlan,
  { Id, State }: ContainerInspectInfo,
): Promise<Container | undefined> {
  const container = run.api.getContainer(Id);
  if (State.Paused) await container.unpause({ abortSignal: run.signal });
  if (State.Running) return container;
  try {
    await startContainer(container, plan, run.signal);
    return container;
  } catch (thrown) {
    if (lostItsNetwork(thrown)) return undefined;
    throw thrown;
  }
}

async function byCompose(run: Run, plan: SidecarPlan, compose: Compose): Promise<Container | Sidecar> {
  const { project, service, name } = plan;
  const failure = await composeUp(compose, { project, service, file: run.file }, run.signal);
  if (failure === undefined) return run.api.getContainer(name);
  run.signal.throwIfAborted();
  return { service, state: "failed", detail: startFailure(failure, plan) };
}

interface PullBounds {
  /** The pull is given up after this long without a step forward; a slow pull that moves may last. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/** Sees to it that the image is here, pulling it if need be: undefined, or why it cannot be had. */
export async function lackOfImage(
  api: Docker,
  image: string,
  bounds: PullBounds,
): Promise<string | undefined> {
  if (await isHere(api, image)) return undefined;
  const silence = new AbortController();
  const watch = setTimeout(() => silence.abort(), bounds.silenceMs);
  try {
    const abortSignal = AbortSignal.any([bounds.signal, silence.signal]);
    const answer = await api.pull(image, { abortSignal });
    const refusal = await followPull(answer, () => watch.refresh());
    if (refusal !== undefined) return refusal;
    return (await isHere(api, image)) ? undefined : "the pull ended without the image";
  } catch (thrown) {
    bounds.signal.throwIfAborted();
    if (silence.signal.aborted) return `the pull made no progress for ${bounds.silenceMs / 1000} s`;
    return reasonOf(thrown);
  } finally {
    clearTimeout(watch);
  }
}

async function isHere(api: Docker, image: string): Promise<boolean> {
  return (await unlessMissing(api.getImage(image).inspect())) !== undefined;
}

/** Reads the engine's progress lines to their end; an error in them is the answer. */
async function followPull(answer: NodeJS.ReadableStream, moved: () => void): Promise<string | undefined> {
  let refusal: string | undefined;
  for await (const line of createInterface({ input: answer })) {
    const { status, error } = progressOf(line);
    if (error !== undefined) refusal = error;
    // Waiting for another try is no step forward: an engine may retry for ever.
    else if (!/^(?:Retrying|Waiting)\b/.test(status)) moved();
  }
  return refusal;
}

function progressOf(line: string): { readonly status: string; readonly error: string | undefined } {
  try {
    const event = JSON.parse(line) as { status?: unknown; error?: unknown } | null;
    return {
      status: typeof event?.status === "string" ? event.status : "",
      error: typeof event?.error === "string" ? event.error : undefined,
    };
  } catch {
    return { status: "", error: undefined };
  }
}

interface ReadyBounds {
  /** How long a container may take to become healthy. */
  readonly healthMs: number;
  readonly signal: AbortSignal;
}

type Ending = Pick<Sidecar, "state" | "detail">;

const POLL_MS = 250;
const OUTPUT_LINES = 5;
const OUTPUT_CHARS = 300;

/** Waits until the container answers its health check, dies, or the bound is reached. */
async function waitUntilReady(container: Container, bounds: ReadyBounds): Promise<Ending> {
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

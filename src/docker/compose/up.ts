import { setTimeout as pause } from "node:timers/promises";
import type Docker from "dockerode";
import type { Container, ContainerInspectInfo } from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { engineSays, isContention, unlessMissing } from "./answer.ts";
import { type Compose, composeUp } from "./cli.ts";
import type { ComposeFile } from "./file.ts";
import { lackOfImage } from "./image.ts";
import { isOurs, LABEL } from "./labels.ts";
import { lostItsNetwork, placeContainer, removeContainer, startContainer, startFailure } from "./place.ts";
import { planSidecars, type SidecarPlan } from "./plan.ts";
import { waitUntilReady } from "./ready.ts";
import { ensureNetwork } from "./shared.ts";
import type { Sidecar } from "./sidecar.ts";

export interface UpRequest {
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

import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type Docker from "dockerode";
import type {
  Container,
  ContainerInspectInfo,
  NetworkCreateOptions,
  NetworkInspectInfo,
  VolumeCreateOptions,
} from "dockerode";
import { reasonOf } from "../core/errors.ts";
import { truncate } from "../core/wording.ts";
import { hasStatus, isBeingRemoved, isMissing } from "./engine.ts";
import { lackOfImage } from "./image-progress.ts";
import { type Sidecar, SIDECAR_LABEL as LABEL, type SidecarPlan } from "./sidecars.ts";

interface UpRequest {
  readonly signal?: AbortSignal;
  /** A pull without progress for this long is given up; a slow pull that moves may take longer. */
  readonly silenceMs?: number;
  /** How long a container may take to become healthy. */
  readonly healthMs?: number;
  /** Gets the progress of the image's download, if the image is not here. */
  readonly onLine?: (line: string) => void;
}

interface Run {
  readonly api: Docker;
  readonly plan: SidecarPlan;
  readonly signal: AbortSignal;
  readonly silenceMs: number;
  readonly onLine: (line: string) => void;
}

const SILENCE_MS = 20_000;
const HEALTH_MS = 60_000;
const MAX_TRIES = 5;
const RETRY_MS = 200;

/** Starts one sidecar. A sidecar that runs as planned is kept; any failure is a value. */
export async function upSidecar(api: Docker, plan: SidecarPlan, request: UpRequest = {}): Promise<Sidecar> {
  const { service, image, addresses } = plan;
  const { signal = new AbortController().signal, silenceMs = SILENCE_MS, healthMs = HEALTH_MS } = request;
  const { onLine = () => undefined } = request;
  try {
    signal.throwIfAborted();
    const placed = await placeOrJoin({ api, plan, signal, silenceMs, onLine });
    if ("state" in placed) return placed;
    const { state, detail } = await waitUntilReady(placed, { healthMs, signal });
    const where = addresses.length === 0 ? "" : ` on ${addresses.join(", ")}`;
    return { service, state, detail: state === "running" ? `${image}${where}` : detail };
  } catch (thrown) {
    const detail = signal.aborted ? "cancelled" : engineSays(reasonOf(thrown));
    return { service, state: "failed", detail };
  }
}

/** If two harnesses do this at the same time, the second one looks again and joins the first one's container. */
async function placeOrJoin(run: Run): Promise<Container | Sidecar> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await place(run);
    } catch (thrown) {
      if (tries === MAX_TRIES || !isContention(thrown)) throw thrown;
      await pause(RETRY_MS * tries, undefined, { signal: run.signal });
    }
  }
}

const hasConflict = (thrown: unknown): boolean => hasStatus(thrown) && thrown.statusCode === 409;

/** True for failures that another harness at work on the same project can cause; trying again settles them. */
const isContention = (thrown: unknown): boolean =>
  hasConflict(thrown) ||
  /is ambiguous|no such container|network \S+ not found|already in use by container/i.test(String(thrown));

/** The started container of a plan, or why there is none. */
async function place(run: Run): Promise<Container | Sidecar> {
  const { api, plan, signal } = run;
  const { service, name, image } = plan;
  const found = await unlessMissing(api.getContainer(name).inspect({ abortSignal: signal }));
  if (found !== undefined && !isOurs(found.Config.Labels, plan)) {
    const detail = `the name ${name} is taken by a container that harness did not make; remove or rename that one`;
    return { service, state: "failed", detail };
  }
  if (found !== undefined && isAsPlanned(found, plan)) {
    const kept = await resume(run, found);
    if (kept !== undefined) return kept;
  }
  const lack = await lackOfImage(api, image, {
    ...run,
    onLine: ({ text }) => run.onLine(`${image}: ${text}`),
  });
  if (lack !== undefined) {
    const detail = `the image ${image} is not here and cannot be pulled: ${engineSays(lack)}`;
    return { service, state: "no-image", detail };
  }
  await ensureNetwork(api, plan.network, signal);
  if (found !== undefined) await removeContainer(api, found.Id, signal);
  return await placeContainer(run);
}

type Labels = Readonly<Record<string, string>> | null | undefined;

const isOurs = (labels: Labels, { project, service }: SidecarPlan): boolean =>
  labels?.[LABEL.project] === project && labels[LABEL.sidecar] === service;

/**
 * Compose has its own way to hash, so a container that compose made is compared by image and ports. A container that
 * the engine is removing, or could not remove, is made anew.
 */
function isAsPlanned({ Config, HostConfig, State }: ContainerInspectInfo, plan: SidecarPlan): boolean {
  if (State.Status === "dead" || State.Status === "removing") return false;
  if (Config.Labels[LABEL.composeVersion] === undefined) return Config.Labels[LABEL.hash] === plan.hash;
  return (
    Config.Image === plan.image &&
    isDeepStrictEqual(HostConfig.PortBindings, plan.container.HostConfig?.PortBindings)
  );
}

/** The same container, running; undefined if it must be made anew. */
async function resume(run: Run, { Id, State }: ContainerInspectInfo): Promise<Container | undefined> {
  const container = run.api.getContainer(Id);
  if (State.Paused) await container.unpause({ abortSignal: run.signal });
  if (State.Running) return container;
  try {
    await startContainer(container, run);
    return container;
  } catch (thrown) {
    // The container's network was made anew since, so the container can never start again.
    if (/^network \S+ not found/.test(reasonOf(thrown))) return undefined;
    throw thrown;
  }
}

/** Makes the container of a plan and starts it. If it does not start, no container is left behind. */
async function placeContainer(run: Run): Promise<Container> {
  const { api, plan, signal: abortSignal } = run;
  for (const volume of plan.volumes) await ensureVolume(api, volume, abortSignal);
  const container = await api.createContainer({ ...plan.container, abortSignal });
  try {
    await startContainer(container, run);
    return container;
  } catch (thrown) {
    await unlessGone(container.remove({ force: true, v: true }));
    throw thrown;
  }
}

/** Starts the container unless it runs (304); if a port is taken, the error says which. */
async function startContainer(container: Container, { plan, signal }: Run): Promise<void> {
  try {
    await container.start({ abortSignal: signal });
  } catch (thrown) {
    signal.throwIfAborted();
    if (hasSettled(thrown)) return;
    throw new Error(startFailure(engineSays(reasonOf(thrown)), plan), { cause: thrown });
  }
}

/** Names the port if the engine says that one is taken; any other reason stays as it is. */
export function startFailure(reason: string, plan: SidecarPlan): string {
  if (!/port is already allocated|address already in use/i.test(reason)) return reason;
  const taken = plan.addresses.find((address) =>
    [":", " "].some((end) => reason.includes(`${address}${end}`)),
  );
  return `${taken ?? plan.addresses.join(" or ")} is in use by another program`;
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

/** Waits until the container answers its health check, dies, or the time is over. */
async function waitUntilReady(container: Container, bounds: ReadyBounds): Promise<Ending> {
  const end = performance.now() + bounds.healthMs;
  const abortSignal = bounds.signal;
  const first = await container.inspect({ abortSignal });
  for (let looks = 1, inspected = first; ; looks += 1, inspected = await container.inspect({ abortSignal })) {
    const { State: state, RestartCount: restarts } = inspected;
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

/** Without a health check, a container that still runs at the third look counts as running. */
function endingOf({ Health: health }: ContainerInspectInfo["State"], looks: number): Ending | undefined {
  if (health === undefined || health.Status === "none")
    return looks < 3 ? undefined : { state: "running", detail: "running" };
  if (health.Status === "healthy") return { state: "running", detail: "healthy" };
  // While a container is paused the engine says unhealthy although no probe failed; after that only a new probe counts.
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
      ? "keeps ending"
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
  return `: ${truncate(line, OUTPUT_CHARS)}`;
}

const MAX_ROUNDS = 6;
const APART_MS = 300;

/**
 * An engine may make several networks of one name, and then the name is of no use. If two harnesses make one at the
 * same time, at least one of them sees both: it removes its own network and looks again.
 */
async function ensureNetwork(
  api: Docker,
  wanted: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<void> {
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    if ((await namesakes(api, wanted, abortSignal)).length > 0) return;
    const made = await createNetwork(api, wanted, abortSignal);
    if ((await namesakes(api, wanted, abortSignal)).length === 1) return;
    if (made !== undefined) await unlessGone(made.remove());
    await pause(Math.random() * APART_MS, undefined, { signal: abortSignal });
  }
  throw new Error(`the network ${wanted.Name} could not be made: other processes are making it too`);
}

/** Undefined if another harness was faster and the engine refused a second network. */
async function createNetwork(
  api: Docker,
  wanted: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<Docker.Network | undefined> {
  try {
    return await api.createNetwork({ ...wanted, abortSignal });
  } catch (thrown) {
    if (hasConflict(thrown)) return undefined;
    throw thrown;
  }
}

async function namesakes(
  api: Docker,
  { Name: name, Labels: labels }: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<readonly NetworkInspectInfo[]> {
  const found = await api.listNetworks({ filters: { name: [name] }, abortSignal });
  const same = found.filter(({ Name }) => Name === name);
  for (const { Labels } of same) refuseForeign("network", name, Labels, labels);
  return same;
}

async function ensureVolume(
  api: Docker,
  wanted: VolumeCreateOptions,
  abortSignal: AbortSignal,
): Promise<void> {
  const name = wanted.Name ?? "";
  const found = await unlessMissing(api.getVolume(name).inspect({ abortSignal }));
  if (found === undefined) await api.createVolume({ ...wanted, abortSignal });
  else refuseForeign("volume", name, found.Labels, wanted.Labels);
}

/** A network or volume of the same project is used, whoever made it; any other is left alone. */
function refuseForeign(kind: string, name: string, found: Labels, wanted: Labels): void {
  if (found?.[LABEL.project] === wanted?.[LABEL.project]) return;
  throw new Error(`a ${kind} called ${name} is there already, and harness did not make it`);
}

/** Seconds for a sidecar to write its data down before it is killed. */
const STOP_SECONDS = 10;

/** Stops and removes the container. Anonymous volumes are removed with it, named ones stay. */
async function removeContainer(api: Docker, id: string, abortSignal: AbortSignal): Promise<void> {
  const container = api.getContainer(id);
  await unlessGone(container.stop({ t: STOP_SECONDS, abortSignal }));
  await unlessGone(container.remove({ force: true, v: true }));
}

/** The engine's answer, or undefined if it says that there is no such thing. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

/** Waits for a stop or a removal that may be done already: gone (404), stopped (304), under way (409). */
async function unlessGone(ending: Promise<unknown>): Promise<void> {
  try {
    await ending;
  } catch (thrown) {
    if (!isMissing(thrown) && !isBeingRemoved(thrown) && !hasSettled(thrown)) throw thrown;
  }
}

/** The engine answers 304 if nothing is left to do. */
const hasSettled = (thrown: unknown): boolean => hasStatus(thrown) && thrown.statusCode === 304;

/** The engine's message without the client's "(HTTP code …)" in front. */
const engineSays = (message: string): string =>
  message
    .replace(/^\(HTTP code \d+\) [^-]*- /, "")
    .replaceAll(/\s+/g, " ")
    .trim();

/** What was removed, by name, and what could not be removed and why. */
export interface Removal {
  readonly containers: readonly string[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
  readonly kept: readonly { readonly name: string; readonly reason: string }[];
}

export interface DownRequest {
  /** Also removes named volumes, with their data. */
  readonly volumes?: boolean;
  /** Volumes to keep, by the names that services use for them. */
  readonly keep?: readonly string[];
  readonly signal?: AbortSignal;
}

/** Stops and removes the sidecars of a project: only things that carry compose's label and ours. */
export async function downSidecars(
  api: Docker,
  project: string,
  request: DownRequest = {},
): Promise<Removal> {
  const abortSignal = request.signal ?? new AbortController().signal;
  const filters = { label: [`${LABEL.project}=${project}`, LABEL.sidecar] };
  const kept: { name: string; reason: string }[] = [];
  const attempt = async (name: string, work: () => Promise<void>): Promise<string[]> => {
    try {
      await work();
      return [name];
    } catch (thrown) {
      kept.push({ name, reason: abortSignal.aborted ? "cancelled" : engineSays(reasonOf(thrown)) });
      return [];
    }
  };
  const all = await api.listContainers({ all: true, filters, abortSignal });
  const containers = await Promise.all(
    all.map((found) => attempt(nameOf(found), () => removeContainer(api, found.Id, abortSignal))),
  );
  const networks = await Promise.all(
    (await api.listNetworks({ filters, abortSignal })).map(({ Id, Name }) =>
      attempt(Name, () => unlessGone(api.getNetwork(Id).remove({ abortSignal }))),
    ),
  );
  // The engine answers null for an empty list.
  const own = request.volumes === true ? (await api.listVolumes({ filters, abortSignal })).Volumes : null;
  const going = (own ?? []).filter(({ Labels }) => !request.keep?.includes(Labels?.[LABEL.sidecar] ?? ""));
  const volumes = await Promise.all(
    going.map(({ Name }) => attempt(Name, () => unlessGone(api.getVolume(Name).remove({ abortSignal })))),
  );
  return { containers: containers.flat(), networks: networks.flat(), volumes: volumes.flat(), kept };
}

const nameOf = (found: Docker.ContainerInfo): string =>
  found.Names[0]?.replace(/^\//, "") ?? found.Labels[LABEL.service] ?? found.Id;

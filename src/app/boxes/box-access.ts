import { realpath } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Connection, SecretBinding } from "../../core/network.ts";
import type { ExecResult, Job, OwnedBox } from "../../core/ports.ts";
import { ROOT_OWNED } from "../../boxes/workspace/box-workspace.ts";
import type { BoxRequest } from "../../docker/box/prepare-box.ts";
import { startBox } from "../../docker/box/start-box.ts";
import { isElsewhere } from "../../docker/engine-endpoint.ts";
import { engineRemedy } from "../../docker/engine-install.ts";
import { type Engine, findEngine, isEngine, type NoEngine } from "../../docker/engine.ts";
import { readSystem } from "../../platform/host-programs.ts";
import { layersIn } from "../../boxes/workspace/layer-record.ts";
import { discardParked, isClaimed, standingsOf } from "../../docker/box/parked-boxes.ts";
import { checkpointStores } from "../sessions/checkpoint-access.ts";
import { environmentFor } from "./workspace-environment.ts";
import { type Host, namedCluster, namedEngine, packageRoot } from "../host.ts";
import { knownSecrets, networkFor } from "./granted-network.ts";
import { visible } from "../../core/visible.ts";
import type { BoxEnvironment } from "../../docker/environments/environment-mounts.ts";

export const lookForEngine = async (
  host: Host,
  signal?: AbortSignal,
  named = namedEngine(host),
): Promise<Engine | NoEngine> => findEngine(host.env, host.uid, signal, await named);

/** The engine, or exit 6 with the command that would install or start one. */
export async function requireEngine(
  host: Host,
  signal?: AbortSignal,
  named = namedEngine(host),
): Promise<Engine> {
  const found = await lookForEngine(host, signal, named);
  if (isEngine(found)) return found;
  throw noEngine(found, engineRemedy(await readSystem(host.env), found));
}

export interface BoxOpening {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly runtime: string | null;
  readonly watchChanges: boolean;
  /** The session that continues with the changes, unless they go into the workspace itself; null: none. */
  readonly keep: string | null;
  /** Whether the box may be kept frozen, if the settings want that for a waiting run. */
  readonly parks?: boolean;
  /** A read-only box, opened while another box of this process holds the workspace. */
  readonly beside?: boolean;
  /** Only our own programs run in the box. */
  readonly ownOnly?: boolean;
  /** Continue in the box that waits frozen for the session; the value is the time until which it was to be kept. */
  readonly takesUp?: number | undefined;
  /** A person may grant the box more while it runs. */
  readonly mayGrant?: boolean;
  /** Limits of disk space; left out: the usual ones. */
  readonly budget?: BoxRequest["budget"];
  readonly warn: (text: string) => void;
  /** Called for each connection that the box's commands made or were refused. */
  readonly onConnection?: (connection: Connection) => void;
}

/** A verified box over a workspace, with the given settings, on the user's engine or cluster. */
export async function openBoxFor(opening: BoxOpening, signal: AbortSignal): Promise<OwnedBox> {
  const { host, settings, workspace, keep, warn } = opening;
  const { isolation } = settings;
  const cluster = await namedCluster(host);
  const open = async (): Promise<OwnedBox> => {
    if (cluster === undefined) return openContainerFor(opening, signal);
    const { openPodFor } = await import("./pod-access.ts");
    return openPodFor(opening, cluster, signal);
  };
  if (keep === null || isolation === "bind") return open();
  // Nothing runs before both are done.
  const noted = noteLayerBase({ stateDir: host.places.state, workspace, session: keep, isolation, warn });
  const [box] = await Promise.all([open(), noted]);
  return box;
}

async function openContainerFor(opening: BoxOpening, signal: AbortSignal): Promise<OwnedBox> {
  const { host, settings, workspace, runtime, watchChanges, keep, warn } = opening;
  const network = await networkFor({ ...opening, onConnection: opening.onConnection }, signal);
  const { home, state } = host.places;
  const engine = await requireEngine(host, signal);
  refuseSight(engine, settings);
  const maker = { engine, root: packageRoot, uid: host.uid, home, stateDir: state, onWarning: warn };
  const { mode, image, isolation, memory, cpus, pids, on_ask, park_timeout } = settings;
  const limits = { memory, cpus, pids };
  const environment =
    opening.ownOnly === true ? undefined : await environmentFor(engine, { host, settings, workspace, warn });
  const parks = opening.parks === true && on_ask === "park" && park_timeout > 0;
  const request = {
    workspace,
    mode,
    image,
    isolation,
    limits,
    runtime,
    watchChanges,
    keep,
    beside: opening.beside === true,
    ownOnly: opening.ownOnly === true,
    ...(network === undefined ? {} : { network }),
    ...(environment === undefined ? {} : { environment }),
    ...(parks ? { parks: park_timeout } : {}),
    ...(opening.takesUp === undefined ? {} : { takesUp: opening.takesUp }),
    ...(opening.budget === undefined ? {} : { budget: opening.budget }),
  };
  const services = environment?.services ?? [];
  const secrets = network?.secrets ?? [];
  return withServices(hiding(await startBox(maker, request, signal), secrets), services, signal);
}

/** What settingsOnEngine ensures for a command also applies to boxes that the harness opens for itself. */
function refuseSight({ endpoint }: Engine, { isolation }: Settings): void {
  if (isolation === "copy" || !isElsewhere(endpoint)) return;
  throw new HarnessError(
    EXIT.usage,
    `the engine at ${endpoint.host} cannot see this machine's files, and this command needs a box on the folder itself`,
    "use an engine on this machine: --engine unix:///var/run/docker.sock",
  );
}

/** The box, with the values of secrets masked in its output. */
async function hiding(box: OwnedBox, secrets: readonly SecretBinding[]): Promise<OwnedBox> {
  if (secrets.length === 0) return box;
  const { maskedBox } = await import("../../boxes/masked-box.ts");
  return maskedBox(box, secrets);
}

export function noEngine(failure: NoEngine, remedy: string): HarnessError {
  const at = failure.host === "" ? "" : ` at ${failure.host}`;
  const named = failure.origin === "usual socket" || failure.origin === "" ? "" : ` (from ${failure.origin})`;
  const why = {
    absent: "no container engine answers",
    dead: "the container engine does not answer",
    denied: "this user may not use the container engine's socket",
  };
  return new HarnessError(EXIT.sandbox, `${why[failure.kind]}${at}${named}: ${failure.reason}`, remedy);
}

export async function hasFrozen({ places }: Host, session: string): Promise<boolean> {
  const own = (await standingsOf(places.state, session)).filter(({ kind }) => kind === "parked");
  return (await Promise.all(own.map((each) => isClaimed(each, Date.now())))).includes(true);
}

/** Removes the box that waits frozen for the session. If no engine answers, the box ends when its time runs out. */
export async function dropFrozen(host: Host, session: string): Promise<void> {
  if (!(await hasFrozen(host, session))) return;
  const engine = await lookForEngine(host);
  if (isEngine(engine)) await discardParked(engine, { uid: host.uid, stateDir: host.places.state, session });
}

interface LayerStart {
  readonly stateDir: string;
  readonly workspace: string;
  readonly session: string;
  readonly isolation: "overlay" | "copy";
  readonly warn: (text: string) => void;
}

/** Records the state of the workspace when a box starts to work on a layer over it, or on a copy of it. */
async function noteLayerBase({ stateDir, workspace, session, isolation, warn }: LayerStart): Promise<void> {
  try {
    const [open, { noteBase }] = await Promise.all([
      checkpointStores(),
      import("../../sessions/apply-layer.ts"),
    ]);
    using store = open({ stateDir, workspace: await realpath(workspace) });
    const upper = path.join(layersIn(stateDir), session, "upper");
    await noteBase(store, session, isolation === "overlay" ? upper : undefined);
  } catch (thrown) {
    warn(`files that you change from now on will not be merged with this run's: ${reasonOf(thrown)}`);
  }
}

interface Reading {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  /** Another box of this process already holds the workspace. */
  readonly beside?: boolean;
  readonly warn: (text: string) => void;
}

/** A box that can only read the workspace, whatever the mode of runs is; only our own programs run in it. */
export async function readingBox(
  { host, settings, workspace, warn, beside = false }: Reading,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const isolation = settings.isolation === "copy" ? ("copy" as const) : ("bind" as const);
  const shape = { ...settings, mode: "read-only" as const, isolation, allow_domains: [], secrets: {} };
  const opening = {
    host,
    settings: shape,
    workspace,
    runtime: null,
    watchChanges: false,
    keep: null,
    beside,
    ownOnly: true,
  };
  const warnUnlessKnown = (text: string): void => (text === ROOT_OWNED ? undefined : warn(text));
  // An index outlasts this box, and the files that it reads may contain the value of a secret.
  return hiding(
    await openBoxFor({ ...opening, warn: warnUnlessKnown }, signal),
    knownSecrets(host, settings),
  );
}

/**
 * A box for a person's request outside of any run: it may write the folder itself, has no network, and runs only our
 * own programs.
 */
export function writingBox(
  { host, settings, workspace, warn }: Omit<Reading, "beside">,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const shape: Settings = {
    ...settings,
    mode: "workspace-write",
    isolation: "bind",
    allow_domains: [],
    secrets: {},
    image: null,
  };
  const opening = { host, settings: shape, workspace, runtime: null, watchChanges: false };
  return openBoxFor({ ...opening, keep: null, ownOnly: true, warn }, signal);
}

type Service = BoxEnvironment["services"][number];

const PATIENCE_MS = 60_000;
const LOOK_MS = 100;
const HEALTH_MS = 10_000;
const KEEP = { head: 0, tail: 16 * 1024 };

/**
 * Starts the services that the project's tests need, in parallel to the commands of a box, and waits until all are
 * usable. A service runs in the box, as its user, on the box's own loopback, and ends with the box: nothing outside can
 * reach it.
 */
async function startServices(
  box: OwnedBox,
  services: readonly Service[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    services
      .filter(({ name }) => box.kept?.has(jobName(name)) !== true)
      .map((service) => startService(box, service, signal)),
  );
}

/** The box once its services are usable; if one fails, the box is closed and the error thrown. */
export async function withServices(
  starting: Promise<OwnedBox>,
  services: readonly Service[],
  signal: AbortSignal,
): Promise<OwnedBox> {
  const box = await starting;
  if (services.length === 0) return box;
  try {
    await startServices(box, services, signal);
    return box;
  } catch (thrown) {
    await box[Symbol.asyncDispose]();
    throw thrown;
  }
}

const jobName = (name: string): string => `service-${name}`;

async function startService(box: OwnedBox, service: Service, signal: AbortSignal): Promise<void> {
  const { name, start, health } = service;
  const words = ["sh", "-c", `exec 2>&1\n${start}`];
  const job = box.start({ words, timeoutMs: 0, keep: { ...KEEP, head: 4096 }, name: jobName(name) });
  const over: { result?: ExecResult } = {};
  job.result.then(
    (result) => (over.result = result),
    () => undefined,
  );
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    signal.throwIfAborted();
    if (over.result !== undefined) throw failed(service, `it exited with code ${over.result.exit_code}`, job);
    const request = { words: ["sh", "-c", health], timeoutMs: HEALTH_MS, keep: KEEP };
    if ((await box.exec(request, signal)).exit_code === 0) return;
    if (performance.now() > until)
      throw failed(service, `its health command did not succeed within ${PATIENCE_MS / 1000} s`, job);
    await sleep(LOOK_MS);
  }
}

const LAST_LINES = 8;

function failed({ name }: Service, why: string, job: Job): HarnessError {
  const lastLines = Buffer.from(job.output().stdout)
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .slice(-LAST_LINES);
  const lines = lastLines.map((line) => `\n    ${visible(line.slice(0, 300))}`).join("");
  return new HarnessError(
    EXIT.sandbox,
    `the service ${name} could not be used: ${why}${lines}`,
    "fix its start or health line in the recipe, or leave the environment out: --env none",
  );
}

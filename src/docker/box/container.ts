import { randomBytes } from "node:crypto";
import { lstat, readFile } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { firstLines } from "../../core/wording.ts";
import { type BoxPlan, containerSpec, mountsOf } from "../container-spec.ts";
import { type Engine, engineFailure, hasStatus, isMissing, isPodman } from "../engine.ts";
import { createOnPodman, inspectOnPodman, prepareOnPodman } from "./podman-container.ts";
import { type HostFile, hostFile, MAY_HOLD, replacedAmong } from "../../boxes/workspace/protected-mounts.ts";
import { type PausedRunner, RunnerClient } from "../../boxes/runner-client.ts";
import { KEY_BYTES } from "../../boxes/runner-protocol.ts";
import { imageWithAccount } from "./account.ts";
import { askReport, type SeenFile } from "../../boxes/runner-report.ts";
import {
  inspectedDifferences,
  type Inspected,
  isGvisor,
  mountinfoLines,
  reportDifferences,
} from "./container-check.ts";
import { waitingTimeout } from "../../platform/waits.ts";

/** Answers requests that commands make of the harness. */
export type Door = (request: Buffer) => Promise<Buffer>;

interface ContainerExtras {
  /** Lets commands make requests of the harness. */
  readonly door?: Door | undefined;
  /** Further checks of the container's mount table besides the plan; one line for each deviation. */
  readonly faults?: ((mountinfo: string) => readonly string[]) | undefined;
  /** Set for a frozen container, which is thawed instead of started. */
  readonly frozen?: Frozen | undefined;
  /** Receives warnings that need no action. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

interface ConnectOptions extends ContainerExtras {
  readonly engine: Engine;
}

interface Frozen {
  readonly runner: PausedRunner;
  /** The host files that its mounts covered when it was verified. */
  readonly files: readonly HostFile[];
}

export interface VerifiedContainer {
  readonly id: string;
  readonly client: RunnerClient;
  /** The plan that the container was made from. */
  readonly plan: BoxPlan;
  /** The host files that its mounts cover. */
  readonly files: readonly HostFile[];
  /** Stops all processes of the container and disconnects from it. */
  readonly freeze: () => Promise<void>;
  /** Resolves when the engine no longer has the container. */
  readonly close: () => Promise<void>;
  /**
   * Resolves when nothing of the container runs any more. The engine then removes it while nobody waits, even if this
   * process is killed in between; if the engine fails to, the next start finds a box whose owner is gone. If the end
   * cannot be observed, this works like `close`.
   */
  readonly end: () => Promise<void>;
}

/**
 * create -> compare the engine's report with the plan -> start -> compare the container's report. Any deviation removes
 * the container and ends with exit 6; there is no option to continue.
 */
export async function verifiedContainer(
  engine: Engine,
  plan: BoxPlan,
  extras: ContainerExtras = {},
): Promise<VerifiedContainer> {
  const made = await create(engine, plan);
  return connectAndVerify(made.container, made.plan, { ...extras, engine });
}

/**
 * The same for a frozen container: compares the engine's report with the plan, and the host files under its mounts with
 * those that were there before; only then is it thawed, because its processes continue with these files. Then compares
 * its own report. Any deviation removes the container.
 */
export async function thawedContainer(
  engine: Engine,
  plan: BoxPlan,
  extras: ContainerExtras & { readonly id: string; readonly frozen: Frozen },
): Promise<VerifiedContainer> {
  return connectAndVerify(engine.api.getContainer(extras.id), plan, { ...extras, engine });
}

async function connectAndVerify(
  container: Docker.Container,
  plan: BoxPlan,
  extras: ConnectOptions,
): Promise<VerifiedContainer> {
  const stack = new AsyncDisposableStack();
  stack.defer(() => removeContainer(container, extras.onWarning));
  try {
    const client = await connect(container, plan, extras);
    stack.defer(() => client.close());
    if (plan.lease === true) stack.use(keptAlive(client));
    const files = await verify(client, plan, extras).catch((thrown: unknown) =>
      explainExposure(thrown, extras.frozen),
    );
    // A runner with a lease keeps running when its input ends.
    const watch = plan.lease === true ? undefined : endWatch(plan, container).catch(() => undefined);
    const close = (): Promise<void> => stack.disposeAsync();
    return {
      id: container.id,
      client,
      plan,
      files,
      freeze: async () => {
        await pause(container);
        client.close();
      },
      close,
      end: async () => {
        const ended = await watch;
        client.close();
        if (ended === undefined || !(await ended())) await close();
      },
    };
  } catch (thrown) {
    await stack.disposeAsync();
    throw thrown;
  }
}

/** With cgroups version 1 a freeze can miss a process that is being throttled; the freeze is then undone. */
async function pause(container: Docker.Container, tries = 8): Promise<void> {
  try {
    await container.pause();
  } catch (thrown) {
    if (tries <= 1 || !hasStatus(thrown) || thrown.statusCode !== 500) throw thrown;
    await sleep(LOOK_MS);
    await pause(container, tries - 1);
  }
}

/** Creates the planned container in the engine's own terms. */
export const createContainer = (engine: Engine, plan: BoxPlan): Promise<Docker.Container> =>
  isPodman(engine) ? createOnPodman(engine, plan) : engine.api.createContainer(containerSpec(plan));

/** If the engine does not have these host files, an image names the user instead. */
async function create(
  engine: Engine,
  plan: BoxPlan,
): Promise<{ readonly container: Docker.Container; readonly plan: BoxPlan }> {
  const { account, hosts } = plan;
  try {
    return { container: await createContainer(engine, plan), plan };
  } catch (thrown) {
    const reason = reasonOf(thrown);
    if ([account?.passwd, hosts].some((file) => file !== undefined && reason.includes(file)))
      return create(engine, await withoutLists(engine, plan));
    throw engineFailure("making the box", thrown);
  }
}

/** The plan without host files: an image names the box's user, and the engine's own hosts file is used. */
export async function withoutLists(engine: Engine, plan: BoxPlan): Promise<BoxPlan> {
  const { account: _, hosts: __, ...others } = plan;
  return { ...others, image: await imageWithAccount(engine, plan) };
}

/** Far more often than the runner's lease requires. */
const ALIVE_MS = 2000;

/** Tells the runner that the harness is alive, until disposed. */
export function keptAlive(client: Pick<RunnerClient, "alive">): Disposable {
  const timer = setInterval(() => client.alive(), ALIVE_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Attaches first, so that no output of the runner is missed. Starts only after the engine's report matches the plan. */
async function connect(
  container: Docker.Container,
  plan: BoxPlan,
  { door: onAsk, frozen, engine }: ConnectOptions,
): Promise<RunnerClient> {
  // Attaching to a container that is not prepared makes Podman prepare it at the same time.
  if (isPodman(engine) && frozen === undefined) await prepareOnPodman(engine, container).catch(notStarted);
  const paused = frozen?.runner;
  const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const attach = (): Promise<Duplex> => container.attach(options) as Promise<unknown> as Promise<Duplex>;
  // Engines cannot attach to a frozen container; a runner that is held sends nothing.
  const thawed = Promise.withResolvers<void>();
  // Avoids an unhandled rejection if nothing awaits the promise.
  thawed.promise.catch(() => undefined);
  const attaching = paused === undefined ? attach() : thawed.promise.then(attach);
  try {
    const { inspected, lines } = await inspectedBy(engine, plan, container);
    refuseUnlessPlanned("the engine", lines);
    if (frozen !== undefined) {
      await refuseReplaced(plan, frozen, { id: container.id, pid: inspected.State?.Pid });
      await container.unpause();
    }
    thawed.resolve();
    const client = new RunnerClient(await attaching, randomBytes(KEY_BYTES), { onAsk, paused });
    if (paused === undefined) await container.start();
    return client;
  } catch (thrown) {
    thawed.reject(thrown);
    // A connection to a container that never ran would keep this process waiting.
    await attaching.then(
      (stream) => void stream.destroy(),
      () => undefined,
    );
    return notStarted(thrown);
  }
}

const notStarted = (thrown: unknown): never => {
  throw thrown instanceof HarnessError ? thrown : engineFailure("starting the box", thrown);
};

async function inspectedBy(
  engine: Engine,
  plan: BoxPlan,
  container: Docker.Container,
): Promise<{ readonly inspected: Inspected; readonly lines: readonly string[] }> {
  if (isPodman(engine)) return inspectOnPodman(engine, plan, container);
  const inspected = (await container.inspect()) as unknown as Inspected;
  return { inspected, lines: inspectedDifferences(plan, inspected) };
}

async function refuseReplaced(
  plan: BoxPlan,
  { files }: Frozen,
  { id, pid }: { readonly id: string; readonly pid: unknown },
): Promise<void> {
  const replaced = await replacedAmong(files);
  if (replaced.length > 0)
    throw new HarnessError(
      EXIT.sandbox,
      `${replaced.join(", ")} was replaced while the box waited, so that nothing protects it in the box`,
      "harness doctor",
    );
  refuseUnlessPlanned("the host", await mountsOutside(plan, id, pid));
}

/** The host may have changed something between the last check and the thaw, and the box may have changed it since. */
async function explainExposure(thrown: unknown, frozen: Frozen | undefined): Promise<never> {
  const replaced = frozen === undefined ? [] : await replacedAmong(frozen.files);
  if (replaced.length === 0) throw thrown;
  const message = `${replaced.join(", ")} was replaced while the box was being thawed and ${MAY_HOLD} (${reasonOf(thrown)})`;
  throw new HarnessError(EXIT.sandbox, message, "", thrown);
}

async function verify(
  client: RunnerClient,
  plan: BoxPlan,
  { door, faults }: ContainerExtras,
): Promise<readonly HostFile[]> {
  const mounts = mountsOf(plan).filter(({ Type }) => Type === "bind");
  const bound = mounts.map(({ Target }) => Target);
  const asking = { mayAsk: door !== undefined, guarded: bound.filter((path) => isGuarded(plan, path)) };
  const [report, host, files] = await Promise.all([
    askReport(client, bound, asking),
    Promise.all(mounts.map(seenOnHost)),
    Promise.all(mounts.filter((mount) => isOverHost(plan, mount)).map(({ Target }) => hostFile(Target))),
  ]);
  const lines = [...reportDifferences(plan, report, host), ...(faults?.(report.mountinfo) ?? [])];
  refuseUnlessPlanned("the box itself", lines);
  return files;
}

type BindMount = ReturnType<typeof mountsOf>[number];

/** The host's file at the source of a mount, under its path in the box. */
async function seenOnHost({ Source, Target: path }: BindMount): Promise<SeenFile> {
  const { dev, ino } = await lstat(Source, { bigint: true });
  return { path, dev: String(dev), ino: String(ino) };
}

/** The mount's target is a host path, which may be replaced by something else meanwhile. */
const isOverHost = ({ workspace }: BoxPlan, { Source, Target }: BindMount): boolean =>
  Source === Target || (workspace !== undefined && isInside(workspace.path, Target));

/**
 * Paths in the workspace: a name there that lost its mount can be written. A covered socket is exempt: if its program
 * makes it anew, it is no worse than a socket that is made later, and it is reported at the end of the box.
 */
const isGuarded = ({ workspace, over, covered }: BoxPlan, path: string): boolean =>
  over === undefined &&
  workspace !== undefined &&
  path !== workspace.path &&
  isInside(workspace.path, path) &&
  covered?.paths.includes(path) !== true;

function refuseUnlessPlanned(who: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  const message = `the box is not as planned, according to ${who}, so nothing is run in it:\n    ${firstLines(lines, 6).join("\n    ")}`;
  throw new HarnessError(EXIT.sandbox, message, "harness doctor");
}

const REMOVAL_MS = 10_000;

/**
 * Waits until the container is really gone. While a removal is in progress the engine refuses another one, and its own
 * waiting for the end sometimes misses it: so this polls.
 */
async function removeContainer(
  container: Docker.Container,
  onWarning: ContainerExtras["onWarning"] = () => undefined,
): Promise<void> {
  const bound = waitingTimeout(REMOVAL_MS);
  try {
    await removeUnthawed(container, bound);
  } catch (thrown) {
    // An engine that does not answer gives no further information.
    if (!hasStatus(thrown))
      return onWarning(leftOver(container, bound.aborted ? ENGINE_SILENT : reasonOf(thrown)));
    if (isMissing(thrown)) return;
    while (!bound.aborted && (await isThere(container, bound))) await sleep(LOOK_MS);
    if (bound.aborted) onWarning(leftOver(container, reasonOf(thrown)));
  }
}

const ENGINE_SILENT = "the engine does not answer";

const leftOver = ({ id }: Docker.Container, why: string): string =>
  `the box's container ${id.slice(0, 12)} could not be removed (${why}): the next run removes it, or do it yourself: harness sandbox rm`;

const LOOK_MS = 20;

/** Only the engine can say that it is gone; whatever else fails is asked again until the bound. */
const isThere = (container: Docker.Container, abortSignal: AbortSignal): Promise<boolean> =>
  container.inspect({ abortSignal }).then(
    () => true,
    (thrown: unknown) => !isMissing(thrown),
  );

/*
 * From here on: containers and their processes seen from outside, if these processes run on this machine.
 */

/**
 * Removes a container so that nothing in it runs once more. To end a frozen container, engines with cgroups version 1
 * thaw it, and its processes go on until the first one is gone: long enough for some thousand writes to paths that may
 * have lost their protection meanwhile. So each process is killed by a signal first. If the processes cannot be seen
 * (an engine in a virtual machine), that moment remains.
 */
export async function removeUnthawed(container: Docker.Container, abortSignal?: AbortSignal): Promise<void> {
  const bound = abortSignal === undefined ? {} : { abortSignal };
  await endFrozen(container, bound).catch(() => undefined);
  await container.remove({ force: true, v: true, ...bound });
}

interface TopListing {
  readonly Titles: readonly string[];
  readonly Processes: readonly (readonly string[])[];
}

async function endFrozen(
  container: Docker.Container,
  bound: { readonly abortSignal?: AbortSignal },
): Promise<void> {
  const { State } = await container.inspect(bound);
  if (!State.Paused) return;
  const { Titles, Processes } = (await container.top({ ps_args: "-eo pid", ...bound })) as TopListing;
  const at = Titles.indexOf("PID");
  for (const row of Processes) {
    const pid = Number(row[at]);
    if (await isIn(container.id, pid)) process.kill(pid, "SIGKILL");
  }
}

/** A frozen process cannot end, so its number belongs to no other process. */
async function isIn(id: string, pid: number): Promise<boolean> {
  if (!Number.isInteger(pid) || pid < 2) return false;
  return (await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "")).includes(id);
}

/** How the mounts of a container deviate from the plan, according to this machine's kernel; empty if it cannot tell. */
async function mountsOutside(plan: BoxPlan, id: string, pid: unknown): Promise<readonly string[]> {
  if (isGvisor(plan) || typeof pid !== "number" || !(await isIn(id, pid))) return [];
  const text = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
  return text === "" ? [] : mountinfoLines(plan, text);
}

/** Resolves to whether nothing of the container runs any more, once that is known or the wait was in vain. */
type EndWatch = () => Promise<boolean>;

/**
 * Watches a running container. The kernel ends a PID namespace with its first process, which counts as ended only when
 * all others are gone, so that nothing can write afterwards. Undefined if another kernel than this machine's runs the
 * container, or if this machine cannot tell: then only the engine knows.
 */
async function endWatch(plan: BoxPlan, container: Docker.Container): Promise<EndWatch | undefined> {
  // Another runtime may stand between this kernel and the container's processes.
  if (plan.host.runtime !== null) return undefined;
  const { State } = await container.inspect();
  const { Pid: pid } = State;
  if (!(await isIn(container.id, pid)) || !(await isFirst(pid))) return undefined;
  return async () => {
    for (let waited = 0; waited < END_MS; waited += END_LOOK_MS) {
      if (!(await isRunning(container.id, pid))) return true;
      await sleep(END_LOOK_MS);
    }
    return false;
  };
}

/** On a busy machine, the many processes of a box that each need a processor once more can take over a second to go. */
const END_MS = 4000;
const END_LOOK_MS = 2;

/** The first process of its namespace, seen from outside, where it has another number. */
async function isFirst(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return /^NSpid:\s.*\s1$/m.test(status) && /^Threads:\s1$/m.test(status);
}

/** A number that now belongs to another process is in no cgroup of the container. */
async function isRunning(id: string, pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const state = stat.slice(stat.lastIndexOf(")") + 2)[0];
  return state !== undefined && state !== "Z" && state !== "X" && (await isIn(id, pid));
}

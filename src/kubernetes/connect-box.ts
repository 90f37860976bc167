import { randomBytes } from "node:crypto";
import { Duplex, PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
import { startCommand } from "../boxes/box-command.ts";
import { RunnerClient } from "../boxes/runner-client.ts";
import { KEY_BYTES } from "../boxes/runner-protocol.ts";
import {
  askReport,
  type BoxReport,
  hostLines,
  isAlone,
  isGvisorRuntime,
  limitLines,
  type MountPoint,
  processLines,
  readMountinfo,
} from "../boxes/runner-report.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { isInside } from "../core/file-names.ts";
import { visibleLine } from "../core/visible.ts";
import { unlessAborted, waitingTimeout } from "../platform/waits.ts";
import { NotFromPool } from "./agent-sandbox.ts";
import { ApiFailure, type Cluster, type ClusterTime, isLost, noAnswer } from "./cluster.ts";
import { proveShut, removeOpening, type Sight, startProbe, stillShut, targetsOn } from "./network-proof.ts";
import { placesBeside, type PodPlan, scratchOf } from "./pod-spec.ts";
import { failureError, podFailure, podOf, type Starting, untilRunning } from "./pod-watch.ts";

interface Connecting extends Starting {
  readonly cluster: Cluster;
  readonly plan: PodPlan;
  /** The pod; one from a pool has another name than planned. */
  readonly pod: { readonly name: string };
  /** Settles once the policy that lets the pod out exists and the pod owns its policies. */
  readonly handed: () => Promise<void>;
  /** HOST:PORT that pods in the cluster can reach if allowed. */
  readonly probe: string | null;
}

/** A runner in the planned box, with proof that the box reaches nothing. */
export interface ConnectedBox {
  readonly client: RunnerClient;
  /** The last observation of the network; undefined if the box has none. */
  readonly shown: Sight | undefined;
  /**
   * To be called once everything is in the box and before anything runs: checks that nothing has answered meanwhile.
   */
  readonly still: () => Promise<void>;
}

/** `open`: what another container of the pod saw of the network while it was let out. */
export async function connectBox(
  { cluster, plan, pod, handed, probe: named, ...starting }: Connecting,
  container: string,
  open?: Sight,
): Promise<ConnectedBox> {
  const { signal } = starting;
  const own = named === null ? [] : [named.replace(/:(?=\d+$)/, " ")];
  const node = (await untilRunning(cluster, pod, container, starting)).status?.hostIP ?? "";
  const client = new RunnerClient(
    await attachTo(cluster, { pod: pod.name, container, signal }),
    randomBytes(KEY_BYTES),
  );
  try {
    if (plan.kind === "Claim") await refuseUsed(client, plan, signal);
    // The policy that lets the pod out must exist first: if it brings a network, the report has to show it.
    await handed();
    const report = await askReport(client, []);
    refuseUnlessPlanned("the box itself", podReportDifferences(plan, report));
    if (isAlone(report)) {
      await removeOpening(cluster, plan);
      return { client, shown: undefined, still: () => Promise.resolve() };
    }
    const probe = startProbe(client, [...targetsOn(node), ...own]);
    const shown = await proveShut(cluster, plan, { look: () => unlessAborted(probe.look(), signal), open });
    return { client, shown, still: () => stillShut(probe, shown) };
  } catch (thrown) {
    const lost = client.lost;
    client.close();
    if (lost === undefined || thrown instanceof NotFromPool) throw thrown;
    const failure = podFailure(await podOf(cluster, pod));
    throw failure === undefined ? thrown : failureError(failure, thrown);
  }
}

/**
 * Rejects a pod that was used while it waited: its runner obeys the first client that greets it and ends with that
 * client. Anyone who came another way left traces: files where a box may write, System V or POSIX objects, processes.
 */
async function refuseUsed(client: RunnerClient, plan: PodPlan, signal: AbortSignal): Promise<void> {
  try {
    await askReport(client, []);
    const places = [...scratchOf(plan).map((one) => one.path), ...placesBeside(plan), plan.workspace];
    const command = {
      words: ["sh", "-c", LIST_LEFTOVERS, plan.network ? "network" : "alone", ...places],
      folder: "/",
      timeoutMs: 60_000,
      keep: KEEP,
    };
    const { exit_code, stdout } = await startCommand(client, command, { workspace: "/" }).ended;
    const left = Buffer.from(stdout.head).toString("utf8").trim();
    if (exit_code === 0 && left === "") return;
    throw new NotFromPool(`its pod was used before: ${visibleLine(left)} is left over`);
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof NotFromPool ? thrown : new NotFromPool(reasonOf(thrown), { cause: thrown });
  }
}

const KEEP = { head: 400, tail: 0 };
/**
 * Prints everything besides the runner and this script. If hosts may be granted, the runner starts its bridge before it
 * accepts a word, within the first two seconds of the pod: even a pod of its own is not a box that early.
 */
const LIST_LEFTOVERS = `begun() { line=$(cat /proc/$1/stat); set -- \${line##*) }; echo \${20}; }
for one in /proc/[0-9]*; do
  pid=\${one#/proc/}
  case $pid in 1 | $$ | $PPID) continue ;; esac
  name=$(cat $one/comm)
  [ "$0 $name" = "network bridge" ] && [ $(($(begun $pid) - $(begun 1))) -lt 200 ] && continue
  echo "the process $name"
done
for place in /dev/mqueue /dev/shm; do [ ! -d $place ] || set -- "$@" $place; done
find "$@" -mindepth 1 -print -quit && tail -qn +2 /proc/sysvipc/msg /proc/sysvipc/sem /proc/sysvipc/shm`;

export function refuseUnlessPlanned(who: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  const more = lines.length > 6 ? `\n    and ${lines.length - 6} more` : "";
  throw new HarnessError(
    EXIT.sandbox,
    `the box is not as planned, according to ${who}, so nothing is run in it:\n    ${lines.slice(0, 6).join("\n    ")}${more}`,
    "harness doctor",
  );
}

/** Compares the box's own report with the plan, one line per deviation. The network is proven elsewhere. */
export function podReportDifferences(plan: PodPlan, report: BoxReport): readonly string[] {
  const kernel = { gvisor: isGvisorRuntime(plan.runtimeClass) };
  return [
    ...processLines(plan, report.status, kernel),
    ...limitLines(report.rlimits, kernel),
    ...hostLines(report),
    ...mountLines(plan, report.mountinfo),
  ];
}

function mountLines(plan: PodPlan, text: string): readonly string[] {
  const { points, strange } = readMountinfo(text);
  const at = (path: string): MountPoint | undefined => points.findLast((point) => point.path === path);
  const scratch = scratchOf(plan).map(({ path }) => path);
  const beside = placesBeside(plan);
  const readOnly = plan.mode === "read-only";
  return [
    ...strange.map((line) => `a mount that cannot be read: ${line}`),
    ...mountDifferences(at("/"), "/", { options: ["ro"] }),
    ...scratch.flatMap((path) => mountDifferences(at(path), path, { type: "tmpfs", options: ["rw"] })),
    ...beside.flatMap((path) => mountDifferences(at(path), path, { options: ["rw"] })),
    ...mountDifferences(at(plan.workspace), plan.workspace, { options: [readOnly ? "ro" : "rw"] }),
    ...points
      .filter(
        ({ path }) => path !== "/" && path !== plan.workspace && ![...scratch, ...beside].includes(path),
      )
      .flatMap((point) => strangerLines(point)),
  ];
}

function mountDifferences(
  point: MountPoint | undefined,
  path: string,
  { type, options }: { readonly type?: string; readonly options: readonly string[] },
): readonly string[] {
  if (point === undefined) return [`${path} is not a mount of its own`];
  if (type !== undefined && point.type !== type) return [`${path}: is ${point.type}, planned ${type}`];
  const gone = options.filter((option) => !point.options.has(option));
  return gone.length > 0 ? [`${path}: not ${gone.join(", not ")}`] : [];
}

const KERNEL = new Set(["proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2"]);
/** Files that the kubelet and the runtime mount, one each. */
const FILES = /^\/(?:etc\/(?:hosts|hostname|resolv\.conf)|dev\/termination-log)$/;

/**
 * Unplanned mounts are allowed only for kernel file systems below the kernel's own folders, and for four files. Any
 * other mount is reported.
 */
function strangerLines({ path, type, root }: MountPoint): readonly string[] {
  const own = ["/proc", "/sys", "/dev"].some((folder) => isInside(folder, path));
  if (FILES.test(path) || (own && KERNEL.has(type))) return [];
  return [`${path}: was not planned (${type} of ${root})`];
}

/** The part of the package's socket that is used; its own types need a package that is not installed. */
interface Socket {
  readonly protocol: string;
  addEventListener(name: "close" | "error", listener: (event: { readonly message?: string }) => void): void;
  send(data: Buffer, done: (error?: Error | null) => void): void;
  ping(): void;
  pause(): void;
  resume(): void;
  close(): void;
  terminate(): void;
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const CLOSE = 255;
const PIECE_BYTES = 64 * 1024;
/** Load balancers on the way drop connections that are silent for a minute. */
const PING_MS = 20_000;

interface Attached {
  readonly pod: string;
  readonly container: string;
  /** The signal of the caller. */
  readonly signal: AbortSignal;
}

/**
 * The standard streams of a container over one WebSocket (v5, else v4), in the framing of a container engine: u8
 * source, three zeros, u32 length. Ending the stream ends the container's input: half of the connection if the protocol
 * allows that, else all of it. Waits for an API server that is away until the stream is attached; a connection that is
 * lost later stays lost, since the container's input ends with it.
 */
export async function attachTo(cluster: Cluster, { pod, container, signal }: Attached): Promise<Duplex> {
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", stderr: "true" });
  const where = cluster.at(`pods/${encodeURIComponent(pod)}/attach?${query.toString()}`);
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const stream = new PodStream((trouble) => whyEnded(cluster, pod, trouble));
  const take = (channel: number, bytes: Buffer): boolean => {
    stream.receive(channel, bytes);
    return true;
  };
  const connect: Connect = (abortSignal) => {
    const handler = new WebSocketHandler(withAbort(abortSignal, cluster.config), undefined, streams);
    return handler.connect(where, null, take) as Promise<Socket>;
  };
  try {
    stream.open(await cluster.patiently(signal, () => openedSocket(connect, cluster.time, signal)));
    return stream;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError) throw thrown;
    const message = `cannot attach to the pod ${pod}: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `kubectl auth can-i create pods/attach -n ${cluster.namespace}`,
      thrown,
    );
  }
}

type Connect = (abortSignal: AbortSignal) => Promise<Socket>;

/** The package does not abort a pending connection: the request behind it ends with this signal. */
const withAbort = (signal: AbortSignal, config: KubeConfig): KubeConfig =>
  ({
    getCurrentCluster: () => config.getCurrentCluster(),
    applyToHTTPSOptions: (options: Parameters<KubeConfig["applyToHTTPSOptions"]>[0]) =>
      config.applyToHTTPSOptions(Object.assign(options, { signal })),
  }) as unknown as KubeConfig;

/**
 * The socket, once open, within the time limit; failures look like those of a request. An abandoned socket is closed.
 */
async function openedSocket(connect: Connect, time: ClusterTime, signal: AbortSignal): Promise<Socket> {
  const late = waitingTimeout(time.answerMs);
  const left = new AbortController();
  const connecting = connect(left.signal);
  try {
    return await unlessAborted(connecting, AbortSignal.any([signal, late]));
  } catch (thrown) {
    left.abort();
    void connecting.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
    signal.throwIfAborted();
    if (late.aborted) throw noAnswer(time);
    // The package throws an event instead of the error.
    const cause = (thrown as { readonly error?: unknown }).error ?? thrown;
    const [, status] = /^Unexpected server response: (\d{3})$/.exec(reasonOf(cause)) ?? [];
    throw status === undefined ? cause : new ApiFailure(Number(status), "", `HTTP ${status}`);
  }
}

/** What the cluster says about a pod whose streams ended; the cluster may know only a moment later. */
async function whyEnded(cluster: Cluster, name: string, trouble: string): Promise<string> {
  const patience = waitingTimeout(Math.min(WHY_MS, cluster.time.answerMs));
  let there = false;
  try {
    for (;;) {
      const pod = await podOf(cluster, { name }, patience);
      there = true;
      const failure = podFailure(pod);
      if (failure !== undefined) return `${failure.word}: ${failure.why}`;
      await sleep(WHY_PAUSE_MS, undefined, { signal: patience });
    }
  } catch (thrown) {
    const isAway = patience.aborted || (thrown instanceof HarnessError && isLost(thrown.cause));
    if (!isAway) return reasonOf(thrown).replace(/^no pod as a box: /, "");
    const how = there
      ? "while the pod was running"
      : `and the API server at ${cluster.server} does not answer`;
    const detail = trouble === "" ? "" : ` (${trouble})`;
    return `connection lost: the connection to the pod ended${detail} ${how}; its box ends with it`;
  }
}

const WHY_MS = 5000;
const WHY_PAUSE_MS = 250;

class PodStream extends Duplex {
  readonly #why: (trouble: string) => Promise<string>;
  #socket: Socket | undefined;
  #pings: NodeJS.Timeout | undefined;
  #trouble: string | undefined;

  /** `why` explains an unexpected end. */
  constructor(why: (trouble: string) => Promise<string>) {
    super();
    this.#why = why;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    socket.addEventListener("close", () => {
      clearInterval(this.#pings);
      void this.#over();
    });
    // The close event follows, and the reason is asked then.
    socket.addEventListener("error", ({ message }) => void (this.#trouble ??= message));
    this.#pings = setInterval(() => socket.ping(), PING_MS).unref();
  }

  async #over(): Promise<void> {
    const why = this.destroyed || this.writableEnded ? "" : await this.#why(this.#trouble ?? "");
    if (this.destroyed) return;
    if (why !== "") this.#give(STDERR ?? 2, Buffer.from(why));
    this.push(null);
  }

  receive(channel: number, bytes: Buffer): void {
    if (this.destroyed || bytes.length === 0) return;
    if (channel === STDOUT || channel === STDERR) this.#give(channel, bytes);
    else if (channel === STATUS) this.#status(bytes);
  }

  #give(channel: number, bytes: Buffer): void {
    const head = Buffer.alloc(8);
    head.writeUInt8(channel, 0);
    head.writeUInt32BE(bytes.length, 4);
    if (!this.push(Buffer.concat([head, bytes]))) this.#socket?.pause();
  }

  /** Sent once, at the end. A failure is passed on as the reason, like the last output of a container. */
  #status(bytes: Buffer): void {
    const text = bytes.toString("utf8");
    if (!text.includes('"Success"')) this.#give(STDERR ?? 2, Buffer.from(text.slice(0, 500)));
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    const send = (at: number, failed?: Error | null): void => {
      // A failing socket is closed at once, and the close event reports why.
      if (failed instanceof Error) this.#trouble ??= failed.message;
      if (failed instanceof Error || at >= chunk.length) return done();
      const piece = chunk.subarray(at, at + PIECE_BYTES);
      const data = Buffer.concat([Buffer.from([STDIN ?? 0]), piece]);
      this.#socket?.send(data, (error) => send(at + piece.length, error));
    };
    send(0);
  }

  override _final(done: (error?: Error | null) => void): void {
    const socket = this.#socket;
    if (socket?.protocol === "v5.channel.k8s.io")
      socket.send(Buffer.from([CLOSE ?? 255, STDIN ?? 0]), () => done());
    else {
      socket?.close();
      done();
    }
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pings);
    this.#socket?.terminate();
    done(error);
  }
}

import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ConfigMap, Job, Pod } from "../../src/kubernetes/cluster.ts";

/**
 * The part of an API server that a batch uses, with a controller that follows the Jobs' fields: indexes, the back-off
 * of each, the failure policy. The test decides how each pod ends.
 */
export interface PodPlay {
  readonly code?: number;
  /** The container with this exit code; `loop` by default. */
  readonly container?: "loop" | "clone";
  readonly reason?: string;
  readonly message?: string;
  /** The pod's reason: `Evicted` … */
  readonly podReason?: string;
  /** Ended by a drained node. */
  readonly disrupted?: boolean;
  /** The pod begins once this settles. */
  readonly from?: Promise<unknown>;
  /** The pod waits for this and never begins. */
  readonly waits?: { readonly reason: string; readonly message: string };
  /** The pod runs until this settles. */
  readonly until?: Promise<unknown>;
  /** How admission changes the pod. */
  readonly admitted?: (pod: Pod) => void;
}

interface Faults {
  /** Requests are not answered; their connections break. */
  down: boolean;
  /** The number of next watches that are told that their version is too old. */
  expired: number;
  /** Creating this kind is refused because of a quota. */
  quota: "jobs" | "configmaps" | "pods" | undefined;
  /** Fields of a Job's spec that an older cluster does not know. */
  drops: readonly string[];
  hasAccount: boolean;
  /** How admission changes a Job. */
  mutates: (job: Job) => void;
  /** Each watch ends after this many events. */
  watchEnds: number;
  /** Answered in the server's place, whatever was asked; the request has no effect. */
  instead: (said: string) => { readonly status: number; readonly text: string } | undefined;
  /** Called before each request is processed and again before it is answered; a returned promise is awaited. */
  hold: (at: { readonly nth: number; readonly when: "before" | "after" }) => Promise<void> | undefined;
}

export interface FakeCluster extends AsyncDisposable {
  readonly url: string;
  /** A kubeconfig for this server. */
  readonly config: string;
  readonly faults: Faults;
  /** `METHOD path` of all requests, in order. */
  readonly asked: string[];
  /** `index/attempt` of each pod that has run. */
  readonly ran: string[];
  readonly jobs: Map<string, Job>;
  readonly pods: Map<string, Pod>;
  readonly maps: Map<string, ConfigMap>;
  readonly deleteJob: (name: string) => void;
  readonly deletePod: (index: number) => void;
  /** Makes a second running pod for the last try of an index, as a controller with an old copy of the Job does. */
  readonly repeatPod: (index: number) => void;
  /** Breaks the connections of all watches. */
  readonly cutWatches: () => void;
  /** Starts a Job, as a queue does. */
  readonly admit: (name: string) => void;
  /** Retries what was refused, as a controller does. */
  readonly retry: () => void;
}

const NAMESPACE = "team";
const INDEX = "batch.kubernetes.io/job-completion-index";

export async function startFakeCluster(
  play: (index: number, attempt: number, job: Job) => PodPlay = () => ({}),
): Promise<FakeCluster> {
  const faults: Faults = {
    down: false,
    expired: 0,
    quota: undefined,
    drops: [],
    hasAccount: true,
    mutates: () => undefined,
    watchEnds: Number.POSITIVE_INFINITY,
    instead: () => undefined,
    hold: () => undefined,
  };
  const store = new Store(faults, play);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://stub");
    const nth = asked.push(`${request.method} ${url.pathname}`);
    if (faults.down) return void response.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    await faults.hold({ nth, when: "before" });
    const text = Buffer.concat(chunks).toString("utf8");
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    const other = faults.instead(`${request.method} ${request.url}`);
    if (other !== undefined) return void response.writeHead(other.status).end(other.text);
    const isWatch = url.searchParams.get("watch") === "true";
    if (isWatch) return store.watch(url, response);
    const [status, value] = store.handle(request.method ?? "GET", url, body);
    await faults.hold({ nth, when: "after" });
    if (faults.down) return void response.destroy();
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  }
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    config: JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "stub", cluster: { server: url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "me", user: { token: "secret-token" } }],
      contexts: [{ name: "stub", context: { cluster: "stub", user: "me", namespace: NAMESPACE } }],
      "current-context": "stub",
    }),
    faults,
    asked,
    ran: store.ran,
    jobs: store.jobs,
    pods: store.pods,
    maps: store.maps,
    deleteJob: (name) => store.deleteJob(name),
    deletePod: (index) => store.deletePod(index),
    repeatPod: (index) => store.repeatPod(index),
    cutWatches: () => store.cutWatches(),
    admit: (name) =>
      void store.handle("PATCH", new URL(`http://stub/namespaces/team/jobs/${name}`), {
        spec: { suspend: false },
      }),
    retry: () => store.retry(),
    [Symbol.asyncDispose]: async () => {
      store.stop();
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

type Reply = readonly [status: number, value: object];

const status = (code: number, reason: string, message: string): Reply => [
  code,
  { kind: "Status", apiVersion: "v1", status: "Failure", reason, message, code },
];

class Store {
  readonly jobs = new Map<string, Job>();
  readonly pods = new Map<string, Pod>();
  readonly maps = new Map<string, ConfigMap>();
  readonly ran: string[] = [];
  readonly #faults: Faults;
  readonly #play: Parameters<typeof startFakeCluster>[0] & {};
  readonly #watching = new Set<ServerResponse>();
  readonly #watchers = new Set<(type: string, pod: Pod) => void>();
  readonly #controllers = new Map<string, Controller>();
  #version = 100;

  constructor(faults: Faults, play: NonNullable<Parameters<typeof startFakeCluster>[0]>) {
    this.#faults = faults;
    this.#play = play;
  }

  handle(method: string, url: URL, body: unknown): Reply {
    const [, kind = "", name] = /\/namespaces\/team\/([a-z]+)(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
    if (kind === "") return status(404, "NotFound", `namespaces ${JSON.stringify(url.pathname)} not found`);
    switch (`${method} ${kind}`) {
      case "POST jobs":
        return this.#createJob(body as Job, url.searchParams.get("dryRun") === "All");
      case "GET jobs":
        return this.#found(this.jobs, name);
      case "PATCH jobs":
        return this.#patchJob(name ?? "", body as Job);
      case "POST configmaps":
        return this.#createMap(body as ConfigMap);
      case "GET configmaps":
        return this.#found(this.maps, name);
      case "GET serviceaccounts":
        return this.#faults.hasAccount ? [200, {}] : status(404, "NotFound", "no such account");
      case "GET pods":
        return this.#listPods(url);
      case "GET events":
        return [200, { items: this.#events() }];
      default:
        return status(405, "MethodNotAllowed", `${method} ${kind}`);
    }
  }

  #found(all: ReadonlyMap<string, object>, name: string | undefined): Reply {
    const value = all.get(name ?? "");
    return value === undefined ? status(404, "NotFound", `${name} not found`) : [200, value];
  }

  #createJob(job: Job, isDry: boolean): Reply {
    const name = job.metadata?.name ?? "";
    if (this.#faults.quota === "jobs" && !isDry)
      return status(
        403,
        "Forbidden",
        `jobs.batch "${name}" is forbidden: exceeded quota: team, requested: count/jobs.batch=1`,
      );
    if (this.jobs.has(name)) return status(409, "AlreadyExists", `jobs.batch "${name}" already exists`);
    const spec: Record<string, unknown> = { ...job.spec, backoffLimit: 2147483647 };
    for (const field of this.#faults.drops) delete spec[field];
    const kept: Job = {
      ...job,
      metadata: { ...job.metadata, uid: randomUUID() },
      spec: structuredClone(spec) as unknown as Job["spec"] & {},
      status: {},
    };
    this.#faults.mutates(kept);
    if (isDry) return [201, kept];
    this.jobs.set(name, kept);
    this.#begin(name);
    return [201, kept];
  }

  #patchJob(name: string, patch: Job): Reply {
    const job = this.jobs.get(name);
    if (job === undefined) return status(404, "NotFound", `jobs.batch "${name}" not found`);
    const annotations = { ...job.metadata?.annotations, ...patch.metadata?.annotations };
    const changed = { ...job, metadata: { ...job.metadata, annotations } };
    if (patch.spec !== undefined) Object.assign(changed, { spec: { ...job.spec, ...patch.spec } });
    this.jobs.set(name, changed);
    this.#begin(name);
    return [200, changed];
  }

  #createMap(map: ConfigMap): Reply {
    const name = map.metadata?.name ?? "";
    if (this.#faults.quota === "configmaps")
      return status(
        403,
        "Forbidden",
        `configmaps "${name}" is forbidden: exceeded quota: team, requested: count/configmaps=1`,
      );
    if (this.maps.has(name)) return status(409, "AlreadyExists", `configmaps "${name}" already exists`);
    if (Buffer.byteLength(JSON.stringify(map.data)) > 2 ** 20)
      return status(413, "RequestEntityTooLarge", "Request entity too large: limit is 1048576");
    this.maps.set(name, map);
    return [201, map];
  }

  /** Lists pods in pages, as requested. */
  #listPods(url: URL): Reply {
    const limit = Number(url.searchParams.get("limit") ?? 500);
    const from = Number(url.searchParams.get("continue") ?? 0);
    const index = /job-completion-index=(\d+)/.exec(url.searchParams.get("labelSelector") ?? "")?.[1];
    const those = [...this.pods.values()].filter(
      ({ metadata }) => index === undefined || metadata?.labels?.[INDEX] === index,
    );
    const all = those.toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
    const next = from + limit < all.length ? { continue: String(from + limit) } : {};
    return [
      200,
      {
        kind: "PodList",
        metadata: { resourceVersion: String(this.#version), ...next },
        items: all.slice(from, from + limit),
      },
    ];
  }

  #events(): readonly object[] {
    return this.#faults.quota === "pods"
      ? [
          {
            type: "Warning",
            reason: "FailedCreate",
            message: 'Error creating: pods "x" is forbidden: exceeded quota: team, requested: pods=1',
          },
        ]
      : [];
  }

  watch(url: URL, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (this.#faults.expired > 0) {
      this.#faults.expired -= 1;
      const [, object] = status(410, "Expired", "too old resource version");
      response.end(`${JSON.stringify({ type: "ERROR", object })}\n`);
      return;
    }
    let left = this.#faults.watchEnds;
    const tell = (type: string, pod: Pod): void => {
      if (response.writableEnded) return;
      response.write(`${JSON.stringify({ type, object: pod })}\n`);
      left -= 1;
      if (left <= 0) response.end();
    };
    // Sends the changes since the list at which the watch begins.
    const since = Number(url.searchParams.get("resourceVersion"));
    for (const pod of this.pods.values())
      if (Number(pod.metadata?.resourceVersion) > since) tell("MODIFIED", pod);
    this.#watchers.add(tell);
    this.#watching.add(response);
    response.once("close", () => {
      this.#watchers.delete(tell);
      this.#watching.delete(response);
    });
  }

  cutWatches(): void {
    for (const response of this.#watching) response.destroy();
  }

  #begin(name: string): void {
    if (this.#controllers.has(name)) {
      this.#controllers.get(name)?.go();
      return;
    }
    const controller = new Controller({
      job: () => this.jobs.get(name),
      put: (job) => void this.jobs.set(name, job),
      pod: (pod, type) => this.#putPod(pod, type),
      ran: (what) => void this.ran.push(what),
      play: this.#play,
      mayCreate: () => this.#faults.quota !== "pods",
    });
    this.#controllers.set(name, controller);
    controller.go();
  }

  #putPod(pod: Pod, type: string): void {
    this.#version += 1;
    const kept = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(this.#version) } };
    if (type === "DELETED") this.pods.delete(pod.metadata?.name ?? "");
    else this.pods.set(pod.metadata?.name ?? "", kept);
    for (const tell of this.#watchers) tell(type, kept);
  }

  deleteJob(name: string): void {
    this.jobs.delete(name);
    this.#controllers.get(name)?.stop();
    this.#controllers.delete(name);
  }

  deletePod(index: number): void {
    for (const pod of this.pods.values())
      if (pod.metadata?.annotations?.["batch.kubernetes.io/job-completion-index"] === String(index))
        this.#putPod(pod, "DELETED");
  }

  repeatPod(index: number): void {
    const pod = [...this.pods.values()].findLast((each) => each.metadata?.labels?.[INDEX] === String(index));
    if (pod === undefined) throw new Error(`no pod of ${index}`);
    const metadata = { ...pod.metadata, name: `${pod.metadata?.name}z` };
    this.#putPod(
      { ...pod, metadata, status: { phase: "Running", startTime: "2026-01-01T00:00:00Z" } },
      "ADDED",
    );
  }

  retry(): void {
    for (const controller of this.#controllers.values()) controller.go();
  }

  stop(): void {
    for (const controller of this.#controllers.values()) controller.stop();
  }
}

interface ControllerWorld {
  readonly job: () => Job | undefined;
  readonly put: (job: Job) => void;
  readonly pod: (pod: Pod, type: string) => void;
  readonly ran: (what: string) => void;
  readonly play: (index: number, attempt: number, job: Job) => PodPlay;
  readonly mayCreate: () => boolean;
}

/** Runs the indexes of one Job in order, with its parallelism. */
class Controller {
  readonly #world: ControllerWorld;
  readonly #completed = new Set<number>();
  readonly #failed = new Set<number>();
  readonly #failures = new Map<number, number>();
  readonly #attempts = new Map<number, number>();
  readonly #active = new Map<number, Pod>();
  /** Stops the controller: its pods were ended with their Job. */
  #times = 0;
  #stopped = false;

  constructor(world: ControllerWorld) {
    this.#world = world;
  }

  stop(): void {
    this.#stopped = true;
  }

  go(): void {
    const job = this.#world.job();
    if (job?.spec === undefined || this.#stopped) return;
    if (job.spec.suspend === true) return this.#endAll();
    if (!this.#world.mayCreate()) return;
    const { completions = 0, parallelism = 1 } = job.spec;
    for (let index = 0; index < completions && this.#active.size < parallelism; index += 1) {
      if (this.#completed.has(index) || this.#failed.has(index) || this.#active.has(index)) continue;
      void this.#run(index, job);
    }
    if (this.#completed.size + this.#failed.size === completions && this.#active.size === 0) this.#end(job);
  }

  async #run(index: number, job: Job): Promise<void> {
    const attempt = this.#attempts.get(index) ?? 0;
    this.#attempts.set(index, attempt + 1);
    const play = this.#world.play(index, attempt, job);
    const pod = podOf(job, { index, attempt, failures: this.#failures.get(index) ?? 0 });
    play.admitted?.(pod);
    this.#active.set(index, pod);
    const times = this.#times;
    this.#world.pod(waiting(pod, play), "ADDED");
    await (play.from ?? new Promise(setImmediate));
    if (play.waits !== undefined || times !== this.#times) return;
    this.#world.ran(`${index}/${attempt}`);
    this.#world.pod({ ...pod, status: { ...pod.status, phase: "Running" } }, "MODIFIED");
    await (play.until ?? new Promise(setImmediate));
    if (this.#stopped || times !== this.#times) return;
    const ended = endedPod(pod, play);
    this.#settle(index, ended, job);
    this.#active.delete(index);
    this.#put();
    this.#world.pod(ended, "MODIFIED");
    this.go();
  }

  #endAll(): void {
    this.#times += 1;
    for (const pod of this.#active.values()) this.#world.pod(pod, "DELETED");
    this.#active.clear();
  }

  #settle(index: number, pod: Pod, { spec }: Job): void {
    if (pod.status?.phase === "Succeeded") return void this.#completed.add(index);
    const action = actionOf(pod, spec?.podFailurePolicy?.rules ?? []);
    if (action === "Ignore") return;
    const failures = (this.#failures.get(index) ?? 0) + 1;
    this.#failures.set(index, failures);
    if (action === "FailIndex" || failures > (spec?.backoffLimitPerIndex ?? 0)) this.#failed.add(index);
  }

  #put(more: object = {}): void {
    const job = this.#world.job();
    if (job === undefined) return;
    const completedIndexes = [...this.#completed].toSorted((a, b) => a - b).join(",");
    const failedIndexes = [...this.#failed].toSorted((a, b) => a - b).join(",");
    this.#world.put({ ...job, status: { ...job.status, completedIndexes, failedIndexes, ...more } });
  }

  #end({ spec }: Job): void {
    const isWhole = this.#completed.size === spec?.completions;
    const condition = isWhole
      ? { type: "Complete", status: "True" }
      : { type: "Failed", status: "True", reason: "FailedIndexes", message: "Job has failed indexes" };
    this.#put({ conditions: [condition] });
  }
}

interface PodAttempt {
  readonly index: number;
  readonly attempt: number;
  readonly failures: number;
}

/** The name does not reveal the order: as with a real controller, it ends with random characters. */
const podOf = (job: Job, { index, attempt, failures }: PodAttempt): Pod => ({
  metadata: {
    name: `${job.metadata?.name}-${index}-${createHash("sha256").update(`${index}/${attempt}`).digest("hex").slice(0, 5)}`,
    labels: { ...job.spec?.template.metadata?.labels, [INDEX]: String(index) },
    ownerReferences: [
      {
        apiVersion: "batch/v1",
        kind: "Job",
        name: job.metadata?.name ?? "",
        uid: job.metadata?.uid ?? "",
        controller: true,
      },
    ],
    annotations: {
      "batch.kubernetes.io/job-completion-index": String(index),
      "batch.kubernetes.io/job-index-failure-count": String(failures),
      ...(attempt > failures
        ? { "batch.kubernetes.io/job-index-ignored-failure-count": String(attempt - failures) }
        : {}),
    },
  },
  spec: madeSpec(job, index),
  status: { phase: "Pending", startTime: "2026-01-01T00:00:00Z" },
});

/** The specification as 1.33 was observed to create it: API defaults, the controller's index, and the node. */
function madeSpec(job: Job, index: number): Pod["spec"] & {} {
  const spec = structuredClone(job.spec?.template.spec) ?? { containers: [] };
  const fieldPath = "metadata.labels['batch.kubernetes.io/job-completion-index']";
  const told = { name: "JOB_COMPLETION_INDEX", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } };
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    container.env = [...(container.env ?? []), told];
    container.imagePullPolicy ??= "IfNotPresent";
    container.terminationMessagePath ??= "/dev/termination-log";
  }
  for (const { projected } of spec.volumes ?? []) if (projected) projected.defaultMode ??= 420;
  return {
    ...spec,
    hostname: `${job.metadata?.name}-${index}`,
    nodeName: "node",
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    serviceAccount: spec.serviceAccountName ?? "default",
    tolerations: [{ key: "node.kubernetes.io/not-ready", operator: "Exists", tolerationSeconds: 300 }],
    priority: 0,
    enableServiceLinks: false,
    preemptionPolicy: "PreemptLowerPriority",
  };
}

const waiting = (pod: Pod, { waits }: PodPlay): Pod =>
  waits === undefined
    ? pod
    : {
        ...pod,
        status: {
          ...pod.status,
          containerStatuses: [
            {
              name: "loop",
              image: "",
              imageID: "",
              ready: false,
              restartCount: 0,
              state: { waiting: waits },
            },
          ],
        },
      };

function endedPod(
  pod: Pod,
  { code = 0, container = "loop", reason, message, podReason, disrupted }: PodPlay,
): Pod {
  const terminated = {
    exitCode: code,
    reason: reason ?? (code === 0 ? "Completed" : "Error"),
    ...(message === undefined ? {} : { message }),
    finishedAt: "2026-01-01T00:00:42Z",
  };
  const one = { image: "", imageID: "", ready: false, restartCount: 0 };
  const cloned = { ...one, name: "clone", state: { terminated: { exitCode: 0, reason: "Completed" } } };
  const statuses =
    container === "clone"
      ? { initContainerStatuses: [{ ...one, name: "clone", state: { terminated } }] }
      : {
          initContainerStatuses: [cloned],
          containerStatuses: [{ ...one, name: "loop", state: { terminated } }],
        };
  return {
    ...pod,
    status: {
      ...pod.status,
      ...statuses,
      phase: code === 0 ? "Succeeded" : "Failed",
      ...(podReason === undefined ? {} : { reason: podReason }),
      ...(disrupted === true ? { conditions: [{ type: "DisruptionTarget", status: "True" }] } : {}),
    },
  };
}

type Rule = NonNullable<NonNullable<Job["spec"]>["podFailurePolicy"]>["rules"][number];

/** The action of the first matching rule, as the controller reads them; `Count` if none matches. */
function actionOf({ status: state }: Pod, rules: readonly Rule[]): string {
  const conditions = state?.conditions ?? [];
  const containers = [...(state?.initContainerStatuses ?? []), ...(state?.containerStatuses ?? [])];
  for (const { action, onExitCodes, onPodConditions } of rules) {
    const isCondition = onPodConditions?.some(({ type, status: holds }) =>
      conditions.some((each) => each.type === type && each.status === holds),
    );
    const isCode =
      onExitCodes !== undefined &&
      containers.some(({ name, state: at }) => {
        const code = at?.terminated?.exitCode ?? 0;
        if (code === 0 || (onExitCodes.containerName !== undefined && onExitCodes.containerName !== name))
          return false;
        return (onExitCodes.operator === "In") === onExitCodes.values.includes(code);
      });
    if (isCondition === true || isCode) return action;
  }
  return "Count";
}

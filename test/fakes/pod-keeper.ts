import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import type { Duplex, Readable } from "node:stream";
import type { Container, ContainerCreateOptions, MountSettings } from "dockerode";
import { engine } from "../fixtures/engine-api.ts";

interface Metadata {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly (object & { readonly uid?: string })[];
  uid?: string;
  resourceVersion?: string;
}

export interface WireContainer {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly workingDir: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly securityContext: {
    readonly readOnlyRootFilesystem: boolean;
    readonly capabilities: { readonly drop: string[] };
  };
  readonly resources: { readonly limits: { readonly memory: string } };
}

interface PodSpec {
  readonly hostname: string;
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number };
  readonly volumes: readonly {
    readonly name: string;
    readonly emptyDir: { readonly medium?: string; readonly sizeLimit: string };
  }[];
  readonly containers: WireContainer[];
  readonly initContainers?: WireContainer[];
  [more: string]: unknown;
}

interface PodStatus {
  phase: string;
  startTime?: string;
  hostIP?: string;
  reason?: string;
  containerStatuses?: readonly object[];
  initContainerStatuses?: readonly object[];
}

/** The fields of a pod that are read here; the others pass through unchanged. */
export interface Pod {
  readonly metadata: Metadata;
  readonly spec: PodSpec;
  status: PodStatus;
}

export interface Policy {
  readonly metadata: Metadata;
  readonly spec: {
    readonly podSelector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly egress?: readonly unknown[];
  };
}

type Item = Pod | Policy;

/** `none`: only a loopback; `enforced`: policies hold; `open`: nothing enforces policies. */
export type PodNetwork = "none" | "enforced" | "open";
type Resource = "pods" | "networkpolicies";

interface PodEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Pod;
}

/** Defaults that the real API server (1.20) sets. */
const POD_DEFAULTS = {
  schedulerName: "default-scheduler",
  serviceAccountName: "default",
  serviceAccount: "default",
  nodeName: "node",
  priority: 0,
  preemptionPolicy: "PreemptLowerPriority",
  tolerations: [
    { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    {
      key: "node.kubernetes.io/unreachable",
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 300,
    },
  ],
};
const CONTAINER_DEFAULTS = {
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
};
const LABEL = "dev.harness.test";

/**
 * As a kubelet creates it: writable for the pod's user, while an engine's tmpfs takes the mode of the image's folder
 * below it.
 */
const inMemory = (target: string, size: string): MountSettings => ({
  Type: "volume",
  Target: target,
  Source: "",
  VolumeOptions: {
    NoCopy: true,
    Labels: { [LABEL]: "1" },
    DriverConfig: {
      Name: "local",
      Options: { type: "tmpfs", device: "tmpfs", o: `mode=1777,size=${size}` },
    },
  },
});

/** Drops fields without content, as the API does. */
function dropNothings(fields: Record<string, unknown>): void {
  for (const name of ["hostNetwork", "hostPID", "hostIPC", "tty"])
    if (fields[name] === false) delete fields[name];
  if (JSON.stringify(fields["nodeSelector"]) === "{}") delete fields["nodeSelector"];
}

/** The objects of a namespace, and the containers that act as its pods. */
export class PodKeeper implements AsyncDisposable {
  readonly #objects = { pods: new Map<string, Pod>(), networkpolicies: new Map<string, Policy>() };
  readonly #containers = new Map<string, Container>();
  readonly #events: { readonly version: number; readonly event: PodEvent }[] = [];
  readonly #pulled = new Set<string>();
  readonly #listeners = new Set<(event: PodEvent) => void>();
  readonly #network: PodNetwork;
  readonly #scratch: string;
  readonly #bridge: { readonly name: string; readonly gateway: string } | undefined;
  #version = 1;

  private constructor(network: PodNetwork, scratch: string, bridge?: { name: string; gateway: string }) {
    this.#network = network;
    this.#scratch = scratch;
    this.#bridge = bridge;
  }

  static async open(network: PodNetwork, scratch: string): Promise<PodKeeper> {
    if (network === "none") return new PodKeeper(network, scratch);
    const name = `harness-test-${randomUUID().slice(0, 8)}`;
    const made = await engine.api.createNetwork({ Name: name, Internal: true, Labels: { [LABEL]: "1" } });
    const { IPAM } = (await made.inspect()) as { IPAM: { Config: { Gateway: string }[] } };
    return new PodKeeper(network, scratch, { name, gateway: IPAM.Config[0]?.Gateway ?? "" });
  }

  all(resource: Resource): readonly Item[] {
    return [...this.#objects[resource].values()];
  }

  one(resource: Resource, name: string): Item | undefined {
    return this.#objects[resource].get(name);
  }

  async addPolicy(policy: Policy): Promise<Policy> {
    this.#objects.networkpolicies.set(policy.metadata.name, policy);
    await this.#enforce();
    return policy;
  }

  addPod(pod: Pod): Pod {
    pod.metadata.uid ??= randomUUID();
    this.#objects.pods.set(pod.metadata.name, pod);
    const { spec } = pod;
    for (const [key, value] of Object.entries(POD_DEFAULTS)) spec[key] ??= value;
    for (const container of [...spec.containers, ...(spec.initContainers ?? [])])
      Object.assign(container, { ...CONTAINER_DEFAULTS, ...container });
    for (const container of spec.containers) dropNothings(container as unknown as Record<string, unknown>);
    dropNothings(spec);
    pod.status = { phase: "Pending" };
    this.#tell("ADDED", pod);
    const answer = structuredClone(pod);
    if (this.noRoom !== undefined) {
      this.place(pod.metadata.name, this.noRoom);
      return answer;
    }
    void this.#run(pod).catch((thrown: unknown) => this.#fail(pod, String(thrown)));
    return answer;
  }

  /** The scheduler's message while no node has room; a changed message is reported again for a waiting pod. */
  noRoom: string | undefined;

  place(name: string, message: string | undefined): void {
    const pod = this.#objects.pods.get(name);
    if (pod === undefined) return;
    const status = message === undefined ? "True" : "False";
    const why = message === undefined ? {} : { reason: "Unschedulable", message };
    Object.assign(pod.status, { conditions: [{ type: "PodScheduled", status, ...why }] });
    this.#tell("MODIFIED", pod);
    if (message === undefined)
      void this.#run(pod).catch((thrown: unknown) => this.#fail(pod, String(thrown)));
  }

  async remove(resource: Resource, name: string): Promise<Item | undefined> {
    const found = this.one(resource, name);
    const pod = this.#objects.pods.get(name);
    this.#objects[resource].delete(name);
    if (resource === "networkpolicies") await this.#enforce();
    else if (pod !== undefined) {
      for (const [key, container] of this.#containers)
        if (key.startsWith(`${name}/`))
          await container.remove({ force: true, v: true }).catch(() => undefined);
      this.#tell("DELETED", pod);
      await this.collect(pod.metadata.uid);
    }
    return found;
  }

  /** Removes policies with their owner, as the cluster's garbage collector does. */
  async collect(uid: string | undefined): Promise<void> {
    for (const [name, { metadata }] of this.#objects.networkpolicies)
      if (metadata.ownerReferences?.some((owner) => owner.uid === uid) === true)
        this.#objects.networkpolicies.delete(name);
    await this.#enforce();
  }

  async evict(name: string, why: { readonly reason: string; readonly message: string }): Promise<void> {
    const pod = this.#objects.pods.get(name);
    if (pod === undefined) return;
    Object.assign(pod.status, { phase: "Failed", ...why });
    this.#tell("MODIFIED", pod);
    await this.#containers.get(`${name}/box`)?.kill();
  }

  /** The command lines of the processes in the pod's box. */
  async processes(name: string): Promise<readonly string[]> {
    const found = (await this.#containers.get(`${name}/box`)?.top({ ps_args: "-eo pid,args" })) as
      | { readonly Processes: readonly (readonly string[])[] }
      | undefined;
    return (found?.Processes ?? []).map((words) => words.slice(1).join(" "));
  }

  /** Runs a script as `kubectl exec` does, to its end. */
  async intrude(name: string, script: string): Promise<void> {
    const container = this.#containers.get(`${name}/box`);
    if (container === undefined) throw new Error(`no pod ${name}`);
    const exec = await container.exec({ Cmd: ["sh", "-c", script], AttachStdout: true });
    const stream = await exec.start({});
    await once(stream.resume(), "close");
  }

  until(name: string, is: (pod: Pod) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const now = this.#objects.pods.get(name);
      if (now === undefined) return reject(new Error(`no pod ${name}`));
      if (is(now)) return resolve();
      const stop = this.follow(this.#version, ({ object }) => {
        if (object.metadata.name !== name || !is(object)) return;
        stop();
        resolve();
      });
    });
  }

  follow(since: number, listener: (event: PodEvent) => void): () => void {
    for (const { version, event } of this.#events) if (version > since) listener(event);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async attach(pod: string, container: string): Promise<Duplex> {
    const found = this.#containers.get(`${pod}/${container}`);
    if (found === undefined) throw new Error(`container ${container} is not valid for pod ${pod}`);
    const streams = { stream: true, hijack: true, stdin: true, stdout: true, stderr: true };
    return (await found.attach(streams)) as unknown as Duplex;
  }

  #tell(type: PodEvent["type"], item: Pod): void {
    this.#version += 1;
    item.metadata.resourceVersion = String(this.#version);
    const event = structuredClone({ type, object: item });
    this.#events.push({ version: this.#version, event });
    for (const listener of this.#listeners) listener(event);
  }

  #fail(item: Pod, message: string): void {
    if (!this.#objects.pods.has(item.metadata.name)) return;
    const waiting = { reason: "ErrImagePull", message };
    item.status.containerStatuses = [{ name: "box", state: { waiting }, ready: false }];
    this.#tell("MODIFIED", item);
  }

  async #run(item: Pod): Promise<void> {
    const { name } = item.metadata;
    item.status.startTime = new Date().toISOString();
    item.status.hostIP = this.#bridge?.gateway ?? "127.0.0.1";
    for (const kind of ["initContainers", "containers"] as const) {
      const statuses = kind === "containers" ? "containerStatuses" : "initContainerStatuses";
      for (const wanted of item.spec[kind] ?? []) {
        if (wanted.image.includes("@")) await this.#pull(wanted.image);
        const made = await engine.api.createContainer(
          this.#optionsOf(item, wanted, await this.#volumes(item)),
        );
        this.#containers.set(`${name}/${wanted.name}`, made);
        if (this.#objects.pods.get(name) !== item) return void (await made.remove({ force: true, v: true }));
        await made.start();
        await this.#enforce();
        const state = { running: { startedAt: new Date().toISOString() } };
        item.status[statuses] = [{ name: wanted.name, state, ready: kind === "containers" }];
        if (kind === "containers") item.status.phase = "Running";
        this.#tell("MODIFIED", item);
        const { StatusCode: exitCode } = (await made.wait()) as { StatusCode: number };
        if (this.#objects.pods.get(name) !== item || item.status.reason !== undefined) return;
        const reason = exitCode === 0 ? "Completed" : "Error";
        item.status[statuses] = [{ name: wanted.name, state: { terminated: { exitCode, reason } } }];
        item.status.phase = kind === "initContainers" ? "Pending" : exitCode === 0 ? "Succeeded" : "Failed";
        this.#tell("MODIFIED", item);
      }
    }
  }

  /** Pulls an image, as a node does for a digest. */
  async #pull(image: string): Promise<void> {
    if (this.#pulled.has(image)) return;
    const told = (await engine.api.pull(image)) as Readable;
    for await (const _ of told);
    this.#pulled.add(image);
  }

  /** Folders of the node, as a kubelet creates them: writable for the pod's user. */
  async #volumes(item: Pod): Promise<ReadonlyMap<string, string>> {
    const folders = new Map<string, string>();
    for (const { name, emptyDir } of item.spec.volumes) {
      if (emptyDir.medium === "Memory") continue;
      const folder = path.join(this.#scratch, item.metadata.name, name);
      await mkdir(folder, { recursive: true });
      await chmod(folder, 0o777);
      folders.set(name, folder);
    }
    return folders;
  }

  #optionsOf(item: Pod, wanted: WireContainer, folders: ReadonlyMap<string, string>): ContainerCreateOptions {
    const { securityContext: user, volumes } = item.spec;
    const service = { KUBERNETES_SERVICE_HOST: this.#bridge?.gateway ?? "", KUBERNETES_SERVICE_PORT: "443" };
    const expanded = (word: string): string =>
      word.replace(/\$\((\w+)\)/g, (all, name: keyof typeof service) => service[name] ?? all);
    const memory: MountSettings[] = [];
    const binds: string[] = [];
    for (const { name, mountPath, readOnly } of wanted.volumeMounts) {
      const folder = folders.get(name);
      const size = volumes.find((one) => one.name === name)?.emptyDir.sizeLimit;
      if (folder === undefined) memory.push(inMemory(mountPath, size ?? "0"));
      else binds.push(`${folder}:${mountPath}${readOnly === true ? ":ro" : ""}`);
    }
    return {
      Image: wanted.image,
      Entrypoint: wanted.command.map(expanded),
      Cmd: [],
      User: `${user.runAsUser}:${user.runAsGroup}`,
      WorkingDir: wanted.workingDir,
      Hostname: item.spec.hostname,
      Labels: { [LABEL]: "1" },
      OpenStdin: wanted.stdin,
      StdinOnce: wanted.stdinOnce,
      AttachStdin: true,
      HostConfig: {
        // A container that starts without a network cannot get one later.
        NetworkMode: this.#bridge?.name ?? "none",
        ReadonlyRootfs: wanted.securityContext.readOnlyRootFilesystem,
        CapDrop: wanted.securityContext.capabilities.drop,
        SecurityOpt: ["no-new-privileges"],
        Memory: Number(wanted.resources.limits.memory),
        MemorySwap: Number(wanted.resources.limits.memory),
        Mounts: memory,
        Binds: binds,
      },
    };
  }

  /** Policies select pods by labels and only ever add rights. */
  #isShut(pod: Pod): boolean {
    if (this.#network === "none") return true;
    if (this.#network === "open") return false;
    const own = [...this.#objects.networkpolicies.values()].filter(({ spec }) =>
      Object.entries(spec.podSelector.matchLabels ?? {}).every(
        ([key, is]) => pod.metadata.labels?.[key] === is,
      ),
    );
    return own.length > 0 && own.every(({ spec }) => (spec.egress ?? []).length === 0);
  }

  /** Acts as a policy engine: a shut pod is disconnected. */
  async #enforce(): Promise<void> {
    if (this.#network !== "enforced" || this.#bridge === undefined) return;
    const bridge = engine.api.getNetwork(this.#bridge.name);
    for (const pod of this.#objects.pods.values())
      for (const [key, container] of this.#containers) {
        if (!key.startsWith(`${pod.metadata.name}/`)) continue;
        const which = { Container: container.id };
        await (
          this.#isShut(pod) ? bridge.disconnect({ ...which, Force: true }) : bridge.connect(which)
        ).catch(() => undefined);
      }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#objects.pods.keys()) await this.remove("pods", name);
    for (const container of this.#containers.values())
      await container.remove({ force: true, v: true }).catch(() => undefined);
    for (const image of this.#pulled)
      await engine.api
        .getImage(image)
        .remove({ force: true })
        .catch(() => undefined);
    if (this.#bridge !== undefined)
      await engine.api
        .getNetwork(this.#bridge.name)
        .remove()
        .catch(() => undefined);
  }
}

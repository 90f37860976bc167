import { randomUUID } from "node:crypto";
import type { Pod, PodKeeper } from "./pod-keeper.ts";

interface Meta {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Sandbox {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Meta & {
    readonly name: string;
    readonly namespace: string;
    uid?: string;
    annotations?: Record<string, string>;
  };
  readonly spec: {
    readonly podTemplate: { readonly metadata?: Meta; readonly spec: Pod["spec"] };
    readonly service?: boolean;
    readonly shutdownTime?: string;
    readonly shutdownPolicy?: string;
    operatingMode?: string;
  };
  status?: { readonly conditions: readonly object[] };
}

export const SANDBOX_API = "/apis/agents.x-k8s.io/v1beta1";

/** Fields of a specification in the published schema of v1beta1 (0.5.6); a server drops any other. */
const FIELDS: ReadonlySet<string> = new Set([
  "podTemplate",
  "volumeClaimTemplates",
  "service",
  "shutdownTime",
  "shutdownPolicy",
  "operatingMode",
]);

/** Why the published schema refuses the object or would drop a part of it. */
export function unlikeSandbox({ apiVersion, kind, spec }: Sandbox): readonly string[] {
  const { podTemplate, service, shutdownTime = "", shutdownPolicy } = spec;
  return [
    ...(apiVersion === "agents.x-k8s.io/v1beta1" && kind === "Sandbox" ? [] : ["it is no Sandbox"]),
    ...Object.keys(spec).flatMap((name) => (FIELDS.has(name) ? [] : [`spec.${name}: no such field`])),
    ...Object.keys(podTemplate).flatMap((name) =>
      name === "spec" || name === "metadata" ? [] : [`spec.podTemplate.${name}: no such field`],
    ),
    ...Object.keys(podTemplate.metadata ?? {}).flatMap((name) =>
      name === "labels" || name === "annotations" ? [] : [`spec.podTemplate.metadata.${name}: no such field`],
    ),
    ...(service === undefined || typeof service === "boolean" ? [] : ["spec.service: no boolean"]),
    ...(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(shutdownTime) ? [] : ["spec.shutdownTime: no date-time"]),
    ...(["Delete", "Retain", undefined].includes(shutdownPolicy)
      ? []
      : ["spec.shutdownPolicy: no such word"]),
  ];
}

/** FNV-1a, as the controller uses it. */
function nameHash(name: string): string {
  let hash = 0x81_1c_9d_c5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01_00_01_93) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

/** The controller's status of a Sandbox: besides readiness, that nobody asked to suspend it. */
const statusOf = (...conditions: readonly object[]): NonNullable<Sandbox["status"]> => ({
  conditions: [
    { type: "Suspended", status: "False", reason: "NotSuspended", message: "Sandbox is not suspended" },
    ...conditions,
  ],
});

const names = (kept: object): string => Object.keys(kept).toSorted().join(",");

/**
 * The controller of kubernetes-sigs/agent-sandbox 0.5.6, as observed with a running Sandbox
 * (sandbox-resource.cluster.test.ts): its pod, what the pod has beyond the template, its status, and its message if
 * there can be no pod. It creates a pod only once its Sandbox has been read, never at once.
 */
export class SandboxController {
  readonly #objects = new Map<string, Sandbox>();
  readonly #keeper: PodKeeper;
  /** How admission changes every pod before it is created. */
  readonly #admit: (pod: Pod) => void;
  /** The API's refusal to create the controller's pods. */
  refusal: string | undefined;
  /** The controller is not running. */
  idle = false;

  constructor(keeper: PodKeeper, admit: (pod: Pod) => void) {
    this.#keeper = keeper;
    this.#admit = admit;
    keeper.follow(Number.MAX_SAFE_INTEGER, ({ type, object }) => {
      const sandbox = this.#objects.get(object.metadata.name);
      if (type === "DELETED" && sandbox !== undefined) this.#reconcile(sandbox);
    });
  }

  all(): readonly Sandbox[] {
    return [...this.#objects.values()];
  }

  make(sandbox: Sandbox): Sandbox {
    sandbox.metadata.uid = randomUUID();
    sandbox.spec.operatingMode ??= "Running";
    this.#objects.set(sandbox.metadata.name, sandbox);
    return sandbox;
  }

  one(name: string): Sandbox | undefined {
    return this.#objects.get(name);
  }

  /** Returns the Sandbox as it was before it got its pod. */
  looked(name: string): Sandbox | undefined {
    const sandbox = structuredClone(this.#objects.get(name));
    if (sandbox !== undefined) this.#reconcile(sandbox);
    return sandbox;
  }

  /** Removes a Sandbox and its pod, as the cluster's garbage collector does. */
  async remove(name: string): Promise<Sandbox | undefined> {
    const found = this.#objects.get(name);
    this.#objects.delete(name);
    if (found !== undefined) await this.#keeper.remove("pods", name);
    if (found !== undefined) await this.#keeper.collect(found.metadata.uid);
    return found;
  }

  #reconcile({ metadata: { name, namespace, uid = "" }, spec: { podTemplate } }: Sandbox): void {
    const own = this.#objects.get(name);
    if (this.idle || own === undefined || this.#keeper.one("pods", name) !== undefined) return;
    if (this.refusal !== undefined) {
      const message = `Error seen: ${this.refusal}`;
      own.status = statusOf(
        {
          type: "PodScheduled",
          status: "Unknown",
          reason: "PodSchedulingUnknown",
          message: "Pod state is unknown",
        },
        { type: "Ready", status: "False", reason: "ReconcilerError", message },
      );
      return;
    }
    const { labels = {}, annotations = {} } = podTemplate.metadata ?? {};
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace,
        labels: { ...labels, "agents.x-k8s.io/sandbox-name-hash": nameHash(name) },
        annotations: {
          ...annotations,
          "agents.x-k8s.io/propagated-labels": names(labels),
          "agents.x-k8s.io/propagated-annotations": names(annotations),
        },
        ownerReferences: [
          {
            apiVersion: "agents.x-k8s.io/v1beta1",
            kind: "Sandbox",
            name,
            uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: structuredClone(podTemplate.spec),
      status: { phase: "Pending" },
    };
    this.#admit(pod);
    this.#keeper.addPod(pod);
    own.metadata.annotations = { ...own.metadata.annotations, "agents.x-k8s.io/pod-name": name };
    const message = "Pod exists with phase: Pending";
    own.status = statusOf({ type: "Ready", status: "False", reason: "DependenciesNotReady", message });
  }
}

import { randomBytes, randomUUID } from "node:crypto";
import type { Pod, PodKeeper } from "./pod-keeper.ts";

export const POOL_API = "/apis/extensions.agents.x-k8s.io/v1beta1";

interface Meta {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  uid?: string;
}

export interface Claim {
  readonly metadata: Meta;
  readonly spec: {
    readonly warmPoolRef: { readonly name: string };
    readonly lifecycle?: { readonly shutdownTime?: string; readonly shutdownPolicy?: string };
    readonly additionalPodMetadata?: {
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    };
  };
  status?: object;
}

interface Objects {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly replicas?: number;
    readonly podTemplate?: { readonly spec: Pod["spec"] };
  };
}

/**
 * The pool controllers of kubernetes-sigs/agent-sandbox 0.5.6, as observed (warm-pool.cluster.test.ts): what waiting
 * pods have beyond the template, what a pod has once it is given, and that it is deleted with its claim. One pool,
 * filled once.
 */
export class WarmPool {
  readonly name: string;
  readonly #keeper: PodKeeper;
  readonly #claims = new Map<string, Claim>();
  readonly #given = new Map<string, string>();
  readonly #waiting: string[] = [];

  constructor(keeper: PodKeeper, objects: readonly object[]) {
    const [template, pool] = objects as readonly [Objects, Objects];
    this.#keeper = keeper;
    this.name = pool.metadata.name;
    for (let nth = 0; nth < (pool.spec.replicas ?? 1); nth += 1) {
      const name = `${this.name}-${randomBytes(3).toString("hex")}`;
      const owner = { apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", name, uid: randomUUID() };
      keeper.addPod({
        metadata: {
          name,
          namespace: pool.metadata.namespace,
          labels: {
            "agents.x-k8s.io/created-by": "controller",
            "agents.x-k8s.io/sandbox-name-hash": "02f27a7d",
            "agents.x-k8s.io/sandbox-template-ref-hash": "514c98f2",
            "agents.x-k8s.io/warm-pool-sandbox": "514c98f2",
          },
          annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" },
          ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
        },
        spec: structuredClone(template.spec.podTemplate?.spec) as Pod["spec"],
        status: { phase: "Pending" },
      } as unknown as Pod);
      this.#waiting.push(name);
    }
  }

  /** Resolves once all waiting pods run. */
  async ready(): Promise<readonly string[]> {
    for (const name of this.#waiting)
      await this.#keeper.until(name, ({ status }) => status.phase === "Running");
    return [...this.#waiting];
  }

  get status(): object {
    return { readyReplicas: this.#waiting.length };
  }

  all(): readonly Claim[] {
    return [...this.#claims.values()];
  }

  make(claim: Claim): Claim {
    claim.metadata.uid = randomUUID();
    this.#claims.set(claim.metadata.name, claim);
    return claim;
  }

  /** Returns the claim as it was before it got a pod. */
  looked(name: string): Claim | undefined {
    const claim = structuredClone(this.#claims.get(name));
    if (claim !== undefined) this.#give(name);
    return claim;
  }

  #give(name: string): void {
    const claim = this.#claims.get(name);
    if (claim === undefined || claim.status !== undefined) return;
    const { labels = {}, annotations = {} } = claim.spec.additionalPodMetadata ?? {};
    const strange = Object.keys(labels).find((key) => !key.startsWith("sandbox.users.io/"));
    if (strange !== undefined) {
      const message = `invalid additionalPodMetadata: failed to validate label "${strange}": label domain is not in the allowlist`;
      claim.status = {
        conditions: [{ type: "Ready", status: "False", reason: "InvalidMetadata", message }],
      };
      return;
    }
    const pod = this.#waiting.shift();
    claim.status = { conditions: [], sandbox: { name: pod ?? name, podIPs: ["10.0.0.9"] } };
    const item = pod === undefined ? undefined : (this.#keeper.one("pods", pod) as Pod | undefined);
    if (pod === undefined || item === undefined) return;
    this.#given.set(name, pod);
    const kept = item.metadata as { labels?: Record<string, string>; annotations?: Record<string, string> };
    const hashes = Object.entries(kept.labels ?? {}).filter(([key]) => key.endsWith("-hash"));
    kept.labels = { ...Object.fromEntries(hashes), ...labels };
    kept.annotations = { ...annotations };
  }

  async remove(name: string): Promise<Claim | undefined> {
    const found = this.#claims.get(name);
    this.#claims.delete(name);
    const pod = this.#given.get(name);
    if (pod !== undefined) await this.#keeper.remove("pods", pod);
    return found;
  }
}

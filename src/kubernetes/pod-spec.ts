import { boxEnvironment, ULIMITS } from "../boxes/runner-report.ts";
import type { Mode } from "../core/decision.ts";
import { isInside } from "../core/file-names.ts";
import { BOX_HOME } from "../core/ports.ts";

/** An owner in the same namespace; a pod by default. */
export interface PodOwner {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * What is created for a box: its pod, a Sandbox whose controller creates the pod, or a claim for a waiting pod of a
 * pool.
 */
export type BoxKind = OwnBox | "Claim";
export type OwnBox = "Pod" | "Sandbox";

/** A box as a pod, decided before anything is created. */
export interface PodPlan {
  readonly kind: BoxKind;
  /** Name of the pod, its policies and its Sandbox; for a pod from a pool, the name of its claim. */
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly pullPolicy: string;
  readonly pullSecret: string | null;
  readonly user: { readonly uid: number; readonly gid: number };
  readonly mode: Exclude<Mode, "danger-full-access">;
  readonly workspace: string;
  /** Whether network access may be granted: then the runner has the port that leads there. */
  readonly network: boolean;
  readonly limits: { readonly memory: number; readonly cpus: number; readonly pids: number };
  /** Maximum bytes of the workspace's copy on its node. */
  readonly disk: number;
  readonly runtimeClass: string | null;
  /** RuntimeDefault, or Localhost/ and a path below the kubelet's folder. */
  readonly seccomp: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly brought: readonly BroughtFolder[];
  readonly deadlineMs: number;
  /** The pod that created this one and with which it is deleted; null: no owner in the cluster. */
  readonly owner: PodOwner | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A folder of the image that the box shall have, writable, at another place. */
interface BroughtFolder {
  readonly from: string;
  readonly to: string;
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export const BOX = "box";
/** Fills the workspace of a read-only box, and ends before the box begins. */
export const FILLER = "filler";
const RUNNER = "/usr/local/lib/harness/runner";

/** Marks a pod as one of our boxes; its policies select it by this label and its name. */
export const NAME_LABEL = "dev.harness.pod";

/** Marks a pod from a pool: such a pod may not get labels of our own domain. */
export const CLAIM_LABEL = "sandbox.users.io/harness-pod";

const chosenBy = ({ kind, name }: Pick<PodPlan, "kind" | "name">): Readonly<Record<string, string>> => ({
  [kind === "Claim" ? CLAIM_LABEL : NAME_LABEL]: name,
});

/** All our labels on the pod. */
export const podLabels = (plan: PodPlan): Readonly<Record<string, string>> =>
  plan.kind === "Claim" ? chosenBy(plan) : { ...plan.labels, ...chosenBy(plan) };

/** A pod's time runs while it waits in a pool, so waiting gets as much time as a box. */
const lifeOf = ({ kind, deadlineMs }: PodPlan): number => (kind === "Claim" ? 2 * deadlineMs : deadlineMs);

/** Pods have no limits of this kind, but a process may always lower its own. */
const limited: readonly string[] = Object.entries(ULIMITS).map(
  ([name, most]) => `--${name}=${String(most)}:${String(most)}`,
);

/** Holds the API server's address, for the proof that it cannot be reached. */
export const API_VARIABLE = "HARNESS_API";

const commandOf = (network: boolean): readonly string[] => [
  "/usr/bin/env",
  // Variables that the cluster adds to every container are removed.
  "-i",
  ...boxEnvironment(`${BOX_HOME}/.gitconfig`),
  `${API_VARIABLE}=$(KUBERNETES_SERVICE_HOST) $(KUBERNETES_SERVICE_PORT)`,
  "/usr/bin/prlimit",
  ...limited,
  RUNNER,
  ...(network ? ["network"] : []),
];

/** Pure function from plan to pod: Pod Security "restricted", no token, no shared namespace, read-only root. */
export function podSpec(plan: PodPlan): JsonObject {
  const { name, namespace, owner, annotations, runtimeClass, pullSecret, nodeSelector } = plan;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...ownedBy(owner),
      labels: podLabels(plan),
      annotations: { ...annotations },
    },
    spec: {
      restartPolicy: "Never",
      activeDeadlineSeconds: Math.ceil(lifeOf(plan) / 1000),
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostNetwork: false,
      hostPID: false,
      hostIPC: false,
      shareProcessNamespace: false,
      hostname: "sandbox",
      // No resolver: nothing in the box may resolve names.
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["127.0.0.1"] },
      securityContext: {
        runAsNonRoot: true,
        runAsUser: plan.user.uid,
        runAsGroup: plan.user.gid,
        seccompProfile: seccompOf(plan.seccomp),
      },
      nodeSelector: { ...nodeSelector },
      ...(runtimeClass === null ? {} : { runtimeClassName: runtimeClass }),
      ...(pullSecret === null ? {} : { imagePullSecrets: [{ name: pullSecret }] }),
      ...(plan.mode === "read-only" ? { initContainers: [containerOf(plan, FILLER)] } : {}),
      containers: [containerOf(plan, BOX)],
      volumes: volumesOf(plan),
    },
  };
}

/** Once the owner is gone, the cluster removes objects without another owner. */
export const ownedBy = (owner: PodOwner | null): JsonObject =>
  owner === null ? {} : { ownerReferences: [{ apiVersion: "v1", kind: "Pod", ...owner }] };

const LOCALHOST = "Localhost/";

const seccompOf = (word: string): JsonObject =>
  word.startsWith(LOCALHOST)
    ? { type: "Localhost", localhostProfile: word.slice(LOCALHOST.length) }
    : { type: "RuntimeDefault" };

function containerOf(plan: PodPlan, name: string): JsonObject {
  const { memory, cpus } = plan.limits;
  const amounts = { memory: String(memory), cpu: `${Math.round(cpus * 1000)}m` };
  return {
    name,
    image: plan.image,
    imagePullPolicy: plan.pullPolicy,
    command: commandOf(plan.network && name === BOX),
    workingDir: "/",
    stdin: true,
    // When the connection ends, so does stdin, and with stdin the runner.
    stdinOnce: true,
    tty: false,
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
    },
    resources: { limits: amounts, requests: amounts },
    volumeMounts: mountsOf(plan, name),
  };
}

interface Scratch {
  readonly volume: string;
  readonly path: string;
  readonly bytes: number;
}

const MiB = 2 ** 20;

/** In memory, and charged to the box; together they stay below half of its memory. */
export const scratchOf = ({ limits: { memory } }: Pick<PodPlan, "limits">): readonly Scratch[] => [
  { volume: "tmp", path: "/tmp", bytes: Math.floor(memory / 4) },
  { volume: "home", path: BOX_HOME, bytes: Math.floor(memory / 8) },
  { volume: "run", path: "/run", bytes: Math.min(4 * MiB, Math.floor(memory / 32)) },
];

const WORKSPACE = "workspace";

/** Places outside the workspace need volumes of their own: nothing else of a pod is writable. */
export const placesBeside = ({
  brought,
  workspace,
}: Pick<PodPlan, "brought" | "workspace">): readonly string[] =>
  brought.map(({ to }) => to).filter((to) => !isInside(workspace, to));

function mountsOf(plan: PodPlan, container: string): Json {
  const scratch = scratchOf(plan).map(({ volume, path }) => ({ name: volume, mountPath: path }));
  const workspace = {
    name: WORKSPACE,
    mountPath: plan.workspace,
    ...(plan.mode === "read-only" && container === BOX ? { readOnly: true } : {}),
  };
  const beside = placesBeside(plan).map((mountPath, at) => ({ name: besideName(at), mountPath }));
  return [...scratch, ...beside, workspace];
}

const besideName = (at: number): string => `brought-${at}`;

const volumesOf = (plan: PodPlan): Json => [
  ...scratchOf(plan).map(({ volume, bytes }) => ({
    name: volume,
    emptyDir: { medium: "Memory", sizeLimit: String(bytes) },
  })),
  ...placesBeside(plan).map((_, at) => ({
    name: besideName(at),
    emptyDir: { sizeLimit: String(plan.disk) },
  })),
  { name: WORKSPACE, emptyDir: { sizeLimit: String(plan.disk) } },
];

/** Denies the pod all traffic in both directions; with `open`, lets it out while the proof is made. */
export const policyOf = (plan: PodPlan, part: PolicyPart = "shut"): JsonObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: {
    name: policyName(plan, part),
    namespace: plan.namespace,
    ...ownedBy(plan.owner),
    labels: { ...plan.labels, [NAME_LABEL]: plan.name },
  },
  spec: {
    podSelector: { matchLabels: chosenBy(plan) },
    policyTypes: part === "open" ? ["Egress"] : ["Ingress", "Egress"],
    ...(part === "open" ? { egress: [{}] } : {}),
  },
});

/** `open` lets the box out; `first` shuts it like `shut`, before anything in the cluster can own a policy. */
export const POLICY_PARTS = ["shut", "open", "first"] as const;
export type PolicyPart = (typeof POLICY_PARTS)[number];

export const policyName = ({ name }: Pick<PodPlan, "name">, part: PolicyPart): string =>
  part === "shut" ? name : `${name}-${part}`;

/** Whether no mount of ours or the kubelet's would cover this path or be covered by it. */
export const isMountable = (workspace: string): boolean =>
  !["/proc", "/sys", "/dev", "/etc", "/run", BOX_HOME, "/usr/local/lib/harness"].some(
    (place) => isInside(place, workspace) || isInside(workspace, place),
  );

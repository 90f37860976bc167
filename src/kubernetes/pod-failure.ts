import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { ApiFailure } from "./cluster.ts";

/** Each cause has its own word, by which scripts and people distinguish causes. */
type Word =
  | "not authorised"
  | "quota"
  | "webhook refusal"
  | "image cannot be pulled"
  | "no seccomp profile"
  | "no pod made"
  | "unschedulable"
  | "evicted"
  | "out of memory"
  | "deadline"
  | "deleted"
  | "watch expired"
  | "refused"
  | "ended";

export interface Failure {
  readonly word: Word;
  readonly why: string;
}

const NEXT: Readonly<Record<Word, string>> = {
  "not authorised": "kubectl auth can-i create pods   (docs/kubernetes.md has the role that a box needs)",
  quota: "kubectl describe resourcequota   (or ask for less: --memory, --cpus)",
  "webhook refusal":
    "ask the cluster's administrator what it admits; docs/kubernetes.md describes the pod of a box",
  "image cannot be pulled":
    "name one that the nodes can pull: harness config set kubernetes '{\"image\": …}'",
  "no seccomp profile":
    'install it on every node (docs/kubernetes.md explains how), or: harness config set kubernetes \'{"seccomp": "RuntimeDefault", …}\'',
  "no pod made":
    'kubectl get pods --namespace agent-sandbox-system   (or bare pods: harness config set kubernetes \'{"sandbox_resource": "never", …}\')',
  unschedulable:
    "kubectl get nodes   (or ask for less: --memory, --cpus; kubernetes.node_selector; or wait longer: kubernetes.schedule_timeout)",
  evicted: "the node ran short of a resource: try again, or ask for less: --memory, --cpus",
  "out of memory": "give the box more: --memory",
  deadline: "allow more time: kubernetes.deadline",
  deleted: "somebody removed the pod: start again",
  "watch expired": "start again",
  refused: "kubectl get events",
  ended: "kubectl get events",
};

export const failureError = ({ word, why }: Failure, cause?: unknown): HarnessError =>
  new HarnessError(EXIT.sandbox, `no pod as a box: ${word}: ${why}`, NEXT[word], cause);

/** The meaning of the API server's refusal to create something. */
export function refusalOf(thrown: unknown): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const why = reasonOf(thrown);
  return failureError({ word: thrown instanceof ApiFailure ? wordOf(thrown) : "refused", why }, thrown);
}

export function wordOf({ status, message }: ApiFailure): Word {
  if (/admission webhook .* denied|denied (?:the )?request|violates PodSecurity/i.test(message))
    return "webhook refusal";
  if (/exceeded quota|must specify .*(?:limits|requests)/i.test(message)) return "quota";
  if (status === 401 || status === 403) return "not authorised";
  if (status === 410) return "watch expired";
  return "refused";
}

/** The part of a pod that describes its state. */
export interface PodState {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly {
      readonly kind?: string;
      readonly uid?: string;
      readonly controller?: boolean;
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly hostIP?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly {
      readonly type?: string;
      readonly status?: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly ContainerState[];
    readonly initContainerStatuses?: readonly ContainerState[];
  };
}

interface ContainerState {
  readonly name?: string;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: {
      readonly reason?: string;
      readonly message?: string;
      readonly exitCode?: number;
    };
  };
}

const IMAGE = /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ErrImageInspect)$/;
const STUCK = /^(?:CreateContainerConfigError|CreateContainerError|RunContainerError|CrashLoopBackOff)$/;

export const isRunning = ({ status }: PodState, container: string): boolean =>
  [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].some(
    ({ name, state }) => name === container && state?.running !== undefined,
  );

/** Why this pod cannot be or remain a box; undefined as long as it can. */
export const podFailure = (pod: PodState): Failure | undefined => {
  const states = statesOf(pod);
  return waitingFailure(states) ?? phaseFailure(pod) ?? endedFailure(pod, states) ?? unscheduled(pod);
};

type StateOfContainer = NonNullable<ContainerState["state"]>;

const statesOf = ({ status = {} }: PodState): readonly StateOfContainer[] =>
  [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].flatMap(
    ({ state }) => state ?? [],
  );

function waitingFailure(states: readonly StateOfContainer[]): Failure | undefined {
  for (const { waiting } of states) {
    const { reason = "", message = "" } = waiting ?? {};
    const why = message === "" ? reason : message;
    if (IMAGE.test(reason)) return { word: "image cannot be pulled", why };
    if (STUCK.test(reason)) return { word: /seccomp/i.test(why) ? "no seccomp profile" : "refused", why };
  }
  return undefined;
}

const REASONS: Readonly<Record<string, Word>> = { Evicted: "evicted", DeadlineExceeded: "deadline" };

function phaseFailure({ metadata, status = {} }: PodState): Failure | undefined {
  const word = REASONS[status.reason ?? ""];
  if (word !== undefined) return { word, why: status.message ?? status.reason ?? "" };
  return metadata?.deletionTimestamp === undefined
    ? undefined
    : { word: "deleted", why: "the pod is being removed" };
}

function endedFailure({ status = {} }: PodState, states: readonly StateOfContainer[]): Failure | undefined {
  if (states.some(({ terminated }) => terminated?.reason === "OOMKilled"))
    return { word: "out of memory", why: "the pod's memory limit was reached" };
  if (status.phase !== "Failed" && status.phase !== "Succeeded") return undefined;
  const ended = states.find(({ terminated }) => terminated !== undefined)?.terminated;
  return { word: "ended", why: ended?.message ?? `its first process ended with ${ended?.exitCode ?? "?"}` };
}

function unscheduled({ status = {} }: PodState): Failure | undefined {
  const found = status.conditions?.find(
    ({ type, status: is, reason }) => type === "PodScheduled" && is === "False" && reason === "Unschedulable",
  );
  return found && { word: "unschedulable", why: found.message ?? "" };
}

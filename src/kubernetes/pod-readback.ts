import { isDeepStrictEqual } from "node:util";
import type { BoxKind, JsonObject } from "./pod-spec.ts";
import { isFields, type Fields } from "../core/raw-data.ts";

const isText = (value: unknown): boolean => typeof value === "string";

/** Labels and annotations that tell a mesh to leave a pod alone. */
const OPT_OUTS: Readonly<Record<string, string>> = {
  "sidecar.istio.io/inject": "false",
  "istio.io/dataplane-mode": "none",
  "linkerd.io/inject": "disabled",
  "kuma.io/sidecar-injection": "disabled",
  "consul.hashicorp.com/connect-inject": "false",
};

/** Labels that a cluster may add: where the pod runs, which a 1.35 cluster copies from its node, and opt-outs. */
const ADDED_LABELS: Readonly<Record<string, (value: unknown) => boolean>> = {
  "topology.kubernetes.io/zone": isText,
  "topology.kubernetes.io/region": isText,
  ...Object.fromEntries(
    Object.entries(OPT_OUTS).map(([name, out]) => [name, (value: unknown) => value === out]),
  ),
};

/** The label by which the Sandbox controller finds its pods; nobody else sets it. */
const OF_SANDBOX = "agents.x-k8s.io/sandbox-name-hash";

/** The label for a pod's template in a pool. */
const OF_POOL = "agents.x-k8s.io/sandbox-template-ref-hash";

const OF_KIND: Readonly<Record<BoxKind, readonly string[]>> = {
  Pod: [],
  Sandbox: [OF_SANDBOX],
  Claim: [OF_SANDBOX, OF_POOL],
};

/** Prefix of further labels of that controller, which a pod has while it waits in a pool. */
const OF_CONTROLLER = "agents.x-k8s.io/";

/** Whether a pod may have or have had this label without being planned so. */
export const mayBeAdded = (label: string, kind: BoxKind): boolean =>
  Object.hasOwn(ADDED_LABELS, label) ||
  OF_KIND[kind].includes(label) ||
  (kind === "Claim" && label.startsWith(OF_CONTROLLER));

/**
 * What a cluster may add to a pod beyond the plan: defaults that change nothing, where the pod runs and how it is
 * scheduled. A field that is neither listed here nor planned is refused by name, whatever a later version calls it.
 */
type Additions = Readonly<Record<string, (value: unknown) => boolean>>;

const ADDED: Additions = {
  "spec.nodeName": () => true,
  "spec.schedulerName": () => true,
  "spec.tolerations": () => true,
  "spec.affinity": () => true,
  "spec.topologySpreadConstraints": () => true,
  "spec.priority": () => true,
  "spec.priorityClassName": () => true,
  "spec.preemptionPolicy": () => true,
  "spec.overhead": () => true,
  "spec.serviceAccountName": () => true,
  "spec.serviceAccount": () => true,
  // A service account brings its own pull secrets; a node selector of the namespace or the runtime class only narrows.
  "spec.imagePullSecrets": () => true,
  "spec.nodeSelector.*": () => true,
  "spec.hostUsers": (value) => value === false,
  "spec.os": (value) => isDeepStrictEqual(value, { name: "linux" }),
  "spec.*.terminationMessagePath": (value) => value === "/dev/termination-log",
  "spec.*.terminationMessagePolicy": (value) => value === "File",
  "spec.*.resources.limits.*": () => false,
  ...Object.fromEntries(Object.entries(ADDED_LABELS).map(([name, may]) => [`metadata.labels.${name}`, may])),
};

/** Fields that the API drops if they state the default. */
const DROPPED = new Set([
  "spec.hostNetwork",
  "spec.hostPID",
  "spec.hostIPC",
  "spec.shareProcessNamespace",
  "spec.*.tty",
  "spec.nodeSelector",
]);

/** One line for each field in which the cluster's pod differs from the plan; `kind`: what was created for the box. */
export function readbackDifferences(
  planned: JsonObject,
  seen: unknown,
  kind: BoxKind = "Pod",
): readonly string[] {
  if (!isFields(seen)) return ["the cluster returned no pod"];
  const lines: string[] = [];
  const metadata = isFields(seen["metadata"]) ? seen["metadata"] : {};
  const meant = planned["metadata"] as JsonObject;
  // Other labels could bring other network policies. Annotations are only notes, but some runtimes obey them.
  const labels = isFields(metadata["labels"]) ? { ...metadata["labels"] } : {};
  for (const label of OF_KIND[kind]) if (isText(labels[label])) delete labels[label];
  compare("metadata.labels", meant["labels"], labels, { lines, may: ADDED });
  lines.push(...obeyedNotes(planned, metadata));
  compare("spec", planned["spec"], seen["spec"], { lines, may: ADDED });
  return lines;
}

/** Unplanned annotations that some runtime obeys. */
function obeyedNotes(planned: JsonObject, { annotations }: Fields): readonly string[] {
  const notes = Object.entries(isFields(annotations) ? annotations : {});
  return notes
    .filter(
      ([name, value]) =>
        OBEYED_ANNOTATIONS.test(name) &&
        OPT_OUTS[name] !== value &&
        !NETWORK_STATUS.test(name) &&
        !isProfile(planned, name, value),
    )
    .map(([name]) => `metadata.annotations.${name}: was added`);
}

/** One line for each field of a specification that differs from the plan; `more`: further permitted additions. */
function specDifferences(planned: unknown, seen: unknown, more: Additions): readonly string[] {
  const lines: string[] = [];
  compare("spec", planned, seen, { lines, may: { ...ADDED, ...more } });
  return lines;
}

interface Comparison {
  readonly lines: string[];
  readonly may: Additions;
}

const SECCOMP = /^(?:container\.)?seccomp\.security\.alpha\.kubernetes\.io\//;

/** Versions before 1.25 repeat the specification's profile in an annotation. */
function isProfile(planned: JsonObject, name: string, value: unknown): boolean {
  const { securityContext } = planned["spec"] as { readonly securityContext: Fields };
  const { localhostProfile } = securityContext["seccompProfile"] as Fields;
  const own = typeof localhostProfile === "string" ? `localhost/${localhostProfile}` : "runtime/default";
  return SECCOMP.test(name) && value === own;
}

/**
 * Annotations that loosen profiles, give devices, mounts and networks, lift processor limits, or ask for sidecars and
 * mesh networks: read by runtimes (containerd, CRI-O, crun, Kata, gVisor), their plugins and meshes.
 */
const OBEYED_ANNOTATIONS =
  /apparmor\.security|seccomp\.security|seccomp-profile\.kubernetes\.cri-o|io\.kubernetes\.cri|crio\.io|cdi\.k8s\.io|nri\.(?:io|containerd\.io)|run\.oci\.|module\.wasm\.image|io\.containerd\.|io\.katacontainers|dev\.gvisor|unsafe-sysctls|sidecar|linkerd\.io\/inject|connect-inject|dataplane-mode|ambient\.istio|multus-cni|k8s\.v1\.cni|cni\.cncf/;

/** A report of the given networks, which nothing obeys. */
const NETWORK_STATUS = /^k8s\.v1\.cni\.cncf\.io\/networks?-status$/;

function compare(path: string, planned: unknown, seen: unknown, reading: Comparison): void {
  const { lines, may: added } = reading;
  if (Array.isArray(planned)) return compareLists(path, planned, seen, reading);
  if (!isFields(planned)) {
    if (!isSame(path, planned, seen))
      lines.push(`${path}: is ${valueText(seen)}, planned ${valueText(planned)}`);
    return;
  }
  const fields = isFields(seen) ? seen : {};
  for (const [name, value] of Object.entries(planned)) {
    const inner = `${path}.${name}`;
    const dropped = fields[name] === undefined && DROPPED.has(general(inner)) && isNothing(value);
    if (!dropped) compare(inner, value, fields[name], reading);
  }
  for (const [name, value] of Object.entries(fields)) {
    if (name in planned || isNothing(value)) continue;
    const inner = `${path}.${name}`;
    const may = added[general(inner)] ?? added[`${general(path)}.*`];
    if (may?.(value) !== true) lines.push(`${inner}: was added (${valueText(value)})`);
  }
}

function compareLists(path: string, planned: readonly unknown[], seen: unknown, reading: Comparison): void {
  const there: readonly unknown[] = Array.isArray(seen) ? seen : [];
  if (path === "spec.imagePullSecrets") return;
  for (const [index, value] of planned.entries())
    compare(`${path}[${String(index)}]`, value, there[index], reading);
  for (let index = planned.length; index < there.length; index += 1)
    reading.lines.push(`${path}[${String(index)}]: was added (${valueText(there[index])})`);
}

/** Treats containers of every kind and index alike. */
const general = (path: string): string =>
  path.replace(/^spec\.(?:containers|initContainers)\[\d+\]/, "spec.*");

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (Array.isArray(value) && value.length === 0) ||
  (isFields(value) && Object.keys(value).length === 0);

/** Compares values; amounts come back in the shortest equivalent form. */
const isSame = (path: string, planned: unknown, seen: unknown): boolean =>
  /\.(?:cpu|memory|sizeLimit)$/.test(path)
    ? amountOf(planned) === amountOf(seen)
    : isDeepStrictEqual(planned, seen);

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The number of a quantity; undefined if the value is none. */
export function amountOf(value: unknown): number | undefined {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/.exec(String(value)) ?? [];
  const factor = UNITS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

const valueText = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 120);

/** A field of an object of unknown form; undefined if it is not there. */
export const field = (value: unknown, ...keys: readonly string[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Readonly<Record<string, unknown>>)[key]
        : undefined,
    value,
  );

/**
 * What a cluster may add to a loop's pod beyond the Job's template. The loop holds the model's key and a token, and its
 * clone must have neither: another container, variable, volume, account or image is reported, as for a box. What a loop
 * may use of its node and how it is scheduled is up to the cluster.
 */
const ALLOWED_ADDITIONS: Additions = {
  "spec.dnsPolicy": (value) => value === "ClusterFirst",
  // Other nameservers could give other answers; the number of dots in a name is harmless.
  "spec.dnsConfig": (value) => isDeepStrictEqual(Object.keys(value as object), ["options"]),
  "spec.schedulingGates": () => true,
  "spec.hostname": (value) => typeof value === "string" && value.startsWith("harness-batch-"),
  "spec.enableServiceLinks": (value) => value === true,
  "spec.*.imagePullPolicy": () => true,
};

/** Defaults set by the API; recognized by name alone, anywhere in a volume or a variable. */
const isDefault = (name: string, value: unknown): boolean =>
  (name === "defaultMode" && value === 420) || (name === "apiVersion" && value === "v1");

/** The variable through which the Job controller gives a container its index. */
const INDEX = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
};

/**
 * One line for each field of the pod or its template that differs from `planned` and could weaken what is promised for
 * loops. Labels are not compared: none of our policies selects loops to let them reach anything.
 */
export function loopDifferences(planned: unknown, seen: unknown): readonly string[] {
  const own = withoutDefaults(field(planned, "spec"));
  const there = withoutDefaults(field(seen, "spec"));
  return [
    ...obeyedNotes({ spec: own } as JsonObject, (field(seen, "metadata") ?? {}) as JsonObject),
    ...specDifferences(own, withImagesOf(own, there), ALLOWED_ADDITIONS),
  ];
}

/** Removes what the API and the Job controller add to each container, and amounts of resources. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(withoutDefaults);
    return list.filter((each) => !isDeepStrictEqual(each, INDEX));
  }
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, inner]) => name !== "resources" && name !== "ephemeralContainers" && !isDefault(name, inner),
  );
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutDefaults(inner)]));
}

/** An image pinned by its digest counts as the named image. */
function withImagesOf(planned: unknown, seen: unknown): unknown {
  if (typeof seen !== "object" || seen === null) return seen;
  const pinned = (list: "containers" | "initContainers"): Fields => {
    const containers = field(seen, list);
    if (!Array.isArray(containers)) return {};
    return {
      [list]: containers.map((each: Fields, at) => {
        const named = field(planned, list, String(at), "image");
        const isSame = new RegExp("@sha256:[0-9a-f]{64}$").test(String(each["image"]));
        return isSame && String(each["image"]).startsWith(`${String(named)}@`)
          ? { ...each, image: named }
          : each;
      }),
    };
  };
  return { ...seen, ...pinned("containers"), ...pinned("initContainers") };
}

/**
 * The requested fields that the cluster would not create as requested: an older cluster drops unknown fields, admission
 * may change others. Added fields are not reported.
 */
export function lostFields(wanted: unknown, made: unknown, at = ""): readonly string[] {
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = Array.isArray(made) ? made : [];
    return wanted.flatMap((each, nth) => lostFields(each, list[nth], `${at}[${nth}]`));
  }
  if (typeof wanted === "object" && wanted !== null) {
    if (typeof made !== "object" || made === null) return [at];
    const found = new Map(Object.entries(made));
    return Object.entries(wanted).flatMap(([key, value]) =>
      value === undefined ? [] : lostFields(value, found.get(key), at === "" ? key : `${at}.${key}`),
    );
  }
  return wanted === made || isSameQuantity(at, wanted, made) ? [] : [at];
}

/** `1000m` is `1`: a cluster may write quantities in another way. */
function isSameQuantity(at: string, wanted: unknown, made: unknown): boolean {
  if (!/\.(?:requests|limits)\.|sizeLimit$/.test(at)) return false;
  const amount = amountOf(wanted);
  return amount !== undefined && amount === amountOf(made);
}

import { EXIT } from "../core/errors.ts";
import {
  environmentRows,
  ENVIRONMENTS_FILE,
  type RowEnvironment,
  tooManyTrees,
  TREE_AT,
  treeMounts,
  WORK_AT,
} from "./batch-trees.ts";
import type { ConfigMap, Container, Job, NetworkPolicy, PodSpec } from "./cluster.ts";
import type { OwnBox } from "./pod-spec.ts";

/**
 * A batch as Kubernetes objects: one Indexed Job with one index per row. The pod of an index holds only the loop; the
 * box is a second pod, which the loop creates. Pure: the same plan gives the same objects, byte for byte.
 */
export interface BatchPlan {
  /** Hash of the rows and of the settings they run with. */
  readonly hash: string;
  readonly namespace: string;
  readonly rows: readonly PlannedRow[];
  /** How many rows run at the same time. */
  readonly jobs: number;
  /** How often a row is retried if its model or box was unreachable. */
  readonly retries: number;
  readonly image: string;
  readonly pullSecret: string | null;
  readonly serviceAccount: string;
  /** The kind of object that the service account may create for boxes. */
  readonly boxes: OwnBox;
  /** Objects of the warm pool for boxes of rows without an environment; empty if there is none. */
  readonly warmPool: readonly object[];
  /** Where results and sessions are stored. */
  readonly results: ResultsPlace;
  /**
   * Its values become environment variables of the loop: the address of the model server and keys, including those of
   * the bucket.
   */
  readonly modelSecret: string | null;
  /** A queue of Kueue, which then decides when the Job begins. */
  readonly queue: string | null;
  /** Further arguments for the loop's command. */
  readonly words: readonly string[];
  /** Settings as environment variables; no secrets. */
  readonly env: Readonly<Record<string, string>>;
}

/** A volume claim of the namespace, or `s3://BUCKET/PREFIX`. */
export type ResultsPlace =
  | { readonly kind: "claim"; readonly claim: string }
  | { readonly kind: "bucket"; readonly address: string };

export interface PlannedRow {
  /** A line of the file of rows, without its line feed. */
  readonly line: string;
  readonly clone: CloneSource;
  /** If absent, the box starts from the image in the settings. */
  readonly environment?: RowEnvironment;
}

/** The name of a batch depends on its hash alone, so that anyone who starts the same batch finds it. */
export const batchName = (hash: string): string => `harness-batch-${hash}`;
export const BATCH_LABEL = "dev.harness.batch";
const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";

export const COMMON_LABELS: Readonly<Record<string, string>> = {
  "app.kubernetes.io/name": "harness",
  "app.kubernetes.io/managed-by": "harness",
};

const batchLabels = (hash: string): Record<string, string> => ({ ...COMMON_LABELS, [BATCH_LABEL]: hash });

/** An object of the API may hold 1 MiB, a request to etcd 1.5 MiB. */
const CHUNK_BYTES = 900 * 1024;
/** Each pod has all chunks as files on its node. */
const MAX_CHUNKS = 16;
/** Maximum indexes of a Job with a back-off limit per index. */
const MAX_ROWS = 100_000;

/** Thrown for rows that no batch in a cluster can hold. */
export class RowsTooLarge extends Error {
  override readonly name = "RowsTooLarge";
}

const WEEK_S = 7 * 24 * 3600;
const DAY_S = 24 * 3600;
/** A run that is told to end must end its box first. */
const GRACE_S = 60;

/**
 * Exit codes of the loop that a retry would only repeat. A killed loop (137) is not among them: a Job sees only codes,
 * and a loop whose pod was deleted without time to end has the same code as one that ran out of memory.
 */
const LASTING: readonly number[] = [EXIT.failed, EXIT.usage, EXIT.budget, EXIT.refused, EXIT.parked].toSorted(
  (a, b) => a - b,
);

/** Whether the Job makes no further pod for a row that ends with this code. */
export const isLasting = (code: number): boolean => code === EXIT.done || LASTING.includes(code);

export function batchJob(plan: BatchPlan): Job {
  const labels = batchLabels(plan.hash);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: batchName(plan.hash),
      namespace: plan.namespace,
      labels: { ...labels, ...(plan.queue === null ? {} : { [QUEUE_LABEL]: plan.queue }) },
    },
    spec: {
      completionMode: "Indexed",
      completions: plan.rows.length,
      parallelism: Math.min(plan.jobs, plan.rows.length),
      backoffLimitPerIndex: plan.retries,
      podReplacementPolicy: "Failed",
      podFailurePolicy: {
        rules: [
          // A drained node or an eviction is nobody's fault and does not count as a try.
          { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          {
            action: "FailIndex",
            onExitCodes: { containerName: "loop", operator: "In", values: [...LASTING] },
          },
          {
            action: "FailIndex",
            onExitCodes: { containerName: "clone", operator: "In", values: [EXIT.usage] },
          },
        ],
      },
      // Nothing starts before all objects of the batch exist.
      suspend: true,
      ttlSecondsAfterFinished: WEEK_S,
      template: { metadata: { labels }, spec: loopPod(plan) },
    },
  };
}

export const USER_ID = 1000;
const ROWS_AT = "/etc/harness/rows";
const RESULTS_AT = "/results";
const STATE_AT = "/state";
const TOKEN_AT = "/var/run/secrets/kubernetes.io/serviceaccount";

function loopPod(plan: BatchPlan): PodSpec {
  return {
    restartPolicy: "Never",
    serviceAccountName: plan.serviceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    activeDeadlineSeconds: DAY_S,
    terminationGracePeriodSeconds: GRACE_S,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER_ID,
      runAsGroup: USER_ID,
      fsGroup: USER_ID,
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...(plan.pullSecret === null ? {} : { imagePullSecrets: [{ name: plan.pullSecret }] }),
    initContainers: [cloneContainer(plan)],
    containers: [loopContainer(plan)],
    volumes: [
      {
        name: "rows",
        projected: {
          sources: rowObjects(plan).map((_, at) => ({ configMap: { name: chunkName(plan, at) } })),
        },
      },
      { name: "work", emptyDir: { sizeLimit: "4Gi" } },
      { name: "state", emptyDir: { sizeLimit: "2Gi" } },
      { name: "tmp", emptyDir: { sizeLimit: "1Gi" } },
      ...(plan.results.kind === "claim"
        ? [{ name: "results", persistentVolumeClaim: { claimName: plan.results.claim } }]
        : []),
      {
        name: "token",
        projected: {
          sources: [
            { serviceAccountToken: { path: "token", expirationSeconds: 3600 } },
            { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
            {
              downwardAPI: { items: [{ path: "namespace", fieldRef: { fieldPath: "metadata.namespace" } }] },
            },
          ],
        },
      },
    ],
  };
}

interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

/**
 * Settings of both containers, as a "restricted" namespace requires. A loop waits for its model and its box most of the
 * time, so it requests little: otherwise loops would hold the room that their boxes wait for.
 */
const containerSettings = (
  requests: Amounts,
  limits: Amounts,
): Pick<Container, "securityContext" | "resources" | "terminationMessagePolicy"> => ({
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    capabilities: { drop: ["ALL"] },
  },
  resources: { requests: { ...requests }, limits: { ...limits } },
  terminationMessagePolicy: "FallbackToLogsOnError",
});

/** The clone has network access, but neither the token nor a key; it runs nothing that it fetches. */
const cloneContainer = (plan: BatchPlan): Container => ({
  name: "clone",
  image: plan.image,
  command: ["/bin/sh", "-c", CLONE_SCRIPT],
  env: [
    { name: "HARNESS_CLONES", value: ROWS_AT },
    { name: "HARNESS_TREE", value: TREE_AT },
    { name: "HOME", value: "/tmp" },
  ],
  ...containerSettings({ cpu: "100m", memory: "128Mi" }, { cpu: "500m", memory: "512Mi" }),
  volumeMounts: [
    { name: "rows", mountPath: ROWS_AT, readOnly: true },
    { name: "tmp", mountPath: "/tmp" },
    ...trees(plan),
  ],
});

/** One volume, mounted at every place where a tree may have to lie. */
const trees = ({ rows }: BatchPlan): NonNullable<Container["volumeMounts"]> =>
  [WORK_AT, ...treeMounts(rows)].map((mountPath) => ({ name: "work", mountPath }));

const LOOP_FOLDERS = {
  HOME: `${STATE_AT}/home`,
  XDG_STATE_HOME: `${STATE_AT}/state`,
  XDG_CACHE_HOME: `${STATE_AT}/cache`,
  XDG_CONFIG_HOME: `${STATE_AT}/config`,
  TMPDIR: "/tmp",
};
const LOOP_POD = {
  HARNESS_POD_NAME: "metadata.name",
  HARNESS_POD_NAMESPACE: "metadata.namespace",
  HARNESS_POD_UID: "metadata.uid",
};
/** Variables that the Job gives to every loop besides the settings; they take precedence over those of the Secret. */
export const LOOP_VARIABLES: readonly string[] = [...Object.keys(LOOP_FOLDERS), ...Object.keys(LOOP_POD)];

const loopContainer = (plan: BatchPlan): Container => ({
  name: "loop",
  image: plan.image,
  args: [
    "batch",
    ROWS_AT,
    "--index=$(JOB_COMPLETION_INDEX)",
    `--tree=${TREE_AT}`,
    `--out=${plan.results.kind === "claim" ? RESULTS_AT : plan.results.address}/${plan.hash}`,
    "--told=/dev/termination-log",
    ...plan.words,
  ],
  env: [
    ...Object.entries(LOOP_FOLDERS).map(([name, value]) => ({ name, value })),
    ...Object.entries(LOOP_POD).map(([name, fieldPath]) => ({
      name,
      valueFrom: { fieldRef: { fieldPath } },
    })),
    ...Object.entries(plan.env)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => ({ name, value })),
  ],
  ...(plan.modelSecret === null ? {} : { envFrom: [{ secretRef: { name: plan.modelSecret } }] }),
  ...containerSettings({ cpu: "100m", memory: "256Mi" }, { cpu: "1", memory: "1Gi" }),
  volumeMounts: [
    { name: "rows", mountPath: ROWS_AT, readOnly: true },
    { name: "state", mountPath: STATE_AT },
    { name: "tmp", mountPath: "/tmp" },
    ...trees(plan),
    ...(plan.results.kind === "claim" ? [{ name: "results", mountPath: RESULTS_AT }] : []),
    { name: "token", mountPath: TOKEN_AT, readOnly: true },
  ],
});

/**
 * No connection may be opened to a loop. The cluster decides where the loop may connect: to its API server and the
 * model server.
 */
export const loopPolicy = ({ namespace }: Pick<BatchPlan, "namespace">): NetworkPolicy => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "harness-loop", namespace, labels: { ...COMMON_LABELS } },
  spec: {
    podSelector: { matchExpressions: [{ key: BATCH_LABEL, operator: "Exists" }] },
    policyTypes: ["Ingress"],
  },
});

const chunkName = ({ hash }: BatchPlan, at: number): string => `${batchName(hash)}-${at}`;

/** The rows, a few hundred kilobytes per object; deleted with the Job if its uid is given. */
export function batchRows(plan: BatchPlan, jobUid?: string): readonly ConfigMap[] {
  const owner = {
    apiVersion: "batch/v1",
    kind: "Job",
    name: batchName(plan.hash),
    uid: jobUid ?? "",
  };
  return rowObjects(plan).map((data, at) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: chunkName(plan, at),
      namespace: plan.namespace,
      labels: batchLabels(plan.hash),
      ...(jobUid === undefined ? {} : { ownerReferences: [owner] }),
    },
    immutable: true,
    data,
  }));
}

/** The contents of each object of rows; the last one holds the environments, if rows have any. */
function rowObjects(plan: Pick<BatchPlan, "rows">): readonly Readonly<Record<string, string>>[] {
  const rows = chunks(plan).map((each, at) => ({
    [`rows-${numbered(at)}.jsonl`]: each.map(({ line }) => `${line}\n`).join(""),
    [`clones-${numbered(at)}.tsv`]: each.map(({ clone }) => `${cloneLine(clone)}\n`).join(""),
  }));
  const environments = environmentRows(plan.rows);
  return environments === undefined
    ? rows
    : [...rows, { [ENVIRONMENTS_FILE]: environmentsText(plan, environments) }];
}

function environmentsText({ rows }: Pick<BatchPlan, "rows">, environments: readonly object[]): string {
  const text = JSON.stringify(environments);
  const many = tooManyTrees(rows);
  if (many !== undefined) throw new RowsTooLarge(many);
  if (Buffer.byteLength(text) > CHUNK_BYTES)
    throw new RowsTooLarge(
      `the ${environments.length} environments of the rows take more than a Kubernetes object can hold, ${CHUNK_BYTES / 1024} KiB`,
    );
  return text;
}

const numbered = (at: number): string => String(at).padStart(4, "0");

const bytesOf = ({ line, clone }: PlannedRow): number =>
  Buffer.byteLength(line) + Buffer.byteLength(cloneLine(clone)) + 2;

function chunks({ rows }: Pick<BatchPlan, "rows">): readonly (readonly PlannedRow[])[] {
  const all: PlannedRow[][] = [[]];
  let bytes = 0;
  for (const [at, row] of rows.entries()) {
    const more = bytesOf(row);
    if (more > CHUNK_BYTES)
      throw new RowsTooLarge(
        `row ${at + 1} takes ${Math.ceil(more / 1024)} KiB, but a Kubernetes object holds at most ${CHUNK_BYTES / 1024} KiB of rows`,
      );
    if (bytes + more > CHUNK_BYTES) {
      all.push([]);
      bytes = 0;
    }
    all.at(-1)?.push(row);
    bytes += more;
  }
  if (rows.length > MAX_ROWS)
    throw new RowsTooLarge(`there are ${rows.length} rows, but a Job has at most ${MAX_ROWS} indexes`);
  if (all.length > MAX_CHUNKS)
    throw new RowsTooLarge(
      `the rows take ${all.length} objects of ${CHUNK_BYTES / 1024} KiB, but a pod gets at most ${MAX_CHUNKS}`,
    );
  return all;
}

/** What the pod of an index clones. */
export interface CloneSource {
  readonly url: string;
  /** A branch, a tag or a commit; null for the default branch. */
  readonly ref: string | null;
  /** Where the tree has to lie; if absent, at the common place. */
  readonly tree?: string;
}

const COMMIT = /^[0-9a-f]{40}$/;

/**
 * One line: address, kind of ref, ref, and possibly a place, separated by tabs. No field may contain a tab or a line
 * break.
 */
export function cloneLine({ url, ref, tree }: CloneSource): string {
  const kind = ref === null ? "current" : COMMIT.test(ref) ? "commit" : "branch";
  const fields = [url, kind, ref ?? "", ...(tree === undefined ? [] : [tree])];
  if (fields.some((field) => /[\t\r\n\0]/.test(field)))
    throw new Error("an address has no tab and no line break");
  return fields.join("\t");
}

/**
 * Runs in the shell of the loop's image before the loop begins. Nothing that a repository brings is obeyed: no hooks,
 * templates, submodules or filters, and no other protocol. Exits with 2 if a retry would be refused too, with 1 if the
 * host was unreachable.
 */
export const CLONE_SCRIPT = `set -u
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_LFS_SKIP_SMUDGE=1
export GIT_ASKPASS=/bin/false GIT_ALLOW_PROTOCOL=https:http
told=\${HARNESS_TOLD:-/dev/termination-log}
tab=$(printf '\\t')
line=$(cat "$HARNESS_CLONES"/clones-*.tsv | sed -n "$((JOB_COMPLETION_INDEX + 1))p")
url=\${line%%"$tab"*}
rest=\${line#*"$tab"}
kind=\${rest%%"$tab"*}
rest=\${rest#*"$tab"}
ref=\${rest%%"$tab"*}
case $rest in *"$tab"*) HARNESS_TREE=\${rest#*"$tab"} ;; esac
[ -n "$url" ] || { echo "there is no row for index $JOB_COMPLETION_INDEX" >"$told"; exit 2; }
said=$(mktemp)
safe_git() {
  timeout 300 git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c submodule.recurse=false \\
    -c credential.helper= -c core.attributesFile=/dev/null "$@" 2>"$said"
}
clone() {
  rm -rf "$HARNESS_TREE"
  case $kind in
  branch) set -- --branch "$ref" "$@" ;;
  commit) set -- --no-checkout "$@" ;;
  esac
  safe_git clone --quiet --template= --no-recurse-submodules --single-branch "$@" -- "$url" "$HARNESS_TREE"
}
all() {
  if [ "$kind" = commit ]; then
    clone && safe_git -C "$HARNESS_TREE" fetch --quiet --no-recurse-submodules origin "$ref" &&
      safe_git -C "$HARNESS_TREE" checkout --quiet --detach "$ref"
  else
    clone --depth 1 || { grep -q 'shallow capabilities' "$said" && clone; }
  fi
}
all && exit 0
why=$(grep -v '^$' "$said" | tail -n 1 | cut -c 1-1000)
printf '%s: %s' "$url" "\${why:-git was stopped after 300 s}" >"$told"
grep -qiE 'resolve host|connect|timed out|early EOF|reset by peer|error: (429|5[0-9][0-9])' "$said" && exit 1
[ -n "$why" ] || exit 1
exit 2
`;

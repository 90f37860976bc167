import { createHash } from "node:crypto";
import { envNameOf } from "../../config/load-config.ts";
import { DEFAULTS, printable, type SettingKey, type Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import {
  batchJob,
  type BatchPlan,
  batchRows,
  COMMON_LABELS,
  LOOP_VARIABLES,
  loopPolicy,
  type PlannedRow,
  type ResultsPlace,
  RowsTooLarge,
  USER_ID,
} from "../../kubernetes/batch-job.ts";
import { environmentRows, TREE_AT } from "../../kubernetes/batch-trees.ts";
import { loopRole } from "../../kubernetes/cluster-rights.ts";
import { poolObjects } from "../../kubernetes/agent-sandbox.ts";
import { subjectNamed } from "../vet/vet-box.ts";
import type { BatchRow } from "./batch-rows.ts";
import type { RowEnvironments } from "./pod-row.ts";
import { isPreset } from "../../core/network.ts";
import { namedIn, secretHosts } from "../boxes/granted-network.ts";

/** Describes a batch as objects of a cluster, or says why it cannot run there. Asks no cluster. */
interface ClusterPlanRequest {
  readonly rows: readonly BatchRow[];
  readonly settings: Settings;
  /** As typed. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly namespace: string;
  readonly jobs: number;
  readonly retries: number;
  /** Distinguishes batches of the same rows. */
  readonly tag: string;
  readonly environments: RowEnvironments;
}

/**
 * Settings that are passed to the runs in the cluster. Keys, values of secrets, addresses, hooks and what a project
 * brings stay on this machine.
 */
const CARRIED: readonly SettingKey[] = [
  "provider",
  "chat_model",
  // Takes precedence over kubernetes.image, as for any box that is a pod.
  "image",
  "max_context_tokens",
  "stream",
  "mode",
  "on_ask",
  "canaries",
  "memory",
  "cpus",
  "pids",
  "timeout",
  "connect_timeout",
  "first_token_timeout",
  "idle_timeout",
  "max_turns",
  "attempts",
  "temperature",
  "allow_domains",
  "deny_domains",
  "network_upload",
  "network_download",
  "network_idle_timeout",
  "secrets",
  "install_scripts",
  "min_release_age",
  "prices",
  "capabilities",
];

/** What a run in a cluster lacks, and what to do instead. */
const NOT_THERE: Readonly<Record<string, string>> = {
  "base-url": "set HARNESS_BASE_URL (or OLLAMA_HOST) in the Secret that kubernetes.model_secret names",
  runtime: "set kubernetes.runtime_class in your settings",
};

export async function clusterPlan(request: ClusterPlanRequest): Promise<BatchPlan> {
  const { rows, settings, flags, namespace, jobs, retries, tag } = request;
  refuseFlags(flags);
  const { loop_image, model_secret, pull_secret, queue, service_account, sandbox_resource } =
    settings.kubernetes;
  const image = needed(
    loop_image,
    "loop_image",
    "docker build -f Dockerfile.loop -t REGISTRY/harness-loop . (docs/kubernetes.md)",
  );
  const results = resultsPlace(settings);
  if (settings.provider !== "scripted")
    needed(
      model_secret,
      "model_secret",
      `kubectl create secret generic NAME --from-literal=${modelKeyOf(settings)}=…`,
    );
  const env = loopEnvironment(settings);
  refuseUngrantable(settings, env);
  const words = ["--json", ...budgetWords(flags)];
  const planned = await plannedRows(request);
  const built = environmentRows(planned);
  const hash = createHash("sha256")
    .update(JSON.stringify([rows.map(({ id }) => id), env, tag, ...(built === undefined ? [] : [built])]))
    .digest("hex")
    .slice(0, 16);
  const plan: BatchPlan = {
    hash,
    namespace,
    rows: planned,
    jobs,
    retries,
    image,
    pullSecret: pull_secret,
    serviceAccount: service_account ?? "harness-loop",
    // Loops get the right to make Sandboxes only if they use them; otherwise they make bare pods.
    boxes: sandbox_resource === "always" ? "Sandbox" : "Pod",
    warmPool: warmPoolOf(settings, namespace, jobs),
    results,
    modelSecret: model_secret,
    queue,
    words,
    env,
  };
  try {
    batchRows(plan);
  } catch (thrown) {
    if (!(thrown instanceof RowsTooLarge)) throw thrown;
    throw new HarnessError(EXIT.usage, thrown.message, "split the rows into several batches", thrown);
  }
  return plan;
}

/** All objects, in an order in which they can be applied. */
export const manifestsOf = (plan: BatchPlan): readonly object[] => [
  ...loopRole({ ...plan, pool: plan.warmPool.length > 0 }),
  ...plan.warmPool,
  loopPolicy(plan),
  ...batchRows(plan),
  batchJob(plan),
];

/** Matches the boxes of the rows. Read-only boxes, and boxes with an environment, have pods of their own. */
function warmPoolOf(settings: Settings, namespace: string, jobs: number): readonly object[] {
  const { kubernetes, mode, memory, cpus, pids } = settings;
  const { warm_pool: pool } = kubernetes;
  const image = settings.image ?? kubernetes.image;
  if (pool === null || image === null || mode !== "workspace-write") return [];
  const box = {
    kind: "Claim",
    name: pool,
    namespace,
    image,
    pullPolicy: kubernetes.pull_policy,
    pullSecret: kubernetes.pull_secret,
    user: { uid: USER_ID, gid: USER_ID },
    mode,
    workspace: TREE_AT,
    network: settings.allow_domains.length > 0 || settings.on_ask === "park",
    limits: { memory, cpus: cpus ?? 1, pids },
    disk: kubernetes.disk,
    runtimeClass: kubernetes.runtime_class,
    seccomp: kubernetes.seccomp,
    nodeSelector: kubernetes.node_selector,
    brought: [],
    deadlineMs: kubernetes.deadline,
    owner: null,
    labels: {},
    annotations: {},
  } as const;
  return poolObjects(box, { pool, replicas: jobs, labels: { ...COMMON_LABELS, "dev.harness.part": "pool" } });
}

function refuseFlags(flags: Readonly<Record<string, unknown>>): void {
  for (const [name, instead] of Object.entries(NOT_THERE))
    if (flags[name] !== undefined)
      throw new HarnessError(EXIT.usage, `--${name} cannot be used with --on kubernetes`, instead);
  const isolation = flags["isolation"];
  if (typeof isolation === "string" && isolation !== "copy")
    throw new HarnessError(
      EXIT.usage,
      `--isolation ${isolation} cannot be used with --on kubernetes: a box there works on a copy`,
      "use --isolation copy, or leave it out",
    );
}

function needed(value: string | null, key: string, what: string): string {
  if (value !== null) return value;
  throw new HarnessError(
    EXIT.usage,
    `kubernetes.${key} is not set, and a batch in a cluster needs it: ${what}`,
    `harness config set kubernetes '{"${key}": "…", …}'`,
  );
}

function resultsPlace({ kubernetes }: Settings): ResultsPlace {
  const { results_claim: claim, results_bucket: bucket, model_secret } = kubernetes;
  if (claim !== null && bucket !== null)
    throw new HarnessError(
      EXIT.usage,
      "kubernetes.results_claim and kubernetes.results_bucket are both set, but results are saved in only one place",
      "leave one of them out: harness config set kubernetes '{…}'",
    );
  if (bucket === null)
    return {
      kind: "claim",
      claim: needed(
        claim,
        "results_claim",
        'a volume claim in the namespace, for results and sessions (or "results_bucket": "s3://…")',
      ),
    };
  needed(
    model_secret,
    "model_secret",
    "kubectl create secret generic NAME --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=… --from-literal=AWS_REGION=…",
  );
  return { kind: "bucket", address: bucket };
}

const modelKeyOf = ({ provider }: Settings): string =>
  provider === "anthropic" ? "ANTHROPIC_API_KEY" : provider === "ollama" ? "OLLAMA_HOST" : "HARNESS_BASE_URL";

/** Boxes get their own part of the Kubernetes settings; what only the loop's Job needs stays here. */
function loopEnvironment(settings: Settings): Readonly<Record<string, string>> {
  const entries = CARRIED.filter(
    (key) => JSON.stringify(settings[key]) !== JSON.stringify(DEFAULTS[key]),
  ).map((key) => [envNameOf(key), printable(key, settings[key])] as const);
  const {
    loop_image: _,
    results_claim: __,
    results_bucket: ___,
    model_secret: ____,
    queue: _____,
    service_account: ______,
    ...box
  } = settings.kubernetes;
  const usual: Readonly<Record<string, unknown>> = DEFAULTS.kubernetes;
  const set = Object.fromEntries(
    Object.entries(box).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(usual[key])),
  );
  return {
    ...Object.fromEntries(entries),
    HARNESS_ENGINE: "kubernetes:",
    [envNameOf("isolation")]: "copy",
    ...(Object.keys(set).length === 0 ? {} : { [envNameOf("kubernetes")]: printable("kubernetes", set) }),
  };
}

/** Each loop compares these limits with what the finished rows have spent, read from where results are kept. */
const budgetWords = (flags: Readonly<Record<string, unknown>>): readonly string[] =>
  ["max-time", "max-tokens", "max-cost"].flatMap((name) => {
    const value = flags[name];
    return typeof value === "string" ? [`--${name}=${value}`] : [];
  });

const MAX_SHOWN = 10;

async function plannedRows({
  rows,
  settings,
  environments,
}: Pick<ClusterPlanRequest, "rows" | "settings" | "environments">): Promise<readonly PlannedRow[]> {
  const problems: string[] = [];
  const planned: PlannedRow[] = [];
  for (const row of rows) {
    const read = await plannedRow(row, settings, environments);
    if (typeof read === "string") problems.push(`row ${row.row}: ${read}`);
    else planned.push(read);
  }
  if (problems.length === 0) return planned;
  const more = problems.length > MAX_SHOWN ? [`and ${problems.length - MAX_SHOWN} more rows`] : [];
  throw new HarnessError(
    EXIT.usage,
    [...problems.slice(0, MAX_SHOWN), ...more].join("\n"),
    'nothing was started; a row there is {"repo": "https://HOST/OWNER/NAME", "prompt": "…"}',
  );
}

/** The row as its pod reads it, or why it cannot run in a pod. */
async function plannedRow(
  { kind, target, prompt, check, limits, mode, env }: BatchRow,
  { env: usual }: Pick<Settings, "env">,
  environments: RowEnvironments,
): Promise<PlannedRow | string> {
  if (kind === "dir")
    return `${visibleLine(target)} is a folder on this machine, which pods cannot see: push it and give its address as "repo", or run the row here`;
  const named = await subjectNamed(target).catch((thrown: unknown) => {
    if (thrown instanceof HarnessError) return thrown.message;
    throw thrown;
  });
  if (typeof named === "string") return named;
  if (named.kind !== "git" || "path" in named.from)
    return `${visibleLine(target)} is on this machine, which pods cannot see: use its https:// address`;
  const { url } = named.from;
  if (url.protocol !== "https:")
    return `${visibleLine(target)}: without TLS, anyone on the network path could change it; use https://`;
  const wish = { repo: target, prompt, check, limits, mode, env };
  const row = { line: JSON.stringify(wish), clone: { url: url.href, ref: named.ref } };
  const environment = await environments.of(url, env ?? usual);
  if (typeof environment === "string") return environment;
  return environment === undefined
    ? row
    : { ...row, clone: { ...row.clone, tree: environment.workspace }, environment };
}

/**
 * Refuses grants that a loop could not honour as they are meant here, before anything is asked. A loop is the proxy of
 * its box: it gets the same words as a run here, and reads the values of secrets from its own variables, so that no
 * object of the cluster holds them except the user's Secret. `env`: the settings of the loop.
 */
function refuseUngrantable(
  { allow_domains, secrets, kubernetes }: Pick<Settings, "allow_domains" | "secrets" | "kubernetes">,
  env: Readonly<Record<string, string>>,
): void {
  const preset = allow_domains.find((text) => isPreset(text) && text !== "git");
  if (preset !== undefined)
    throw refused(
      `${preset} means the registries that this machine's tools are configured for, and a loop in a cluster does not have them`,
      `name its registry: --allow-domain ${preset}=registry.example.org:443`,
    );
  const names = Object.keys(secretHosts({ secrets }, namedIn(allow_domains)));
  // For these variables the Job's own value overrides the Secret's, and would be sent in its place.
  const own = names.find((name) => LOOP_VARIABLES.includes(name) || Object.hasOwn(env, name));
  if (own !== undefined)
    throw refused(
      `the loop of a row sets ${own} itself, so it cannot be a secret of yours there`,
      "give the secret another name, there and in the Secret of the loop",
    );
  if (names.length > 0 && kubernetes.model_secret === null)
    throw refused(
      `the value of ${names[0]} stays on this machine, and no Secret is set from which loops could read it`,
      `${toSecret("NAME", names)}, then: harness config set kubernetes '{"model_secret": "NAME", …}'`,
    );
}

const toSecret = (secret: string, names: readonly string[]): string =>
  `kubectl create secret generic ${secret}${names.map((name) => ` --from-literal=${name}=…`).join("")}`;

/** A note for users who set these values on this machine, and may not expect loops to read them elsewhere. */
export function secretNote(
  { secrets, kubernetes }: Pick<Settings, "secrets" | "kubernetes">,
  namespace: string,
): string | undefined {
  const names = Object.keys(secrets);
  if (names.length === 0) return undefined;
  return `${names.join(", ")}: loops read it from the Secret ${kubernetes.model_secret ?? ""} in the namespace ${namespace}, never from this machine`;
}

const refused = (message: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.usage, message, remedy);

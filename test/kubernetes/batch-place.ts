import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import { COMPILED } from "../fixtures/cli.ts";
import { ROOT } from "../fixtures/engine.ts";
import { AWAY, type Scratch, scratch } from "../fixtures/scratch.ts";
import { rowsText } from "../e2e/batch.ts";
import { type Model, type Replies, type Ran, startModel } from "../e2e/run-command.ts";
import { type ClusterApi, type KubeObject, look } from "./cluster-api.ts";
import type { Cluster } from "./cluster.ts";
import { NODE_ADDRESS } from "./cluster-places.ts";
import { type OwnSpace, ownSpace } from "./cluster-pods.ts";
import { type GitHost, gitHost } from "./git-host.ts";
import { loopImage } from "./loop-image.ts";

/** What all batches on one cluster share: the cluster has the loop's image and can reach a host of repositories. */
export interface Team extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly loop: string;
  /** Creates a repository with one commit; returns its https:// address for pods. */
  readonly repository: (name: string, files: Readonly<Record<string, string>>) => string;
}

export async function teamOn(cluster: Cluster): Promise<Team> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await scratch({}, AWAY));
  const host: GitHost = stack.use(await gitHost(place.at("git")));
  const image = stack.use(loopImage(host.authority));
  await cluster.load(image.name);
  const port = await cluster.letOut(host.port);
  const kept = stack.move();
  return {
    cluster,
    loop: image.name,
    repository: (name, files) => `https://${NODE_ADDRESS}:${port}${host.repository(name, files)}`,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** One team for all tests of a file; the first that needs it sets it up. */
export function sharedTeam(cluster: Cluster): AsyncDisposable & { readonly team: () => Promise<Team> } {
  const shared: { team?: Promise<Team> } = {};
  return {
    team: () => (shared.team ??= teamOn(cluster)),
    [Symbol.asyncDispose]: async () => (await shared.team)?.[Symbol.asyncDispose](),
  };
}

/** Why batches cannot be tested on this cluster, or false. */
export const noBatches = ({ release, network }: Cluster): string | false =>
  (release === "1.20" && "its Jobs have no back-off for each index") ||
  (network !== "enforced" && `boxes need a network that is shut: it is ${network}`);

export interface BatchPlace extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly space: OwnSpace;
  readonly place: Scratch;
  readonly model: Model;
  /** The folder of the result volume on this machine. */
  readonly results: string;
  readonly run: (...words: readonly string[]) => Promise<Ran>;
  /** Starts the coordinator as a process that can be killed. */
  readonly start: (...words: readonly string[]) => Started;
  /** The same, with further environment variables. */
  readonly startWith: (env: Readonly<Record<string, string>>, ...words: readonly string[]) => Started;
  readonly jobs: () => Promise<readonly KubeObject[]>;
}

export interface Started {
  readonly child: ChildProcess;
  readonly said: { stdout: string; stderr: string };
  readonly ended: Promise<Ran>;
}

const RIGHTS = { "dev.harness.part": "rights" };

interface PlaceExtras {
  /** Further secret variables of the loops, besides the model's address. */
  readonly secret?: Readonly<Record<string, string>>;
  /** Labels of the namespace. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A fully restricted namespace with everything that a batch needs according to the documentation, and nothing more. */
export async function batchPlace(
  team: Team,
  replies: Replies,
  settings: object = {},
  { secret = {}, labels = {} }: PlaceExtras = {},
): Promise<BatchPlace> {
  const { cluster } = team;
  const { api } = cluster;
  await using stack = new AsyncDisposableStack();
  const restricted = { "pod-security.kubernetes.io/enforce": "restricted" };
  const space = stack.use(await ownSpace(api, { ...restricted, ...labels }));
  const place = stack.use(await scratch({}, AWAY));
  const model = stack.use(await startModel(replies));
  const results = path.join(cluster.folder, "results", space.name);
  await volume(api, space, results);
  stack.defer(async () => {
    await api.ask("DELETE", `/api/v1/persistentvolumes/${space.name}`);
    await rm(results, { recursive: true, force: true });
  });
  const modelPort = await cluster.letOut(model.port);
  await api.must("POST", `/api/v1/namespaces/${space.name}/secrets`, {
    metadata: { name: "model" },
    stringData: { OLLAMA_HOST: `http://${NODE_ADDRESS}:${modelPort}`, ...secret },
  });
  const config = {
    provider: "ollama",
    chat_model: "coder:7b",
    memory: "256m",
    cpus: 0.2,
    ...settings,
    kubernetes: {
      image: cluster.image,
      loop_image: team.loop,
      results_claim: "results",
      model_secret: "model",
      ...(settings as { kubernetes?: object }).kubernetes,
    },
  };
  await place.write(".config/harness/config.json", JSON.stringify(config));
  await mkdir(place.at("work"));
  const start = starter(place, cluster);
  const on = `kubernetes:/${space.name}`;
  await applyRights(
    api,
    await start({}, "batch", await place.write("any.jsonl", anyRow), "--on", on, "--print-manifests").ended,
  );
  const kept = stack.move();
  const all = (words: readonly string[]): readonly string[] => ["batch", ...words, "--on", on, "--json"];
  const begin = (...words: readonly string[]): Started => start({}, ...all(words));
  return {
    cluster,
    space,
    place,
    model,
    results,
    start: begin,
    startWith: (env, ...words) => start(env, ...all(words)),
    run: (...words) => begin(...words).ended,
    jobs: () => api.list(`/apis/batch/v1/namespaces/${space.name}/jobs`),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const anyRow = `${JSON.stringify({ repo: "https://git.example/owner/r", prompt: "x" })}\n`;

/**
 * Applies the rights as `kubectl apply -l dev.harness.part=rights` does, those of a pool, and the policy of the loops.
 */
async function applyRights(api: ClusterApi, { code, stdout, stderr }: Ran): Promise<void> {
  if (code !== 0) throw new Error(`no manifests: ${stderr}`);
  const paths: Readonly<Record<string, string>> = {
    ServiceAccount: "api/v1",
    Role: "apis/rbac.authorization.k8s.io/v1",
    RoleBinding: "apis/rbac.authorization.k8s.io/v1",
    NetworkPolicy: "apis/networking.k8s.io/v1",
    SandboxTemplate: "apis/extensions.agents.x-k8s.io/v1beta1",
    SandboxWarmPool: "apis/extensions.agents.x-k8s.io/v1beta1",
  };
  for (const document of parseAllDocuments(stdout)) {
    const object: unknown = document.toJS();
    const kind = String(look(object, "kind"));
    const group = paths[kind];
    const isRight = Object.entries(RIGHTS).every(
      ([key, is]) => look(object, "metadata", "labels", key) === is,
    );
    const isPool = look(object, "metadata", "labels", "dev.harness.part") === "pool";
    if (group === undefined || (!isRight && !isPool && kind !== "NetworkPolicy")) continue;
    const resource = kind === "NetworkPolicy" ? "networkpolicies" : `${kind.toLowerCase()}s`;
    const space = String(look(object, "metadata", "namespace"));
    await api.must("POST", `/${group}/namespaces/${space}/${resource}`, object);
  }
}

async function volume(api: ClusterApi, space: OwnSpace, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o777);
  const common = { accessModes: ["ReadWriteMany"], storageClassName: "" };
  await api.must("POST", "/api/v1/persistentvolumes", {
    metadata: { name: space.name },
    spec: {
      ...common,
      capacity: { storage: "1Gi" },
      hostPath: { path: folder },
      claimRef: { namespace: space.name, name: "results" },
    },
  });
  await api.must("POST", `/api/v1/namespaces/${space.name}/persistentvolumeclaims`, {
    metadata: { name: "results" },
    spec: { ...common, resources: { requests: { storage: "1Gi" } }, volumeName: space.name },
  });
}

/** A batch of a few rows takes a while on two cores. */
const PATIENCE_MS = 15 * 60_000;

function starter(
  place: Scratch,
  cluster: Cluster,
): (more: Readonly<Record<string, string>>, ...words: readonly string[]) => Started {
  return (more, ...words) => {
    const own = { PATH: process.env["PATH"], HOME: place.path, KUBECONFIG: cluster.kubeconfig };
    const env = { ...own, ...COMPILED, ...more };
    const child = spawn(path.join(ROOT, "bin/harness"), words, {
      cwd: place.at("work"),
      env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: PATIENCE_MS,
    });
    const said = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => (said.stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (said.stderr += chunk.toString()));
    const { promise: ended, resolve, reject } = Promise.withResolvers<Ran>();
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...said }));
    return { child, said, ended };
  };
}

/** Rows whose task is a command, each with its own repository; an object gives the row's keys. */
export function tasksOf(
  { repository }: Team,
  { place, space }: BatchPlace,
  rows: readonly (string | object)[],
): Promise<string> {
  const all = rows.map((row, at) => ({
    repo: repository(`${space.name}-${at}`, { "notes.txt": "one\n" }),
    ...(typeof row === "string" ? { prompt: `Change the notes. do: ${row}` } : row),
  }));
  return place.write("tasks.jsonl", rowsText(all));
}

/** The files of a row in the result volume, by extension. */
export async function keptOf(results: string, row: number): Promise<ReadonlyMap<string, string>> {
  const [hash = ""] = await readdir(results);
  const folders = await readdir(path.join(results, hash));
  const folder = folders.find((name) => name.startsWith(`${row}-`));
  if (folder === undefined) return new Map();
  const at = path.join(results, hash, folder);
  const ends = (await readdir(at)).map(
    (name) => [name.replace(/^\d+-[0-9a-f]{16}\./, ""), path.join(at, name)] as const,
  );
  return new Map(ends);
}

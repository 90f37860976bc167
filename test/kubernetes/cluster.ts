/**
 * `node test/kubernetes/cluster.ts up|down|status [--name NAME] [--release 1.20|1.33] [--network none|open|enforced]`:
 * a real Kubernetes on this machine's loopback, for tests and for use by hand. `up` leaves it running and prints its
 * kubeconfig.
 */
import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "../fixtures/loopback-port.ts";
import { image } from "../fixtures/engine.ts";
import { ClusterApi } from "./cluster-api.ts";
import type { GateOrder } from "./cluster-gate.ts";
import { loadImages, loadInto } from "./cluster-images.ts";
import { cgroupOf, ENGINE_SOCKET, type Network, NETWORKS, type Part, type Plan } from "./cluster-parts.ts";
import { folderOf } from "./cluster-places.ts";
import { clusterPrograms, noCluster, type Release, RELEASES } from "./cluster-programs.ts";

export interface Cluster extends AsyncDisposable {
  readonly name: string;
  readonly folder: string;
  readonly version: string;
  readonly release: Release;
  readonly network: Network;
  /** The kubeconfig of an administrator, over this machine's loopback. */
  readonly kubeconfig: string;
  /** The sandbox image in the cluster. */
  readonly image: string;
  readonly api: ClusterApi;
  readonly kill: (part: Part) => Promise<void>;
  readonly stop: (part: Part) => Promise<void>;
  readonly start: (part: Part) => Promise<void>;
  /** Sets how connections from outside to the API server behave. */
  readonly gate: (order: GateOrder) => Promise<void>;
  /** Forwards a port of the machine's loopback into the cluster; returns its address for pods. */
  readonly letOut: (port: number) => Promise<number>;
  /** Lets the node itself, but not its pods, reach the same address as this machine: 127.0.0.1 and this port. */
  readonly letNodeOut: (port: number) => Promise<void>;
  readonly load: (reference: string) => Promise<void>;
}

export interface ClusterOptions {
  readonly name: string;
  readonly release?: Release;
  readonly network?: Network;
  /** The cluster outlives this process and is ended by `takeDown`. */
  readonly stays?: boolean;
  readonly podPids?: number;
  readonly say?: (line: string) => void;
}

const plans = (name: string): string => path.join(folderOf(name), "plan.json");

/**
 * Starts a cluster and waits until its node accepts pods; a leftover cluster with the same name is taken down first.
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { name, network = "enforced", stays = false, podPids = 1024, say = () => undefined } = options;
  const { release = "1.20" } = options;
  const none = noCluster(release);
  if (none !== false) throw new Error(`no cluster here: ${none}`);
  const programs = await clusterPrograms(release, say);
  await takeDown(name);
  const folder = folderOf(name);
  await mkdir(folder, { recursive: true });
  const plan: Plan = {
    name,
    folder,
    network,
    podPids,
    port: await freePort(),
    programs: programs.folder,
    version: programs.version,
    release,
  };
  await writeFile(plans(name), JSON.stringify({ ...plan, image }));
  say(`Kubernetes ${plan.version} comes up in ${folder} …`);
  const keeper = startKeeper(plan, stays);
  try {
    await Promise.all([
      waitFor(keeper, path.join(folder, "ready"), 240_000),
      waitFor(keeper, path.join(folder, ENGINE_SOCKET), 60_000).then(() => loadImages(plan)),
    ]);
  } catch (thrown) {
    keeper.kill();
    throw new Error(`${String(thrown)}\n${await lastWords(folder)}`, { cause: thrown });
  }
  if (stays) keeper.unref();
  return attached(name);
}

/** Its namespaces end with it, and with them everything that it started. */
function startKeeper(plan: Plan, stays: boolean): ReturnType<typeof spawn> {
  const log = openSync(path.join(plan.folder, "keeper.log"), "a");
  const apart = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"];
  const node = [process.execPath, path.join(import.meta.dirname, "cluster-keeper.ts"), plans(plan.name)];
  // The first process of a namespace adopts orphans and must reap them: a shell does, Node does not.
  const words = [...apart, "sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait $!', "sh", ...node];
  const child = spawn("unshare", [...words, ...(stays ? ["stays"] : [])], {
    detached: true,
    stdio: [stays ? "ignore" : "pipe", log, log],
  });
  closeSync(log);
  return child;
}

async function waitFor(keeper: ReturnType<typeof spawn>, file: string, patienceMs: number): Promise<void> {
  const patience = AbortSignal.timeout(patienceMs);
  while (!existsSync(file)) {
    if (keeper.exitCode !== null || keeper.signalCode !== null)
      throw new Error("the cluster's keeper has ended");
    if (patience.aborted) throw new Error(`the cluster does not come up: no ${file}`);
    await sleep(50);
  }
}

async function lastWords(folder: string): Promise<string> {
  const logs = [path.join(folder, "keeper.log")];
  const more = await readdir(path.join(folder, "logs")).catch(() => []);
  logs.push(...more.map((name) => path.join(folder, "logs", name)));
  const told = logs.map(async (file) => {
    const lines = (await readFile(file, "utf8").catch(() => "")).trimEnd().split("\n").slice(-6);
    return `--- ${file}\n${lines.join("\n")}`;
  });
  return (await Promise.all(told)).join("\n");
}

/** Sends an order to a cluster's keeper and returns the answer. */
async function order(folder: string, method: string, url: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const asked = request(
    // A kept-alive connection would have ended by the time a test that built an image comes back.
    { socketPath: path.join(folder, "control"), method, path: url, timeout: 30_000, agent: false },
    (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () =>
        answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text)),
      );
    },
  );
  asked.once("error", reject);
  asked.end();
  return promise;
}

/** Attaches to a running cluster, whoever started it; only its owner may dispose of it. */
export async function attached(name: string): Promise<Cluster> {
  const folder = folderOf(name);
  const plan = JSON.parse(await readFile(plans(name), "utf8")) as Plan & { readonly image: string };
  const told = async (url: string): Promise<unknown> => order(folder, "POST", url);
  return {
    name,
    folder,
    version: plan.version,
    release: plan.release,
    network: plan.network,
    image: plan.image,
    kubeconfig: path.join(folder, "kubeconfig"),
    api: await ClusterApi.of(path.join(folder, "kubeconfig")),
    kill: async (part) => void (await told(`/stop?part=${part}&kill=1`)),
    stop: async (part) => void (await told(`/stop?part=${part}`)),
    start: async (part) => void (await told(`/start?part=${part}`)),
    gate: async (wanted) => void (await told(`/gate?order=${encodeURIComponent(JSON.stringify(wanted))}`)),
    letOut: async (port) => ((await told(`/out?port=${port}`)) as { port: number }).port,
    letNodeOut: async (port) => void (await told(`/out?port=${port}&node=1`)),
    load: (reference) => loadInto(plan, reference),
    [Symbol.asyncDispose]: () => takeDown(name),
  };
}

const CGROUPS = "/sys/fs/cgroup";

/** Removes control group folders once they are empty, the innermost first. */
async function removeGroups(folder: string): Promise<void> {
  const inner = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of inner) if (entry.isDirectory()) await removeGroups(path.join(folder, entry.name));
  await rmdir(folder).catch(() => undefined);
}

/** Process ids, on this machine, of keepers with this plan. */
function keepersOf(name: string): readonly number[] {
  const found = spawnSync("pgrep", ["-f", `cluster-keeper.ts ${plans(name)}`], { encoding: "utf8" });
  return found.stdout.split("\n").filter(Boolean).map(Number);
}

/** Ends a cluster and removes everything that it created. There may be none. */
async function takeDown(name: string): Promise<void> {
  const folder = folderOf(name);
  if (!existsSync(folder)) return;
  await order(folder, "POST", "/down").catch(() => undefined);
  const patience = AbortSignal.timeout(70_000);
  while (keepersOf(name).length > 0 && !patience.aborted) await sleep(100);
  for (const pid of keepersOf(name)) process.kill(pid, "SIGKILL");
  while (keepersOf(name).length > 0) await sleep(100);
  for (const group of await readdir(CGROUPS)) {
    await removeGroups(path.join(CGROUPS, group, cgroupOf(name)));
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
}

const toldAside = (line: string): void => void process.stderr.write(`${line}\n`);

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      name: { type: "string", default: "hand" },
      network: { type: "string", default: "enforced" },
      release: { type: "string", default: "1.33" },
    },
  });
  const { name } = values;
  const network = NETWORKS.find((one) => one === values.network);
  const release = RELEASES.find((one) => one === values.release);
  const none = release !== undefined && noCluster(release);
  if (none !== false || release === undefined || network === undefined || positionals.length !== 1) {
    toldAside(
      none === false
        ? "usage: cluster.ts up|down|status [--name NAME] [--release 1.20|1.33] [--network none|open|enforced]"
        : none,
    );
    process.exitCode = 2;
  } else if (positionals[0] === "up") {
    const { kubeconfig } = await startCluster({ name, network, release, stays: true, say: toldAside });
    process.stdout.write(`${kubeconfig}\n`);
  } else if (positionals[0] === "down") {
    await takeDown(name);
  } else {
    process.stdout.write(`${JSON.stringify(await order(folderOf(name), "GET", "/"))}\n`);
  }
}

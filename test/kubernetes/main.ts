/**
 * `npm run test:kubernetes [-- --release 1.20|1.33] [--network none|open|enforced] [FILE…]`: runs suites on a real
 * Kubernetes, which it starts on this machine's loopback and removes with everything it created. Run by hand, apart
 * from the tests: it needs root, the distribution's packages and the Docker engine. Exits with 2 if there can be no
 * cluster, with 1 if something is wrong.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { type Cluster, startCluster } from "./cluster.ts";
import { NETWORKS, type Network } from "./cluster-parts.ts";
import { noCluster, type Release, RELEASES } from "./cluster-programs.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    release: { type: "string", multiple: true },
    network: { type: "string", multiple: true },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const ROOT = path.join(import.meta.dirname, "../..");

/** Needs boxes, which exist only if a network can be proven shut. */
const CONTRACT = "test/contract/box-kubernetes.engine.test.ts";

function suites(): readonly string[] {
  const all = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".cluster.test.ts"))
    .map((name) => `test/kubernetes/${name}`)
    .concat(CONTRACT);
  return positionals.length === 0 ? all : all.filter((file) => positionals.some((one) => file.endsWith(one)));
}

/** Saves the logs of a cluster's parts; returns their folder. */
async function keepLogs({ folder, name }: Cluster): Promise<string> {
  const kept = path.join(ROOT, "node_modules/.cache/kubernetes-logs", name);
  await rm(kept, { recursive: true, force: true });
  for (const log of ["logs", "keeper.log", "var-log/pods"])
    await cp(path.join(folder, log), path.join(kept, log), { recursive: true });
  return path.relative(ROOT, kept);
}

/** Whether everything succeeded on a cluster of this kind. */
async function green(release: Release, network: Network, files: readonly string[]): Promise<boolean> {
  const these = files.filter((file) => network === "enforced" || file !== CONTRACT);
  if (these.length === 0) return true;
  await using cluster = await startCluster({ name: `tests-${release}-${network}`, release, network, say });
  // With such an admission all boxes of the contract must comply; older versions treat this as a mere label.
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await cluster.api.must("PATCH", "/api/v1/namespaces/default", { metadata: { labels } });
  say(`Kubernetes ${cluster.version}, network ${network}: ${cluster.kubeconfig}`);
  const env = {
    ...process.env,
    HARNESS_TEST_KUBERNETES: cluster.name,
    HARNESS_TEST_CLUSTER: `${cluster.kubeconfig} ${cluster.image}`,
  };
  const words = ["--test", "--test-concurrency=1", "--test-reporter=spec", ...these];
  const child = spawn(process.execPath, words, { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"] });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0)
    say(`red on ${release}, network ${network}; what the cluster's parts said: ${await keepLogs(cluster)}`);
  return code === 0;
}

const networks = (values.network ?? NETWORKS).map((name) => NETWORKS.find((one) => one === name));
const releases = (values.release ?? RELEASES).map((name) => RELEASES.find((one) => one === name));
const files = suites();
if (networks.includes(undefined) || releases.includes(undefined) || files.length === 0) {
  say(
    `there are the releases ${RELEASES.join(", ")}, the networks ${NETWORKS.join(", ")} and the files test/kubernetes/*.cluster.test.ts`,
  );
  process.exitCode = 2;
} else {
  for (const release of releases.filter((one) => one !== undefined)) {
    const none = noCluster(release);
    if (none !== false) say(`no cluster of ${release} here: ${none}`);
    if (none !== false) process.exitCode ||= 2;
    else
      for (const network of networks.filter((one) => one !== undefined))
        if (!(await green(release, network, files))) process.exitCode = 1;
  }
}

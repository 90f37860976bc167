import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import type { OwnedBox } from "../src/core/ports.ts";
import { type Cluster, clusterOf } from "../src/kubernetes/cluster.ts";
import { untilRunning } from "../src/kubernetes/pod-watch.ts";
import { startPodBox } from "../src/kubernetes/start-pod-box.ts";
import { podRequest } from "../test/fixtures/pod-request.ts";
import { ground } from "./boxes.ts";
import { type Figure, inTurn, type Measured, timed } from "./figure.ts";

/** `HARNESS_TEST_CLUSTER=KUBECONFIG IMAGE`: a cluster for this measurement, whose nodes have the image. */
const [kubeconfig = "", image = ""] = (process.env["HARNESS_TEST_CLUSTER"] ?? "").split(" ");
const NEVER = new AbortController().signal;
const MEMORY = 2 ** 29;

interface Pods extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly open: () => Promise<OwnedBox>;
}

async function pods(): Promise<Pods> {
  const place = await mkdtemp("/var/tmp/harness-bench-");
  const workspace = path.join(place, "work");
  await mkdir(workspace);
  await writeFile(path.join(workspace, "file"), "text\n");
  const user = { env: { KUBECONFIG: kubeconfig }, home: homedir() };
  const cluster = await clusterOf({ context: null, namespace: null }, user);
  const maker = {
    cluster,
    uid: process.getuid?.() ?? 0,
    home: homedir(),
    stateDir: path.join(place, "state"),
    pod: null,
    onWarning: () => undefined,
  };
  const request = podRequest(workspace, image);
  return {
    cluster,
    open: () => startPodBox(maker, request, NEVER),
    [Symbol.asyncDispose]: () => rm(place, { recursive: true, force: true }),
  };
}

/** A pod without anything of harness: created, seen running and removed, like the box's pod. */
async function bare(cluster: Cluster): Promise<void> {
  const name = `bare-${randomBytes(6).toString("hex")}`;
  const amounts = { memory: String(MEMORY), cpu: "500m" };
  const container = {
    name: "box",
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["sleep", "600"],
    resources: { limits: amounts, requests: amounts },
  };
  const spec = { restartPolicy: "Never", terminationGracePeriodSeconds: 0, containers: [container] };
  const body = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
  await cluster.call(cluster.at("pods"), { method: "POST", body });
  await untilRunning(cluster, { name }, "box", {
    signal: NEVER,
    scheduleMs: 60_000,
    onWarning: () => undefined,
  });
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  await cluster.call(`${cluster.at("pods")}/${name}`, { method: "DELETE", body: options });
}

const KEEP = { head: 64 * 1024, tail: 0 };

async function runTrue(box: OwnedBox): Promise<void> {
  const { exit_code, reason } = await box.exec(
    { words: ["/bin/true"], timeoutMs: 60_000, keep: KEEP },
    NEVER,
  );
  if (exit_code !== 0) throw new Error(reason);
}

async function whole(): Promise<Measured> {
  await using place = await pods();
  const work = async (): Promise<void> => {
    await using box = await place.open();
    await runTrue(box);
  };
  return await inTurn(
    11,
    () => timed(work),
    () => timed(() => bare(place.cluster)),
  );
}

async function command(): Promise<Measured> {
  await using place = await pods();
  await using here = await ground();
  await using pod = await place.open();
  await using docker = await here.startBox();
  return await inTurn(
    300,
    () => timed(() => runTrue(pod)),
    () => timed(() => runTrue(docker)),
  );
}

/** Only if a cluster is named: no machine has one by default. */
export const PODS: readonly Figure[] =
  kubeconfig === ""
    ? []
    : [
        {
          name: "pods.run",
          unit: "ms",
          against: "a bare pod: made, running, removed",
          hold: 1.2,
          measure: whole,
        },
        {
          name: "pods.command",
          unit: "ms",
          against: "one in a Docker box",
          hold: 2,
          measure: command,
        },
      ];

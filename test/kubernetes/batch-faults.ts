import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeObject, look } from "./cluster-api.ts";
import type { Cluster } from "./cluster.ts";
import { cgroupOf } from "./cluster-parts.ts";
import { NODE } from "./cluster-places.ts";
import type { BatchPlace, Started } from "./batch-place.ts";

/** Faults of a batch in a real cluster, and when to cause them. */

const INDEX = "batch.kubernetes.io/job-completion-index";
export const indexOf = (pod: KubeObject): string | undefined => pod.metadata.labels?.[INDEX];
export const isBox = (pod: KubeObject): boolean => pod.metadata.labels?.["dev.harness.pod"] !== undefined;
export const phase = (pod: KubeObject): unknown => look(pod, "status", "phase");

/** The pods of the namespace, once they satisfy `are`. */
export async function pods(
  { space, cluster: { api } }: BatchPlace,
  are: (pods: readonly KubeObject[]) => boolean,
): Promise<readonly KubeObject[]> {
  const found = await api.until(
    space.pods,
    ({ body }) => are((body["items"] ?? []) as KubeObject[]),
    PATIENCE_MS,
  );
  return found["items"] as KubeObject[];
}

const PATIENCE_MS = 240_000;

export interface UnderWay {
  readonly loop: KubeObject;
  readonly box: KubeObject;
}

/** The box and the loop of each row whose box is running. */
export function loopsIn(all: readonly KubeObject[]): readonly UnderWay[] {
  return all.flatMap((box) => {
    if (!isBox(box) || phase(box) !== "Running" || look(box, "metadata", "deletionTimestamp") !== undefined)
      return [];
    const owner = look(box, "metadata", "ownerReferences", 0, "name");
    const loop = all.find(({ metadata }) => metadata.name === owner);
    return loop === undefined || phase(loop) !== "Running" ? [] : [{ loop, box }];
  });
}

/** The loop and the box of a row while a command is running in the box. */
export async function underWay(place: BatchPlace): Promise<UnderWay> {
  const before = place.model.asked().length;
  const all = await pods(place, (now) => loopsIn(now).length > 0 && place.model.asked().length > before);
  const [first] = loopsIn(all);
  return first ?? assert.fail("no loop is under way");
}

export async function untilPrinted(started: Started, words: RegExp): Promise<void> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  while (!words.test(started.said.stderr)) {
    assert.ok(!patience.aborted && started.child.exitCode === null, started.said.stderr);
    await sleep(100);
  }
}

export const nothingLeft = (place: BatchPlace): Promise<unknown> =>
  pods(place, (now) => now.every((pod) => !isBox(pod)));

async function evict({ space, cluster: { api } }: BatchPlace, { metadata }: KubeObject): Promise<void> {
  const { name } = metadata;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
  const { status } = await api.ask("POST", `${space.pods}/${name}/eviction`, body);
  // A box is deleted with its loop.
  assert.ok(status < 300 || (status === 404 && isBox({ metadata })), String(status));
}

/** Retries until it succeeds, since the API server may be away meanwhile. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
  for (const patience = AbortSignal.timeout(PATIENCE_MS); ;) {
    try {
      return await work();
    } catch (thrown) {
      if (patience.aborted) throw thrown;
      await sleep(1000);
    }
  }
}

/** Drains these pods as `kubectl drain` does; the node accepts pods again after `then`. */
export async function drained(
  place: BatchPlace,
  these: readonly KubeObject[],
  then: () => Promise<unknown>,
): Promise<void> {
  const { api } = place.cluster;
  const node = `/api/v1/nodes/${NODE}`;
  await again(() => api.must("PATCH", node, { spec: { unschedulable: true } }));
  try {
    await Promise.all(these.map((pod) => evict(place, pod)));
    await then();
  } finally {
    await again(() => api.must("PATCH", node, { spec: { unschedulable: null } }));
  }
}

/**
 * Sets the loop's memory limit to its present use while another process in its group wants more: the kernel first kills
 * processes with a high score, which are the loop's own.
 */
export function starve(cluster: Cluster, loop: KubeObject): void {
  const group = `/sys/fs/cgroup/memory/${cgroupOf(cluster.name)}`;
  const statuses = look(loop, "status", "containerStatuses") as readonly object[];
  const id = String(look(statuses[0], "containerID")).replace("containerd://", "");
  const all: readonly string[] = readdirSync(group, { recursive: true, encoding: "utf8" });
  const folder = all.find((name) => name.endsWith(id));
  assert.ok(folder !== undefined, `no group of ${id}`);
  const at = path.join(group, folder);
  const used = Number(readFileSync(path.join(at, "memory.usage_in_bytes"), "utf8"));
  writeFileSync(path.join(at, "memory.limit_in_bytes"), String(used + 2 ** 24));
  const wants = "import time; x = bytearray(2 ** 29); time.sleep(2)";
  const line = `echo $$ > '${at}/cgroup.procs'; exec timeout 20 python3 -c '${wants}'`;
  spawn("sh", ["-c", line], { stdio: "ignore" });
}

/** Checks what a watch is told that continues from an old version. */
export async function tooOld({ space, cluster: { api } }: BatchPlace, from = ""): Promise<void> {
  const said: string[] = [];
  for await (const { type, object } of api.watch(
    `${space.pods}?watch=1&resourceVersion=${from}&timeoutSeconds=1`,
    AbortSignal.timeout(30_000),
  ))
    said.push(`${type} ${String(look(object, "code"))}`);
  assert.deepEqual(said, ["ERROR 410"]);
}

import { createHash, randomUUID } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import * as z from "zod";
import { BOX_LABEL, boxOf, liveness, UID_LABEL } from "../boxes/box-record.ts";
import { errorCode, HarnessError, reasonOf } from "../core/errors.ts";
import type { ListedBox } from "../core/ports.ts";
import { makeFolder } from "../platform/folders.ts";
import { CLAIMS, SANDBOXES, servesClaims, servesSandboxes } from "./agent-sandbox.ts";
import { ApiFailure, type Cluster } from "./cluster.ts";
import { POLICIES } from "./network-proof.ts";
import { field } from "./pod-readback.ts";
import { type BoxKind, NAME_LABEL, POLICY_PARTS, policyName, type PodOwner } from "./pod-spec.ts";
import { podIfAny, refusalOf } from "./pod-watch.ts";

/**
 * Label on pods and policies: the machine and the state folder that created them. Owners are processes, and a pid that
 * is dead on this machine may be alive on another: only objects with this label's own value are judged.
 */
export const HOME_LABEL = "dev.harness.home";

export async function homeOf(stateDir: string): Promise<string> {
  const file = path.join(stateDir, "cluster-home");
  const id = (await idIn(file)) ?? (await madeId(file));
  return createHash("sha256").update(`${hostname()} ${id}`).digest("hex").slice(0, 16);
}

/** Undefined if there is no id, or only what a kill left of one. */
async function idIn(file: string): Promise<string | undefined> {
  try {
    const text = await readFile(file, "utf8");
    return /^[0-9a-f-]{36}$/.test(text) ? text : undefined;
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

/**
 * If several processes begin at once, all get the same id: the file is complete before it gets its name, and the name
 * is given once.
 */
async function madeId(file: string): Promise<string> {
  const id = randomUUID();
  const aside = `${file}.${id}`;
  makeFolder(path.dirname(file));
  try {
    await writeFile(aside, id, { flag: "wx", mode: 0o600 });
    await link(aside, file).catch(async (thrown: unknown) => {
      // The file is damaged, or the file system has no hard links.
      if ((await idIn(file)) === undefined) await rename(aside, file);
      else if (errorCode(thrown) !== "EEXIST") throw thrown;
    });
  } finally {
    await rm(aside, { force: true });
  }
  return (await idIn(file)) ?? id;
}

/**
 * The pod that this process runs in, if the environment names it: the machine and state folder of a loop in a cluster
 * end with it, so nobody would come back to reap. A pod of another namespace cannot own anything here.
 */
export function loopPod(
  env: Readonly<Record<string, string | undefined>>,
  namespace: string,
): PodOwner | null {
  const { HARNESS_POD_NAME: name, HARNESS_POD_UID: uid, HARNESS_POD_NAMESPACE: own } = env;
  return name === undefined || uid === undefined || own !== namespace ? null : { name, uid };
}

const texts = z.record(z.string(), z.string()).nullish();
const form = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({
        name: z.string(),
        creationTimestamp: z.string().catch(""),
        labels: texts,
        annotations: texts,
      }),
      status: z.looseObject({ phase: z.string().optional() }).optional(),
    }),
  ),
});

type Item = z.infer<typeof form>["items"][number];

interface PodOrigin {
  readonly uid: number;
  readonly stateDir: string;
}

const KINDS = ["claim", "sandbox", "pod", "policy"] as const;
type Kind = (typeof KINDS)[number];

const WHERE: Readonly<Record<Kind, (cluster: Cluster) => string>> = {
  claim: CLAIMS,
  sandbox: SANDBOXES,
  pod: (cluster) => cluster.at("pods"),
  policy: POLICIES,
};

const whereOf = (cluster: Cluster, kind: Kind): string => WHERE[kind](cluster);

/** Kinds that not every cluster has. */
const SERVED: Partial<Readonly<Record<Kind, (cluster: Cluster) => Promise<boolean>>>> = {
  claim: servesClaims,
  sandbox: servesSandboxes,
};

async function ownItems(
  cluster: Cluster,
  kind: Kind,
  { uid, stateDir }: PodOrigin,
): Promise<readonly Item[]> {
  if ((await SERVED[kind]?.(cluster)) === false) return [];
  const labels = `${BOX_LABEL}=1,${UID_LABEL}=${uid},${HOME_LABEL}=${await homeOf(stateDir)}`;
  const query = new URLSearchParams({ labelSelector: labels }).toString();
  try {
    return form.parse(await cluster.call(`${whereOf(cluster, kind)}?${query}`)).items;
  } catch (thrown) {
    // Without the right to list them, none were created: that right is checked first.
    if (SERVED[kind] !== undefined && isForbidden(thrown)) return [];
    throw refusalOf(thrown);
  }
}

const isForbidden = (thrown: unknown): boolean => thrown instanceof ApiFailure && thrown.status === 403;

const PREFIX = "harness-";

/**
 * Every box of this user that was created here, running or not, the oldest first; a Sandbox is listed as its pod, if it
 * has one, and a box from a pool as its claim.
 */
export async function listPods(cluster: Cluster, mine: PodOrigin): Promise<readonly ListedBox[]> {
  const alive = liveness();
  const [pods = [], sandboxes = [], claims = []] = await Promise.all(
    (["pod", "sandbox", "claim"] as const).map((kind) => ownItems(cluster, kind, mine)),
  );
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  const lone = sandboxes
    .filter(({ metadata }) => !names.has(metadata.name))
    .map(({ metadata }) => ({ metadata, status: { phase: "no pod" } }));
  const claimed = claims.map(({ metadata, status }) => ({
    metadata,
    status: { phase: field(status, "sandbox", "podIPs", "0") === undefined ? "no pod" : "running" },
  }));
  const boxes = [...pods, ...lone, ...claimed].map(async ({ metadata, status }): Promise<ListedBox> => {
    const record = boxOf(metadata.annotations);
    const { owner } = record ?? {};
    return {
      id: metadata.name.slice(PREFIX.length),
      workspace: record?.workspace ?? null,
      mode: record?.mode ?? null,
      isolation: record?.isolation ?? null,
      owner: owner === undefined ? null : { pid: owner.pid, alive: await alive(owner) },
      // One clock for all boxes: the clock of the creating process may have been set since.
      created: metadata.creationTimestamp || (record?.created ?? ""),
      state: (status?.phase ?? "unknown").toLowerCase(),
      parked: null,
    };
  });
  return (await Promise.all(boxes)).toSorted((a, b) => a.created.localeCompare(b.created));
}

/** The name of the pod with this id from `listPods`. */
export const podNamed = (id: string): string => `${PREFIX}${id}`;

/**
 * Removes first what would recreate the pod, then the pod, then its policies: they must stand as long as the pod. False
 * if the pod was gone already. `kind`: what was created for the box, if known.
 */
export async function removeBoxPod(cluster: Cluster, name: string, kind?: BoxKind): Promise<boolean> {
  if (kind === "Claim" || (kind === undefined && (await servesClaims(cluster))))
    if (await deletedClaim(cluster, name, kind)) return true;
  const had = kind === "Sandbox" || kind === undefined ? await deletedSandbox(cluster, name, kind) : false;
  const was = await deletedIfThere(cluster, `${whereOf(cluster, "pod")}/${name}`);
  await Promise.all(
    POLICY_PARTS.map((part) =>
      deletedIfThere(cluster, `${whereOf(cluster, "policy")}/${policyName({ name }, part)}`),
    ),
  );
  return was || had;
}

/**
 * Deleting the claim deletes its pod, and then the pod's policies. The policy made before there was a pod has no owner.
 */
async function deletedClaim(cluster: Cluster, name: string, kind: BoxKind | undefined): Promise<boolean> {
  const had = await deletedIfThere(cluster, `${whereOf(cluster, "claim")}/${name}`).catch(
    (thrown: unknown) => {
      // Without the right to remove claims, none were created.
      if (kind === undefined && thrown instanceof HarnessError && isForbidden(thrown.cause)) return false;
      throw thrown;
    },
  );
  await deletedIfThere(cluster, `${whereOf(cluster, "policy")}/${policyName({ name }, "first")}`);
  return had;
}

async function deletedSandbox(cluster: Cluster, name: string, kind: BoxKind | undefined): Promise<boolean> {
  if (kind === undefined && !(await servesSandboxes(cluster))) return false;
  try {
    return await deletedIfThere(cluster, `${SANDBOXES(cluster)}/${name}`);
  } catch (thrown) {
    if (kind === undefined && !(await isOfSandbox(cluster, name))) return false;
    throw thrown;
  }
}

async function isOfSandbox(cluster: Cluster, name: string): Promise<boolean> {
  const owners = (await podIfAny(cluster, { name }))?.metadata?.ownerReferences ?? [];
  return owners.some((owner) => owner.controller === true && owner.kind === "Sandbox");
}

async function deletedIfThere(cluster: Cluster, where: string): Promise<boolean> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  try {
    await cluster.call(where, { method: "DELETE", body });
    return true;
  } catch (thrown) {
    if (thrown instanceof ApiFailure && thrown.status === 404) return false;
    throw refusalOf(thrown);
  }
}

export interface PodLeftover {
  readonly kind: string;
  readonly id: string;
  readonly reason: string;
}

/** Removes Sandboxes, pods and policies whose process is gone; returns those that could not be removed. */
export async function reapPods(cluster: Cluster, mine: PodOrigin): Promise<readonly PodLeftover[]> {
  const alive = liveness();
  const failed: PodLeftover[] = [];
  const claims = new Set<string>();
  for (const kind of KINDS)
    for (const { metadata } of await ownItems(cluster, kind, mine)) {
      const owner = boxOf(metadata.labels)?.owner;
      // A policy must stay as long as its pod, and a pod as long as what would recreate it.
      const pod = metadata.labels?.[NAME_LABEL];
      if (owner === undefined || failed.some(({ id }) => id === pod) || (await alive(owner))) continue;
      // The policy of a claim's pod is deleted after the pod.
      if (kind === "policy" && pod === metadata.name && claims.has(pod)) continue;
      if (kind === "claim") claims.add(metadata.name);
      await deletedIfThere(cluster, `${whereOf(cluster, kind)}/${metadata.name}`).catch((thrown: unknown) =>
        failed.push({ kind, id: metadata.name, reason: reasonOf(thrown) }),
      );
    }
  return failed;
}

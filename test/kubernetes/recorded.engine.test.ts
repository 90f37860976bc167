import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import test from "node:test";
import { ApiFailure, clusterOf } from "../../src/kubernetes/cluster.ts";
import { isRunning, type PodState, refusalOf } from "../../src/kubernetes/pod-watch.ts";
import { readbackDifferences } from "../../src/kubernetes/pod-readback.ts";
import type { JsonObject } from "../../src/kubernetes/pod-spec.ts";
import { image, skip } from "../fixtures/engine.ts";
import { stubPlace } from "./stub-pods.ts";

interface Said {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

/** A real API server's answers to a pod of this adapter, and its version of the pod. */
const recorded = JSON.parse(
  readFileSync(path.join(import.meta.dirname, "../fixtures/kubernetes/recorded-1.20.json"), "utf8"),
) as {
  readonly sent: JsonObject;
  readonly posted: JsonObject & { readonly spec: JsonObject };
  readonly running: PodState;
  readonly clash: Said;
  readonly gone: Said;
  readonly quota: Said;
};

test("a real server's version of a pod is accepted, and its error messages are recognised", () => {
  assert.deepEqual(readbackDifferences(recorded.sent, recorded.posted), []);
  assert.deepEqual(readbackDifferences(recorded.sent, recorded.running), []);
  assert.equal(isRunning(recorded.running, "box"), true);
  const { status, reason, message } = recorded.quota;
  assert.match(refusalOf(new ApiFailure(status, reason, message)).message, /: quota: /);
});

const said = (thrown: unknown): Said => {
  assert.ok(thrown instanceof ApiFailure);
  return { status: thrown.status, reason: thrown.reason, message: thrown.message };
};

test("the stub changes a pod as the real server did, and refuses in the same words", { skip }, async () => {
  await using stub = await stubPlace("none");
  const user = { env: { KUBECONFIG: stub.place.at("kubeconfig") }, home: homedir() };
  const cluster = await clusterOf({ context: null, namespace: null }, user);
  const sent = structuredClone(recorded.sent) as { spec: { containers: { image: string }[] } };
  const [box] = sent.spec.containers;
  const [was] = (recorded.posted.spec as unknown as typeof sent.spec).containers;
  if (box !== undefined && was !== undefined) box.image = was.image = image;
  const make = (): Promise<unknown> => cluster.call(cluster.at("pods"), { method: "POST", body: sent });
  const made = (await make()) as typeof recorded.posted;
  const { volumes: _, ...spec } = recorded.posted.spec;
  const { volumes: __, ...own } = made.spec;
  assert.deepEqual(own, { ...spec, nodeName: "node" });
  assert.deepEqual(said(await make().catch((thrown: unknown) => thrown)), recorded.clash);
  const one = `${cluster.at("pods")}/${(made["metadata"] as { readonly name: string }).name}`;
  await cluster.call(one, { method: "DELETE" });
  assert.deepEqual(said(await cluster.call(one).catch((thrown: unknown) => thrown)), recorded.gone);
});

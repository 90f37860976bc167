import assert from "node:assert/strict";
import { homedir } from "node:os";
import test, { after } from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { Cluster, clusterOf, kubeConfigOf } from "../../src/kubernetes/cluster.ts";
import { startPodBox } from "../../src/kubernetes/start-pod-box.ts";
import { type FakeApi, startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { image as own, skip as noEngine } from "../fixtures/engine.ts";
import { AWAY, scratch } from "../fixtures/scratch.ts";
import { podRequest } from "../fixtures/pod-request.ts";
import { boxContract } from "./box.ts";
import { FILES, NEVER, SHELL_WORDS } from "./box-words.ts";

/**
 * `HARNESS_TEST_CLUSTER=KUBECONFIG IMAGE` is a cluster that is there for this, whose nodes have the image. Without it the API
 * is a stub, and the pods are containers of the engine: the runner, the attached streams and all that is sent are the same.
 */
const [given = "", named = ""] = (process.env["HARNESS_TEST_CLUSTER"] ?? "").split(" ");
const skip = given === "" ? noEngine : false;
const image = given === "" ? own : named;

const stub: { place?: Awaited<ReturnType<typeof scratch>>; api?: Promise<FakeApi>; file?: string } = {};

async function kubeconfig(): Promise<string> {
  if (given !== "") return given;
  const place = (stub.place ??= await scratch({}, AWAY));
  const api = await (stub.api ??= startKubernetesApi("none", place.at("node")));
  return (stub.file ??= await place.write("kubeconfig", api.kubeconfig));
}

after(async () => {
  await (await stub.api)?.[Symbol.asyncDispose]();
  await stub.place?.[Symbol.asyncDispose]();
});

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  }[];
}

boxContract(
  "pod",
  async () => {
    const place = await scratch({}, AWAY);
    for (const [file, text] of Object.entries(FILES)) await place.write(`project/${file}`, text);
    const user = { env: { KUBECONFIG: await kubeconfig() }, home: homedir() };
    const cluster = await clusterOf({ context: null, namespace: null }, user);
    const request = podRequest(place.at("project"), image);
    const maker = {
      cluster,
      uid: process.getuid?.() ?? 0,
      home: homedir(),
      stateDir: place.at("state"),
      pod: null,
      onWarning: () => undefined,
    };
    const box = await startPodBox(maker, request, NEVER);
    const lose = async (): Promise<void> => {
      const { items } = (await cluster.call(cluster.at("pods"))) as Pods;
      const mine = items.find(
        ({ metadata: { annotations = {} } }) => annotations["dev.harness.workspace"] === request.workspace,
      );
      assert.ok(mine !== undefined);
      const body = { gracePeriodSeconds: 0 };
      await cluster.call(`${cluster.at("pods")}/${mine.metadata.name}`, { method: "DELETE", body });
    };
    const close = async (): Promise<void> => {
      try {
        await box[Symbol.asyncDispose]();
      } finally {
        await place[Symbol.asyncDispose]();
      }
    };
    return { box, words: SHELL_WORDS, lose, folder: request.workspace, [Symbol.asyncDispose]: close };
  },
  { skip, copies: true },
);

test("a pod with full access is refused before the cluster is contacted", async () => {
  await using place = await scratch({
    config: JSON.stringify({
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    }),
  });
  const config = kubeConfigOf(
    { context: null, namespace: null },
    { env: { KUBECONFIG: place.at("config") }, home: "/" },
  );
  const maker = {
    uid: 0,
    home: homedir(),
    stateDir: place.at("state"),
    pod: null,
    onWarning: () => undefined,
  };
  const request = { ...podRequest(place.path, "x"), mode: "danger-full-access" as const };
  await assert.rejects(
    startPodBox({ ...maker, cluster: new Cluster(config, "default", 0) }, request, NEVER),
    (thrown) =>
      thrown instanceof HarnessError && thrown.exit === EXIT.sandbox && /full access/.test(thrown.message),
  );
});

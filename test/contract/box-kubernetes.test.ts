import assert from "node:assert/strict";
import { homedir } from "node:os";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { Mode } from "../../src/core/decision.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { Cluster, clusterOf, kubeConfigOf } from "../../src/kubernetes/cluster.ts";
import { startPodBox } from "../../src/kubernetes/start-pod-box.ts";
import { AWAY, scratch } from "../fixtures/scratch.ts";
import { boxContract } from "./box.ts";
import { FILES, NEVER } from "./box-words.ts";

/** A cluster that is there for this, whose nodes have the image: `HARNESS_TEST_CLUSTER=KUBECONFIG IMAGE`. */
const [kubeconfig = "", image = ""] = (process.env["HARNESS_TEST_CLUSTER"] ?? "").split(" ");
const skip = kubeconfig === "" ? "HARNESS_TEST_CLUSTER names no cluster" : false;

const sh = (line: string, ...words: readonly string[]): readonly string[] => [
  "sh",
  "-c",
  line,
  "sh",
  ...words,
];

const words = {
  exit: (code: number) => sh('exit "$1"', String(code)),
  die: (signal: number) => sh('kill -"$1" $$', String(signal)),
  leave: (processes: number) => sh('for _ in $(seq "$1"); do sleep 60 & done; exit 0', String(processes)),
  says: (out: string, err: string) => sh('printf %s "$1"; printf %s "$2" >&2', out, err),
  flood: (bytes: number) => ["head", "-c", String(bytes), "/dev/zero"],
};

interface Place {
  readonly cluster: Cluster;
  readonly workspace: string;
  readonly stateDir: string;
}

const open = ({ cluster, workspace, stateDir }: Place, mode: Mode): Promise<OwnedBox> => {
  const wants = {
    image,
    pullPolicy: "IfNotPresent",
    pullSecret: null,
    runtimeClass: null,
    seccomp: "RuntimeDefault",
    nodeSelector: {},
    disk: 2 ** 30,
    deadlineMs: 600_000,
    startMs: 60_000,
    probe: null,
  };
  const maker = {
    cluster,
    uid: process.getuid?.() ?? 0,
    home: homedir(),
    stateDir,
    onWarning: () => undefined,
  };
  const limits = { memory: 2 ** 29, cpus: 0.5, pids: 256 };
  return startPodBox(maker, { workspace, mode, limits, watchChanges: true, keep: null, wants }, NEVER);
};

boxContract(
  "pod",
  async () => {
    const place = await scratch({}, AWAY);
    for (const [file, text] of Object.entries(FILES)) await place.write(`project/${file}`, text);
    const address = { context: null, namespace: null };
    const cluster = await clusterOf(address, { env: { KUBECONFIG: kubeconfig }, home: homedir() });
    const box = await open(
      { cluster, workspace: place.at("project"), stateDir: place.at("state") },
      "workspace-write",
    );
    const lose = async (): Promise<void> => {
      const { items } = (await cluster.call(cluster.at("pods"))) as {
        readonly items: readonly {
          readonly metadata: {
            readonly name: string;
            readonly annotations?: Readonly<Record<string, string>>;
          };
        }[];
      };
      const own = items.find(
        ({ metadata: { annotations = {} } }) => annotations["dev.harness.workspace"] === place.at("project"),
      );
      assert.ok(own !== undefined);
      await cluster.call(`${cluster.at("pods")}/${own.metadata.name}`, {
        method: "DELETE",
        body: { gracePeriodSeconds: 0 },
      });
    };
    const close = async (): Promise<void> => {
      try {
        await box[Symbol.asyncDispose]();
      } finally {
        await place[Symbol.asyncDispose]();
      }
    };
    return { box, words, lose, folder: place.at("project"), [Symbol.asyncDispose]: close };
  },
  { skip, copies: true },
);

test("no pod has full access, and none is asked for", async () => {
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
  const cluster = new Cluster(config, "default", 0);
  const opening = open({ cluster, workspace: place.path, stateDir: place.at("state") }, "danger-full-access");
  await assert.rejects(
    opening,
    (thrown) =>
      thrown instanceof HarnessError && thrown.exit === EXIT.sandbox && /full access/.test(thrown.message),
  );
});

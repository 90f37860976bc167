import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import test, { after } from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { AWAY, scratch } from "../fixtures/scratch.ts";
import { admissionWebhook, type Patch } from "./admission-webhook.ts";
import { nothingLeft } from "./batch-faults.ts";
import { batchPlace, noBatches, sharedTeam, tasksOf } from "./batch-place.ts";
import { look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";

/** How the admission of a real cluster changes the pods of loops: the coordinator reads each of them back. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

const add = (path: string, value: unknown): Patch => ({ op: "add", path, value });
const token = { name: "token", mountPath: "/t", readOnly: true };
const sidecar = {
  name: "mesh",
  image: cluster.image,
  command: ["sleep", "1000"],
  volumeMounts: [token],
  securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
};

const CHANGED: readonly (readonly [what: string, changes: readonly Patch[], line: RegExp])[] = [
  [
    "a sidecar with the loop's token",
    [add("/spec/containers/-", sidecar)],
    /spec\.containers\[1\]: was added/,
  ],
  [
    "the token and the keys for the clone",
    [
      add("/spec/initContainers/0/volumeMounts/-", token),
      add("/spec/initContainers/0/envFrom", [{ secretRef: { name: "model" } }]),
    ],
    /spec\.initContainers\[0\]\.volumeMounts\[3\]: was added.*initContainers\[0\]\.envFrom: was added/s,
  ],
  [
    "a variable for the loop",
    [add("/spec/containers/0/env/-", { name: "HTTPS_PROXY", value: "http://10.0.0.1" })],
    /spec\.containers\[0\]\.env\[\d+\]: was added/,
  ],
];

for (const [what, changes, line] of CHANGED)
  test(
    `a loop that is given ${what} stops its batch, which continues once that is fixed`,
    { skip },
    async () => {
      await using folder = await scratch({}, AWAY);
      await mkdir(folder.at("webhook"));
      await using webhook = await admissionWebhook(cluster, folder.at("webhook"));
      await using place = await batchPlace(await team(), replies, {}, { labels: webhook.labels });
      const tasks = await tasksOf(await team(), place, ["echo two >> notes.txt"]);
      const words = [tasks, "--out", place.place.at("out")];
      webhook.changes = changes;
      const refused = await place.run(...words);
      assert.equal(refused.code, 6, refused.stderr);
      const all = refused.stderr + refused.stdout;
      assert.match(
        all,
        /the pod harness-batch-\w+-0-\w+ differs from its Job's template, so the batch has been stopped/,
      );
      assert.match(all, line);
      const [job] = await place.jobs();
      assert.equal(look(job, "spec", "suspend"), true);
      webhook.changes = [];
      const at = `/apis/batch/v1/namespaces/${place.space.name}/jobs/${job?.metadata.name}`;
      await api.must("PATCH", at, { spec: { suspend: false } });
      const ran = await place.run(...words, "--resume");
      assert.deepEqual([ran.code, batchOf(ran).rows.length], [0, 1], ran.stderr);
      await nothingLeft(place);
    },
  );

import assert from "node:assert/strict";
import test, { after } from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { service } from "../e2e/secret-service.ts";
import { startModel } from "../e2e/run-command.ts";
import { runProgram } from "../fixtures/cli.ts";
import { batchPlace, sharedTeam, tasksOf } from "./batch-place.ts";
import { look } from "./cluster-api.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { built, FILES, withEnvironment } from "./pod-environment.ts";

/** Real clusters that enforce no policy, or whose pods reach nothing: whatever is requested, there is no box (exit 6). */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image, kubeconfig, network } = cluster;
const skip = network === "enforced" && "this network is shown to be shut";

const WHY = network === "none" ? /nothing is proved/ : /nothing in the cluster enforces network policies/;

async function nothingLeft({ space }: Pick<BoxPlace, "space">): Promise<void> {
  const policies = `/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`;
  for (const path of [space.pods, policies])
    await api.until(path, ({ body }) => {
      const all = (look(body, "items") as readonly unknown[]).filter(
        (one) => look(one, "metadata", "labels", "dev.harness.pod") !== undefined,
      );
      return all.length === 0;
    });
}

test(
  "a run ends with exit 6 before anything is run, sent or asked, whatever was granted",
  { skip },
  async () => {
    await using own = await boxPlace(cluster);
    const { place, space } = own;
    const { at, pem, asked } = await service();
    await using model = await startModel(replies);
    const kubernetes = { image, start_timeout: "120s" };
    const config = { engine: `kubernetes:/${space.name}`, kubernetes };
    await place.write("home/.config/harness/config.json", JSON.stringify(config));
    const env = { KUBECONFIG: kubeconfig, NODE_EXTRA_CA_CERTS: await place.write("ca.pem", pem) };
    const start = { home: place.at("home"), cwd: place.at("project"), env };
    const task = `Ask them. do: curl -sS https://${at}/who; echo two >> a.txt`;
    const words = ["run", "--json", ...model.flags, "--allow-domain", `${at}:private`, task];
    const { code, stdout, stderr } = await runProgram("bin/harness", words, start);
    assert.equal(code, 6, stderr);
    assert.match(stdout, WHY);
    assert.doesNotMatch(stdout, /"type":"box\.ready"/);
    assert.deepEqual(asked, []);
    const executed = await runProgram("bin/harness", ["sandbox", "exec", "--", "true"], start);
    assert.equal(executed.code, 125, executed.stderr);
    assert.match(executed.stderr.replace(/\s+/g, " "), WHY);
    await nothingLeft(own);
  },
);

test("so does a run whose folder has an environment that the node has pulled", { skip }, async () => {
  await using place = await boxPlace(cluster, { files: FILES });
  const engine = `kubernetes:/${place.space.name}`;
  await withEnvironment({ place, kubeconfig, engine, image }, async (user) => {
    const { type, registry, configure } = user;
    await cluster.letNodeOut(Number(registry.host.split(":")[1]));
    await configure({ registry: `${registry.host}/team/env` });
    await built(user);
    const before = registry.heard.length;
    const { code, stderr } = await type("sandbox", "exec", "--", "greet");
    assert.equal(code, 125, stderr);
    assert.match(stderr.replace(/\s+/g, " "), WHY);
    assert.ok(registry.heard.slice(before).some((each) => each.startsWith("GET /v2/team/env/blobs/")));
  });
  await nothingLeft(place);
});

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

test(
  "each row of a batch ends with exit 6 and the reason `sandbox` once its attempts are used up, and its model is asked nothing more",
  {
    skip:
      skip ||
      (cluster.release === "1.20" && "its Jobs have no back-off for each index") ||
      (network === "none" && "loops reach no API server, no repository and no model there"),
  },
  async () => {
    await using place = await batchPlace(await team(), replies);
    const tasks = await tasksOf(await team(), place, ["echo two >> notes.txt", "echo three >> notes.txt"]);
    const words = ["--out", place.place.at("out"), "--jobs", "2", "--retries", "1"];
    const ran = await place.run(tasks, ...words);
    const { rows, whole } = batchOf(ran);
    assert.deepEqual([ran.code, whole.failed, whole.by_cause], [1, 2, { sandbox: 2 }], ran.stderr);
    for (const { exit_code, reason, attempts, changes } of rows) {
      assert.deepEqual([exit_code, attempts, changes?.modified ?? []], [6, 1, []]);
      assert.match(reason, WHY);
    }
    await nothingLeft(place);
  },
);

import assert from "node:assert/strict";
import test from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { look } from "./cluster-api.ts";
import { batchPlace, tasksOf } from "./batch-place.ts";
import { sandboxBatches } from "./sandbox-suite.ts";

/** A batch as a Job whose boxes come out of the warm pool that it prints, kept by its own controllers. */

const { cluster, skip, team } = await sandboxBatches();
const { api } = cluster;

test(
  "a row's box is a waiting pod of the pool, claimed by its loop; it goes when the loop is deleted, and the next one's goes at its end",
  { skip },
  async () => {
    await using place = await batchPlace(team(), replies, { kubernetes: { warm_pool: "rows" } });
    const tasks = await tasksOf(team(), place, ["sleep 12; echo two >> notes.txt"]);
    const below = `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${place.space.name}`;
    const claims = `${below}/sandboxclaims`;
    await api.until(
      `${below}/sandboxwarmpools/rows`,
      ({ body }) => Number(look(body, "status", "readyReplicas") ?? 0) > 0,
      120_000,
    );
    const waited = new Set((await api.list(place.space.pods)).map(({ metadata }) => metadata.uid));
    const started = place.start(tasks, "--out", place.place.at("out"));
    const { items } = await api.until(
      claims,
      ({ body }) =>
        look(body, "items", 0, "status", "sandbox", "name") !== undefined && place.model.asked().length > 0,
      240_000,
    );
    const claim = look(items, 0);
    const owner = look(claim, "metadata", "ownerReferences", 0);
    assert.equal(look(owner, "kind"), "Pod");
    const name = String(look(claim, "status", "sandbox", "name"));
    const box = await api.must("GET", `${place.space.pods}/${name}`);
    assert.ok(waited.has(box.metadata.uid), "the pod did not wait before the batch began");
    await api.must("DELETE", `${place.space.pods}/${String(look(owner, "name"))}`);
    for (const at of [`${claims}/${String(look(claim, "metadata", "name"))}`, `${place.space.pods}/${name}`])
      await api.until(at, ({ status }) => status === 404, 120_000);
    const ran = await started.ended;
    assert.equal(ran.code, 0, `${ran.stderr}\n${ran.stdout}`);
    const { rows, whole } = batchOf(ran);
    assert.deepEqual([whole.done, rows[0]?.attempts], [1, 1]);
    await api.until(claims, ({ body }) => look(body, "items", 0) === undefined);
  },
);

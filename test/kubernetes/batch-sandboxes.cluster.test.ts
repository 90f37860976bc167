import assert from "node:assert/strict";
import test from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { type KubeObject, look } from "./cluster-api.ts";
import { batchPlace, tasksOf } from "./batch-place.ts";
import { sandboxBatches } from "./sandbox-suite.ts";

/** A batch as a Job whose boxes are Sandboxes, made by their own controller for loops that may make no pods. */

const { cluster, skip, team } = await sandboxBatches();
const { api } = cluster;

const first = (list: KubeObject): unknown => look(list, "items", 0);

test(
  "a row's box is a Sandbox of its loop: it goes when the loop is deleted, and the next one's goes at its end",
  { skip },
  async () => {
    await using place = await batchPlace(team(), replies, { kubernetes: { sandbox_resource: "always" } });
    const tasks = await tasksOf(team(), place, ["sleep 12; echo two >> notes.txt"]);
    const sandboxes = `/apis/agents.x-k8s.io/v1beta1/namespaces/${place.space.name}/sandboxes`;
    const started = place.start(tasks, "--out", place.place.at("out"));
    const ready = await api.until(
      sandboxes,
      ({ body }) => first(body) !== undefined && place.model.asked().length > 0,
      120_000,
    );
    const sandbox = first(ready);
    const owner = look(sandbox, "metadata", "ownerReferences", 0);
    assert.equal(look(owner, "kind"), "Pod");
    const name = String(look(sandbox, "metadata", "name"));
    const box = await api.must("GET", `${place.space.pods}/${name}`);
    assert.equal(look(box, "metadata", "ownerReferences", 0, "uid"), look(sandbox, "metadata", "uid"));
    await api.must("DELETE", `${place.space.pods}/${String(look(owner, "name"))}`);
    for (const at of [`${sandboxes}/${name}`, `${place.space.pods}/${name}`])
      await api.until(at, ({ status }) => status === 404, 120_000);
    const ran = await started.ended;
    assert.equal(ran.code, 0, `${ran.stderr}\n${ran.stdout}`);
    const { rows, whole } = batchOf(ran);
    assert.deepEqual([whole.done, rows[0]?.attempts], [1, 1]);
    await api.until(sandboxes, ({ body }) => first(body) === undefined);
  },
);

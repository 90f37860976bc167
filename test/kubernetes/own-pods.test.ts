import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { homeOf, loopPod } from "../../src/kubernetes/own-pods.ts";
import { scratch } from "../fixtures/scratch.ts";

test("many processes that start at once in a new state folder get the same home, and no other file is left", async () => {
  for (let round = 0; round < 20; round += 1) {
    await using place = await scratch();
    const state = place.at("state");
    const homes = await Promise.all(Array.from({ length: 40 }, () => homeOf(state)));
    assert.equal(new Set([...homes, await homeOf(state)]).size, 1);
    assert.deepEqual(await readdir(state), ["cluster-home"]);
  }
});

test("a half-made home is replaced, and differs from another state folder's", async () => {
  await using place = await scratch({ "half/cluster-home": "", "other/cluster-home": "" });
  const half = await homeOf(place.at("half"));
  assert.equal(await homeOf(place.at("half")), half);
  assert.notEqual(await homeOf(place.at("other")), half);
});

test("a loop recognises its own pod only in its own namespace", () => {
  const env = { HARNESS_POD_NAME: "p", HARNESS_POD_UID: "u", HARNESS_POD_NAMESPACE: "team" };
  assert.deepEqual(loopPod(env, "team"), { name: "p", uid: "u" });
  assert.equal(loopPod(env, "other"), null);
  assert.equal(loopPod({ ...env, HARNESS_POD_UID: undefined }, "team"), null);
  assert.equal(loopPod({}, "team"), null);
});

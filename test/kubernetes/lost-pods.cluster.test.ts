import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { LazyBox } from "../../src/app/run/lazy-box.ts";
import { layerOf } from "../../src/boxes/workspace/layer-record.ts";
import { parseGrant } from "../../src/core/network.ts";
import type { PodRequest } from "../../src/kubernetes/start-pod-box.ts";
import { noCertificates } from "../fixtures/https-stub.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { look } from "./cluster-api.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { openedAt } from "./granted-network.ts";

/** Pods of a real cluster that are lost in the middle of a run, and the ones that take their place. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, network } = cluster;
const skip = network !== "enforced" && "there is no box";

const keep = "session1";

async function podIn({ space }: BoxPlace): Promise<string> {
  const pods = await api.list(space.pods);
  const live = pods.find(({ metadata }) => look(metadata, "deletionTimestamp") === undefined);
  return `${space.pods}/${live?.metadata.name ?? ""}`;
}

/** As `kubectl delete pod --grace-period=0`. */
const remove = async (place: BoxPlace): Promise<unknown> =>
  api.must("DELETE", await podIn(place), { gracePeriodSeconds: 0 });

/** As when a node is drained. */
async function evict(place: BoxPlace): Promise<unknown> {
  const pod = await podIn(place);
  return api.must("POST", `${pod}/eviction`, {
    apiVersion: cluster.release === "1.20" ? "policy/v1beta1" : "policy/v1",
    kind: "Eviction",
    metadata: { name: pod.split("/").at(-1) },
    deleteOptions: { gracePeriodSeconds: 0 },
  });
}

/** A box as a run uses it, and commands in it. */
function working(place: Pick<BoxPlace, "open">, wanted: Partial<PodRequest> = {}) {
  const told: string[] = [];
  const lazy = new LazyBox(
    () => place.open({ keep, ...wanted }),
    () => undefined,
    { tell: (text) => void told.push(text) },
  );
  const exec = async (line: string): Promise<string> => {
    const box = await lazy.box();
    const { stdout } = await box.exec(asking(["bash", "-ec", line]), NEVER);
    await lazy.bringHome();
    return Buffer.from(stdout.head).toString();
  };
  return { lazy, told, exec };
}

test("a pod that is deleted between two calls loses no call", { skip }, async () => {
  await using place = await boxPlace(cluster);
  const { lazy, told, exec } = working(place);
  await exec("echo two >> a.txt; mkdir -p new && echo n > new/n");
  const first = await lazy.box();
  await remove(place);
  assert.match(await first.gone, /deleted/);
  assert.equal(await exec("cat a.txt new/n; echo three >> a.txt"), "one\ntwo\nn\n");
  assert.match(lazy.untoldLoss() ?? "", /deleted/);
  assert.match(told.join("\n"), /the box was lost \(.*deleted.*\); a new one continues/);
  const { all } = await (await lazy.box()).changes();
  assert.deepEqual(
    [...all].map(({ what, path }) => `${what} ${path}`),
    ["modified a.txt", "added new/n"],
  );
  await lazy[Symbol.asyncDispose]();
  const layer = await layerOf(place.place.at("state"), keep);
  assert.equal(await readFile(`${layer?.folder ?? ""}/tree/a.txt`, "utf8"), "one\ntwo\nthree\n");
  assert.deepEqual([await place.named("pods"), await place.named("networkpolicies")], [[], []]);
});

test("a pod that is evicted in the middle of a call loses only that call", { skip }, async () => {
  await using place = await boxPlace(cluster);
  const { lazy, exec } = working(place);
  await exec("echo two >> a.txt");
  const running = exec("echo lost >> a.txt; sleep 600");
  await evict(place);
  const thrown = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.match((await lazy.replacedAfter(thrown)) ?? "", /deleted|evicted/);
  assert.equal(await exec("cat a.txt"), "one\ntwo\n");
  await lazy[Symbol.asyncDispose]();
  assert.deepEqual([await place.named("pods"), await place.named("networkpolicies")], [[], []]);
});

const HOST = "api.test";
const ASK = `curl -sS --max-time 30 https://${HOST}/hello 2>&1 || true`;

test(
  "a grant made in the middle of a run also holds for the pod that replaces a lost one; a withdrawn grant does not",
  { skip: skip || noCertificates },
  async () => {
    const places: BoxPlace[] = [];
    const newPlace = async (): Promise<BoxPlace> => {
      const place = await boxPlace(cluster);
      places.push(place);
      return place;
    };
    await using all = await openedAt({ newPlace }, { grants: [] }, "enforced");
    const [place] = places;
    assert.ok(place !== undefined);
    const { lazy, told, exec } = working(place, all.wanted);
    assert.match(await exec(ASK), /Could ?n.t (?:connect|resolve)|resolve host/);
    await (await lazy.network())?.grant([parseGrant(`${HOST}:private`)]);
    const withdraw = await (await lazy.network())?.grant([parseGrant("gone.test")]);
    withdraw?.();
    assert.equal(await exec(ASK), "you are nobody, /hello\n");
    for (const lose of [remove, evict]) {
      const before = await lazy.box();
      await lose(place);
      await before.gone;
      assert.equal(await exec(ASK), "you are nobody, /hello\n");
      assert.notEqual(await lazy.box(), before);
      assert.match(await exec(`curl -sS https://gone.test/ 2>&1; true`), /403/);
    }
    const granted = told.filter((text) => text.startsWith("it is granted the same hosts"));
    assert.deepEqual(granted, [
      `it is granted the same hosts: ${HOST}`,
      `it is granted the same hosts: ${HOST}`,
    ]);
    assert.deepEqual(
      new Set(all.heard.map(({ host, verdict }) => `${verdict} ${host}`)),
      new Set([`allowed ${HOST}`, "denied gone.test"]),
    );
    await lazy[Symbol.asyncDispose]();
    assert.deepEqual([await place.named("pods"), await place.named("networkpolicies")], [[], []]);
  },
);

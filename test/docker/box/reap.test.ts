import assert from "node:assert/strict";
import test from "node:test";
import type { Engine } from "../../../src/docker/engine.ts";
import { boxLabels, type Owner, ownerLabels, thisProcess } from "../../../src/boxes/box-record.ts";
import { claimParked, releaseTaken, standingsOf, writeParked } from "../../../src/docker/box/parked-boxes.ts";
import { reap } from "../../../src/docker/box/reap.ts";
import { scratch } from "../../fixtures/scratch.ts";

const skip = process.platform !== "linux" && "reads /proc";
const UID = 64_323;

const labels = (session: string, owner: Owner, stateDir?: string): Readonly<Record<string, string>> =>
  boxLabels({
    uid: UID,
    owner,
    session,
    workspace: "/repo",
    created: "2026-11-21T10:00:00.000Z",
    isolation: "overlay",
    mode: "workspace-write",
    ...(stateDir === undefined ? {} : { parks: { session, stateDir } }),
  });

const refusal = (statusCode: number, message: string): Error =>
  Object.assign(new Error(message), { statusCode });

interface Thing {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Seconds ago. */
  readonly age?: number;
  readonly refuses?: Error;
  /** As the first listing says, the second, …; the last is what it stays. */
  readonly states?: readonly string[];
}

/** An engine of things that go or refuse to; it writes down what it is asked. */
function fakeEngine(
  boxes: readonly Thing[],
  volumes: readonly Thing[],
  afterListing: (nth: number) => Promise<void> = () => Promise.resolve(),
): { engine: Engine; asked: string[] } {
  const asked: string[] = [];
  const state = { listings: 0 };
  const madeAt = ({ age = 0 }: Thing): number => Date.now() / 1000 - age;
  const remover = (things: readonly Thing[], id: string): object => ({
    remove: () => {
      asked.push(id);
      const refuses = things.find((thing) => thing.id === id)?.refuses;
      return refuses === undefined ? Promise.resolve() : Promise.reject(refuses);
    },
    // Of a container that is going: until it is gone.
    wait: ({ condition }: { readonly condition: string }) => {
      asked.push(`${id} ${condition}`);
      return Promise.resolve({ StatusCode: 137 });
    },
  });
  const api = {
    listContainers: async ({ filters }: { filters: { label: string[] } }) => {
      asked.push(`containers ${filters.label.join(" ")}`);
      const nth = state.listings;
      state.listings += 1;
      const list = boxes.map((box) => ({
        Id: box.id,
        Labels: box.labels,
        Created: madeAt(box),
        State: box.states?.[Math.min(nth, box.states.length - 1)] ?? "running",
      }));
      await afterListing(nth);
      return list;
    },
    listVolumes: () => {
      asked.push("volumes");
      const list = volumes.map((volume) => ({
        Name: volume.id,
        Labels: volume.labels,
        CreatedAt: new Date(madeAt(volume) * 1000).toISOString(),
      }));
      return Promise.resolve({ Volumes: list });
    },
    getContainer: (id: string) => remover(boxes, id),
    getVolume: (id: string) => remover(volumes, id),
  };
  return { engine: { api } as unknown as Engine, asked };
}

const reaped = async (boxes: readonly Thing[], volumes: readonly Thing[] = []): Promise<unknown> => {
  await using place = await scratch();
  const { engine } = fakeEngine(boxes, volumes);
  const { containers, volumes: gone, failed } = await reap(engine, { uid: UID, stateDir: place.path });
  return { containers, volumes: gone, failed: failed.map(({ id, reason }) => `${id}: ${reason}`) };
};

const dead: Owner = { pid: 1, start: "1", boot: "an-earlier-boot" };

test("reaping asks once for containers and once for volumes, by label", { skip }, async () => {
  await using place = await scratch();
  const own = await thisProcess();
  const living = { id: "a", labels: labels("s", own) };
  const { engine, asked } = fakeEngine([living], [{ id: "v", labels: labels("s", own) }]);
  await reap(engine, { uid: UID, stateDir: place.path });
  assert.deepEqual(asked, [`containers dev.harness.box dev.harness.uid=${UID}`, "volumes"]);
});

test(
  "a container that is gone or being removed is not a failure, and any other refusal is reported while the rest is removed",
  { skip },
  async () => {
    const boxes = [
      { id: "gone", labels: labels("1", dead), refuses: refusal(404, "no such container") },
      { id: "going", labels: labels("2", dead), refuses: refusal(409, "removal is already in progress") },
      { id: "stuck", labels: labels("3", dead), refuses: refusal(500, "device is busy") },
      { id: "free", labels: labels("4", dead) },
    ];
    const volumes = ["1", "2", "3", "4"].map((session) => ({
      id: `v${session}`,
      labels: labels(session, dead),
    }));
    assert.deepEqual(await reaped(boxes, volumes), {
      containers: ["free"],
      volumes: ["v1", "v4"],
      failed: ["stuck: device is busy"],
    });
  },
);

test("other users' things are never removed, even if the engine ignores the filter", { skip }, async () => {
  const foreign = { ...labels("1", dead), "dev.harness.uid": "1" };
  const things = [
    { id: "x", labels: foreign },
    { id: "y", labels: {} },
  ];
  assert.deepEqual(await reaped(things, things), { containers: [], volumes: [], failed: [] });
});

test("things without an owner are removed only when they are old", { skip }, async () => {
  const unowned = ownerLabels(UID);
  const things = [
    { id: "young", labels: unowned, age: 600 },
    { id: "old", labels: unowned, age: 7200 },
  ];
  assert.deepEqual(await reaped(things, things), { containers: ["old"], volumes: ["old"], failed: [] });
});

test(
  "things of an owner in another container are removed only when they are old and do not run",
  { skip },
  async () => {
    const owner = { ...(await thisProcess()), space: "pid:[1]", pid: 4_194_305 };
    const things = [
      { id: "runs", states: ["running"], age: 7200 },
      { id: "waits", states: ["paused"], age: 7200 },
      { id: "young", states: ["exited"], age: 600 },
      { id: "old", states: ["exited"], age: 7200 },
    ].map((thing) => ({ ...thing, labels: labels(thing.id, owner) }));
    const volumes = [...things, { id: "boxless", labels: labels("boxless", owner), age: 7200 }];
    assert.deepEqual(await reaped(things, volumes), {
      containers: ["old"],
      volumes: ["old", "boxless"],
      failed: [],
    });
  },
);

test("a box frozen by its owner after the listing is kept", { skip }, async () => {
  await using place = await scratch();
  const boxes = [
    { id: "frozen-since", states: ["running", "paused"] },
    { id: "frozen-before", states: ["paused"] },
    { id: "never-frozen", states: ["running"] },
    { id: "thawed-since", states: ["paused", "running"] },
    { id: "out-of-time", states: ["running", "paused"] },
    { id: "not-asked-about", states: ["running", "paused"] },
  ].map((box) => ({ ...box, labels: labels(box.id, dead, place.path) }));
  for (const { id } of boxes.slice(0, -1)) {
    const expires = id === "out-of-time" ? 1 : Date.now() + 3_600_000;
    await writeParked(place.path, { session: id, expires, owner: dead }, "");
  }
  const { engine } = fakeEngine(boxes, []);
  const { containers, failed } = await reap(engine, { uid: UID, stateDir: place.path });
  assert.deepEqual(containers, ["never-frozen", "thawed-since", "out-of-time", "not-asked-about"]);
  assert.deepEqual(failed, []);
});

test(
  "a box parked again during the check is kept, and one whose owner was killed is removed",
  { skip },
  async () => {
    await using place = await scratch();
    const owner = await thisProcess();
    const expires = Date.now() + 3_600_000;
    const boxes = ["again", "killed"].map((id) => ({ id, labels: labels(id, dead, place.path) }));
    for (const { id } of boxes) {
      await writeParked(place.path, { session: id, expires, owner: dead }, "");
      const [standing] = await standingsOf(place.path, id);
      assert.ok(standing?.kind === "parked");
      await claimParked(place.path, standing, id === "again" ? owner : dead);
    }
    // Seen running; frozen, written down and let go of before anybody asks who has it.
    const { engine } = fakeEngine(boxes, [], async (nth) => {
      if (nth !== 1) return;
      await writeParked(place.path, { session: "again", expires, owner }, "");
      await releaseTaken(place.path, "again", owner);
    });
    const { containers, failed } = await reap(engine, { uid: UID, stateDir: place.path });
    assert.deepEqual([containers, failed], [["killed"], []]);
  },
);

test("only containers that another start is removing are waited for", { skip }, async () => {
  await using place = await scratch();
  const going = {
    id: "going",
    labels: labels("1", dead),
    refuses: refusal(409, "removal is already in progress"),
  };
  const { engine, asked } = fakeEngine([going, { id: "free", labels: labels("2", dead) }], []);
  await reap(engine, { uid: UID, stateDir: place.path });
  assert.deepEqual(asked.filter((each) => !each.includes("dev.harness") && each !== "volumes").toSorted(), [
    "free",
    "going",
    "going removed",
  ]);
});

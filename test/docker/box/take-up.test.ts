import assert from "node:assert/strict";
import test from "node:test";
import { thisProcess } from "../../../src/boxes/box-record.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import {
  claimParked,
  discardParked,
  forget,
  parkedText,
  type ParkedState,
  standings,
  standingsOf,
  writeParked,
} from "../../../src/docker/box/parked-boxes.ts";
import { type ResumeRequest, takeUp } from "../../../src/docker/box/make-box.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";

const skip = process.platform !== "linux" && "reads /proc";

const TEXT = parkedText({
  container: "a".repeat(64),
  labels: {},
  volume: null,
  named: false,
  network: null,
  files: [],
  runner: { key: Buffer.alloc(32, 7), next: 1, asks: [] },
  jobs: [],
});

/** An engine that counts who asks it for containers, and then fails or has none. */
function counting(fails = false): { readonly engine: Engine; readonly asked: () => number } {
  let asked = 0;
  const api = {
    listContainers: () => {
      asked += 1;
      return fails ? Promise.reject(new Error("the connection was cut")) : Promise.resolve([]);
    },
    listVolumes: () => Promise.resolve({ Volumes: [] }),
  };
  return { engine: { api } as unknown as Engine, asked: () => asked };
}

async function parked(place: Scratch, expires: number): Promise<ParkedState> {
  await writeParked(place.path, { session: "a", expires, owner: await thisProcess() }, TEXT);
  const [standing] = await standingsOf(place.path, "a");
  assert.ok(standing?.kind === "parked");
  return standing;
}

const taking = async (place: Scratch, engine: Engine): Promise<ResumeRequest> =>
  ({
    engine,
    stateDir: place.path,
    session: "a",
    uid: 0,
    owner: await thisProcess(),
  }) as unknown as ResumeRequest;

for (const [name, expires] of [
  ["whose time is over", 1],
  ["that may still wait", Date.now() + 60_000],
] as const)
  test(`a box ${name} and that another process has taken up is not removed`, { skip }, async () => {
    await using place = await scratch();
    const standing = await parked(place, expires);
    const { engine, asked } = counting();
    await claimParked(place.path, standing, await thisProcess());
    const taken = await refusalOf(async () => takeUp(standing, await taking(place, engine)));
    assert.equal(taken[0], 2);
    assert.equal(await discardParked(engine, { stateDir: place.path, session: "a", uid: 0 }), false);
    assert.equal(asked(), 0);
  });

test("an expired box is removed, and its claim too", { skip }, async () => {
  await using place = await scratch();
  const { engine, asked } = counting();
  const taken = await takeUp(await parked(place, 1), await taking(place, engine));
  assert.match(JSON.stringify(taken), /^"it was kept only until/);
  const over = await parked(place, 1);
  await forget(over);
  assert.match(JSON.stringify(await takeUp(over, await taking(place, engine))), /^"it was kept only until/);
  await parked(place, Date.now() + 60_000);
  assert.equal(await discardParked(engine, { stateDir: place.path, session: "a", uid: 0 }), true);
  assert.deepEqual([asked(), await standings(place.path)], [3, []]);
});

test("an engine failure halfway leaves no claim on the box", { skip }, async () => {
  await using place = await scratch();
  const standing = await parked(place, Date.now() + 60_000);
  await assert.rejects(takeUp(standing, await taking(place, counting(true).engine)), /connection was cut/);
  assert.deepEqual(await standings(place.path), []);
});

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { mkdir, readdir } from "node:fs/promises";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { many } from "../../fixtures/property.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { type Holder, startHolder } from "./processes.ts";

const skip = process.platform !== "linux" && "reads /proc";
const IN_USE = /is in use by another run/;

const wish = (place: Scratch, folder = "a", write = true): object => ({
  path: place.at(folder),
  write,
  stateDir: place.at("state"),
});

async function workspace(): Promise<Scratch> {
  const place = await scratch();
  await mkdir(place.at("a/b"), { recursive: true });
  return place;
}

test("when two processes take a killed run's workspace at once, exactly one gets it", { skip }, async () => {
  await using place = await workspace();
  await using one = await startHolder();
  await using two = await startHolder();
  for (let round = 0; round < many(6); round += 1) {
    await using victim = await startHolder();
    assert.equal(await victim.ask({ lock: wish(place) }), "held");
    assert.match(await one.ask({ lock: wish(place) }), IN_USE);
    await victim.kill();
    await race(place, one, two);
  }
});

test("when two processes arrive at once, exactly one wins, many times over", { skip }, async () => {
  await using place = await workspace();
  await using one = await startHolder();
  await using two = await startHolder();
  for (let round = 0; round < many(50); round += 1) await race(place, one, two);
  assert.deepEqual(await readdir(place.at("state/locks")), []);
});

async function race(place: Scratch, one: Holder, two: Holder): Promise<void> {
  const inside = randomInt(2) === 0 ? "a" : "a/b";
  const said = await Promise.all([one.ask({ lock: wish(place) }), two.ask({ lock: wish(place, inside) })]);
  const winner = said.indexOf("held");
  assert.notEqual(winner, -1, said.join("\n"));
  assert.match(said[1 - winner] ?? "", IN_USE);
  await (winner === 0 ? one : two).ask({ release: true });
}

test("readers that arrive at once all get the lock", { skip }, async () => {
  await using place = await workspace();
  await using one = await startHolder();
  await using two = await startHolder();
  const lock = wish(place, "a", false);
  assert.deepEqual(await Promise.all([one.ask({ lock }), two.ask({ lock })]), ["held", "held"]);
});

test("runs killed at any moment never let two in and never lock anyone out", { skip }, async () => {
  await using place = await workspace();
  const start = async (): Promise<Holder> => {
    const holder = await startHolder();
    const request = { loop: wish(place), inside: place.at("inside") };
    assert.equal(await holder.ask(request), "looping");
    return holder;
  };
  await using steady = await start();
  for (let round = 0; round < many(8); round += 1) {
    await using doomed = await start();
    await sleep(randomInt(60));
    await doomed.kill();
    assert.deepEqual([steady.code(), doomed.code()], [null, null], "nobody met another inside");
  }
  await steady.kill();
  await using last = await startHolder();
  assert.equal(await last.ask({ lock: wish(place) }), "held");
});

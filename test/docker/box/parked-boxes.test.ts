import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import test from "node:test";
import { thisProcess } from "../../../src/boxes/box-record.ts";
import {
  claimParked,
  holderOf,
  isClaimed,
  type ParkedBox,
  parkedText,
  readParked,
  refuseTaken,
  standings,
  standingsOf,
  writeParked,
} from "../../../src/docker/box/parked-boxes.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { deadOwner } from "../../boxes/workspace/processes.ts";
import { fc, many } from "../../fixtures/property.ts";
import type { KeptJob } from "../../../src/boxes/box-command.ts";

const skip = process.platform !== "linux" && "reads /proc";

test("a parked box is stored privately and replaces an earlier one of the session", async () => {
  await using place = await scratch();
  const owner = await thisProcess();
  await writeParked(place.path, { session: "a", expires: 5, owner }, "old");
  await writeParked(place.path, { session: "b", expires: 5, owner }, "other");
  const file = await writeParked(place.path, { session: "a", expires: 9, owner }, "new");
  assert.deepEqual((await readdir(place.at("parked"))).toSorted(), ["a.9.parked", "b.5.parked"]);
  assert.equal(await readFile(file, "utf8"), "new");
  assert.deepEqual(
    [(await stat(file)).mode & 0o777, (await stat(place.at("parked"))).mode & 0o777],
    [0o600, 0o700],
  );
  await assert.rejects(writeParked(place.path, { session: "../x", expires: 1, owner }, ""), TypeError);
});

test("when many claim a parked box one gets it, and the key is removed", { skip }, async () => {
  await using place = await scratch();
  // The file is read on this machine, by its processes: it does not say which one.
  const { machine: _, space: __, ...owner } = await thisProcess();
  await writeParked(place.path, { session: "a", expires: 9, owner }, "the key");
  const [standing] = await standingsOf(place.path, "a");
  assert.ok(standing?.kind === "parked");
  const claims = await Promise.all(
    Array.from({ length: 20 }, () => claimParked(place.path, standing, owner)),
  );
  const got = claims.filter((claim) => claim !== undefined);
  assert.deepEqual(
    got.map(({ text }) => text),
    ["the key"],
  );
  const [taken] = await standings(place.path);
  assert.ok(taken?.kind === "taken");
  assert.deepEqual([await readFile(taken.file, "utf8"), taken.owner], ["", owner]);
  assert.equal((await refusalOf(() => refuseTaken(place.path, "a")))[0], 2);
  // Written down again, it is this process's until it lets go of it.
  await writeParked(place.path, { session: "a", expires: 10, owner }, "the next key");
  assert.equal((await refusalOf(() => refuseTaken(place.path, "a")))[0], 2);
  await got[0]?.letGo();
  assert.deepEqual(
    (await standings(place.path)).map(({ kind }) => kind),
    ["parked"],
  );
  await refuseTaken(place.path, "a");
});

test(
  "a frozen box is kept by its deadline or a living process, and a running one is not",
  { skip },
  async () => {
    await using place = await scratch();
    const [owner, dead] = [await thisProcess(), await deadOwner()];
    const record = { parks: { session: "a", stateDir: place.path } };
    const held = async (frozen: boolean): Promise<string | undefined> =>
      (await holderOf(record, frozen))?.kind;
    assert.equal(await held(true), undefined);
    await writeParked(place.path, { session: "a", expires: Date.now() + 60_000, owner }, "");
    assert.deepEqual([await held(true), await held(false)], ["parked", undefined]);
    const [parked] = await standings(place.path);
    assert.ok(parked?.kind === "parked");
    assert.equal(await isClaimed(parked, parked.expires), false);
    const claim = await claimParked(place.path, parked, dead);
    assert.equal(await held(true), undefined);
    await claim?.letGo();
    await writeParked(place.path, { session: "a", expires: 1, owner }, "");
    assert.equal(await held(true), undefined);
    const [over] = await standings(place.path);
    if (over !== undefined) await claimParked(place.path, over, owner);
    assert.deepEqual([await held(true), await held(false)], ["taken", "taken"]);
    assert.equal(await holderOf({ parks: undefined }, true), undefined);
  },
);

test("files with other names are ignored", async () => {
  await using place = await scratch();
  await place.write("parked/.keep", "");
  for (const name of ["a.parked", "a.x.parked", "a.1-2.taken", ".9.parked", "a.9.parked.x"])
    await writeFile(place.at("parked", name), "");
  assert.deepEqual(await standings(place.path), []);
  assert.deepEqual(await standings(place.at("nowhere")), []);
});

const bytes = (text: string): string => Buffer.from(text).toString("base64");

const JOB: KeptJob = {
  name: "main/j1",
  noted: '{"begun":1}',
  folder: "/w",
  call: 3,
  ms: 12.5,
  why: null,
  stdout: { head: bytes("é\0"), tail: "" },
  stderr: { head: "", tail: bytes("x") },
  errors: bytes("x"),
  result: null,
};

const BOX: ParkedBox = {
  container: "ab".repeat(32),
  labels: { "dev.harness.uid": "7" },
  volume: null,
  named: true,
  network: null,
  files: [{ path: "/w/é", dev: "1", ino: "18446744073709551615", born: "0" }],
  runner: { key: Buffer.alloc(32, 5), next: 9, asks: [{ call: 2, payload: Buffer.from([0, 255]) }] },
  jobs: [
    JOB,
    {
      ...JOB,
      name: "main/j2",
      why: "cancelled",
      result: {
        exit_code: 137,
        cause: "user",
        reason: "cancelled",
        duration_ms: 1,
        timed_out: false,
        killed: true,
        leftovers: 0,
        blocked: ["a"],
        quarantined: [{ from: "a", to: null, takeBack: "" }],
        peak: { memory_bytes: 1, pids: 2 },
        stdout: { total: 3, lost: 0 },
        stderr: { total: 1, lost: 0 },
      },
    },
  ],
};

test("a parked box is read back as it was written", () => {
  assert.deepEqual(readParked(parkedText(BOX)), BOX);
});

test("a parked box with any change is rejected", () => {
  const text = parkedText(BOX);
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom("0", "a", "}", '"', " ", ","), (at, by) => {
      const changed = text.slice(0, at) + by + text.slice(at + 1);
      const read = readParked(changed);
      // White space alone says nothing.
      if (changed !== text) assert.deepEqual(read, JSON.stringify(safe(changed)) === text ? BOX : undefined);
    }),
    { numRuns: many(600) },
  );
  for (const none of ["", "{}", "null", text.slice(1), `${text}x`]) assert.equal(readParked(none), undefined);
});

function safe(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

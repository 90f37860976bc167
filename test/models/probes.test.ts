import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import test from "node:test";
import { callsOf, type ProbeRecord, readProbes, recordOn, writeProbe } from "../../src/models/model-probe.ts";
import { scratch } from "../fixtures/scratch.ts";

const RECORD: ProbeRecord = {
  model: "qwen3:8b",
  server: "http://127.0.0.1:11434",
  version: "0.12.6",
  native: true,
  checks: { "one call": true },
  at: "2026-10-17T23:14:07.414Z",
};

test("a record is found under the same model, server and version, and no other", async () => {
  await using place = await scratch();
  const state = place.at("a/state");
  await writeProbe(state, RECORD);
  const probes = await readProbes(state);
  const subjects = [
    RECORD,
    { ...RECORD, model: "qwen3:4b" },
    { ...RECORD, server: "http://box:11434" },
    { ...RECORD, version: "0.12.7" },
  ];
  assert.deepEqual(
    subjects.map((subject) => recordOn(probes, subject)),
    [RECORD, undefined, undefined, undefined],
  );
});

test("a newer record stands in place of the older one, and nothing else is left in the folder", async () => {
  await using place = await scratch();
  const other = { ...RECORD, model: "qwen3:4b" };
  const newer = { ...RECORD, native: false };
  for (const record of [RECORD, other, newer]) await writeProbe(place.path, record);
  assert.deepEqual(await readProbes(place.path), [other, newer]);
  assert.deepEqual(await readdir(place.path), ["probes.json"]);
  assert.equal((await stat(place.at("probes.json"))).mode & 0o777, 0o600);
});

test("a file that cannot be read is as good as none, and is replaced", async () => {
  for (const text of ["", "{", '{"version":2,"probes":[]}', '{"version":1,"probes":[{"model":7}]}']) {
    await using place = await scratch({ "probes.json": text });
    assert.deepEqual(await readProbes(place.path), []);
    await writeProbe(place.path, RECORD);
    assert.deepEqual(await readProbes(place.path), [RECORD]);
  }
});

test("a folder that cannot be written to fails, and leaves nothing behind", async () => {
  await using place = await scratch({ state: "a file" });
  await assert.rejects(writeProbe(place.at("state"), RECORD));
  assert.deepEqual(await readdir(place.path), ["state"]);
});

test("the form that was best is kept; a record from before there were forms says native or text", async () => {
  await using place = await scratch();
  const held: ProbeRecord = {
    ...RECORD,
    native: false,
    calls: "held",
    shares: { native: { valid: 0, asked: 4 }, held: { valid: 4, asked: 4 } },
  };
  await writeProbe(place.path, held);
  assert.deepEqual(await readProbes(place.path), [held]);
  assert.deepEqual([held, RECORD, { ...RECORD, native: false }].map(callsOf), ["held", "native", "text"]);
});

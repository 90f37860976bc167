import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import test from "node:test";
import { layerOf, makeLayer, noteVolume } from "../../../src/boxes/workspace/layer-record.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { holdLayer, noteBytes } from "../../../src/boxes/workspace/session-layer.ts";

const MiB = 2 ** 20;

interface Household extends AsyncDisposable {
  readonly place: Scratch;
  readonly warnings: string[];
  /** Begins, or goes on with, a layer. */
  readonly begin: (session: string, quota: number) => Promise<void>;
}

/** One layer of two MiB, deep down, and one copy of one MiB. */
async function household(): Promise<Household> {
  const place = await scratch();
  const record = { workspace: place.path, volume: null, made: 1 };
  const layer = await makeLayer(place.path, { ...record, session: "big", isolation: "overlay" });
  await mkdir(`${layer.folder}/upper/a/b`, { recursive: true });
  await writeFile(`${layer.folder}/upper/a/b/c`, Buffer.alloc(2 * MiB, 1));
  const copy = await makeLayer(place.path, { ...record, session: "copied", isolation: "copy" });
  await noteVolume(copy, { volume: "v", missing: [], endpoint: { host: "unix:///run/d.sock" } });
  await noteBytes(copy.folder, MiB);
  const warnings: string[] = [];
  const room = (quota: number) => ({ quota, warn: (text: string) => void warnings.push(text) });
  return {
    place,
    warnings,
    begin: async (session, quota) => {
      const wanted = { session, workspace: place.path, isolation: "overlay" } as const;
      await (await holdLayer(place.path, wanted, room(quota)))[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

test("without room a new layer is refused and the sessions that take it are named, and nothing is removed", async () => {
  await using home = await household();
  const [code, text] = await refusalOf(() => home.begin("fresh", 2.9 * MiB));
  assert.equal(code, 6);
  assert.match(text, /3\.0 MiB of 2\.9 MiB: big \(2\.0 MiB\), copied \(1\.0 MiB\); there is no room/);
  const left = await Promise.all(["big", "copied", "fresh"].map((each) => layerOf(home.place.path, each)));
  assert.deepEqual(
    left.map((each) => each?.session),
    ["big", "copied", undefined],
  );
});

test("an existing layer continues without room, and a new one with little room starts with a warning", async () => {
  await using home = await household();
  await home.begin("big", MiB);
  assert.deepEqual(home.warnings, []);
  await home.begin("fresh", 3.5 * MiB);
  assert.match(home.warnings.join("\n"), /3\.0 MiB of 3\.5 MiB/);
  await home.begin("other", 30 * MiB);
  assert.equal(home.warnings.length, 1);
});

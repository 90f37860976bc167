import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { boxLabels, keptLabels } from "../../../src/boxes/box-record.ts";
import { giveUpLayer, layerOf } from "../../../src/boxes/workspace/layer-record.ts";
import { reap } from "../../../src/docker/box/reap.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { leftOver, noOverlay, openBox } from "./open-box.ts";

const UID = process.getuid?.() ?? 0;

test(
  "kept layers survive reaping, and discarded ones are removed with their root-owned files",
  { skip: noOverlay },
  async () => {
    await using place = await scratch({ "w/a/file": "1\n" });
    const stateDir = place.at("state");
    {
      await using opened = await openBox(place, { keep: "s" });
      await opened.sh("rm -r a; mkdir -p a/b; chmod 0 a/b");
    }
    await reap(engine, { uid: UID, stateDir });
    assert.ok(existsSync(place.at("state/layers/s/upper/a")));
    await giveUpLayer(stateDir, "s");
    assert.equal(await layerOf(stateDir, "s"), undefined);
    const { failed } = await reap(engine, { uid: UID, stateDir });
    assert.deepEqual([failed, await readdir(place.at("state/layers"))], [[], []]);
  },
);

test(
  "copies of dead runs without a layer are removed, and those of other state folders stay",
  { skip },
  async () => {
    await using place = await scratch({ "w/file": "1\n" });
    const stateDir = place.at("state");
    const owner = { pid: 999_999_999, start: "1", boot: "no such boot" };
    const box = boxLabels({
      workspace: place.at("w"),
      uid: UID,
      owner,
      session: "dead",
      created: new Date().toISOString(),
      isolation: "copy",
      mode: "workspace-write",
    });
    const { ["dev.harness.box"]: _, ...others } = box;
    const make = async (dir: string): Promise<string> => {
      const Labels = { ...others, ...keptLabels("s", dir) };
      return (await engine.api.createVolume({ Driver: "local", Labels })).name;
    };
    const [mine, theirs] = [await make(stateDir), await make(place.at("elsewhere"))];
    {
      await using _opened = await openBox(place, { keep: "s", isolation: "copy" });
    }
    const { volumes } = await reap(engine, { uid: UID, stateDir });
    const left = await leftOver(place.at("w"));
    assert.ok(
      !left.includes(mine) && left.includes(theirs) && left.length === 2,
      `${left.join()} ${volumes.join()}`,
    );
    await giveUpLayer(stateDir, "s");
    await reap(engine, { uid: UID, stateDir });
    assert.deepEqual(await leftOver(place.at("w")), [theirs]);
    await engine.api.getVolume(theirs).remove();
  },
);

test("a layer made over one folder is not used over another", { skip: noOverlay }, async () => {
  await using place = await scratch({ "w/file": "1\n", "x/file": "1\n" });
  {
    await using opened = await openBox(place, { keep: "s" });
    await opened.sh("echo 2 >file");
  }
  const [exit, message] = await refusalOf(() => openBox(place, { keep: "s", workspace: place.at("x") }));
  assert.equal(exit, 2);
  assert.match(message, /^this session's changes are in a layer over \S+\/w, and have not been applied$/);
  {
    await using _empty = await openBox(place, { keep: "t" });
  }
  await using other = await openBox(place, { keep: "t", workspace: place.at("x") });
  assert.equal(await other.sh("cat file"), "1\n");
});

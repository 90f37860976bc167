import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, sandboxExec } from "./box-command.ts";
import { harness } from "./run-command.ts";

/** What is made or changed in a box never counts by itself. */

const LOOSE = '{"mode": "danger-full-access"}';

const inBox = (place: Scratch, script: string, flags: readonly string[] = []) =>
  sandboxExec(place, [...flags, "--", "bash", "-c", script]);

interface Told {
  readonly hash: string;
  readonly items: readonly { readonly kind: string; readonly standing: string }[];
}

async function trustAll(place: Scratch): Promise<void> {
  const { hash } = JSON.parse((await harness(place, ["trust", "--show", "--json"])).stdout) as Told;
  assert.equal((await harness(place, ["trust", "--yes", hash])).code, 0);
}

const standings = async (place: Scratch) =>
  (JSON.parse((await harness(place, ["trust", "--show", "--json"])).stdout) as Told).items.map(
    ({ standing }) => standing,
  );

const modeOf = async (place: Scratch) => (await harness(place, ["config", "get", "mode"])).stdout.trim();

test("settings created by a box are gone afterwards, whatever their spelling", { skip }, async () => {
  await using place = await household({ "a.txt": "a" });
  for (const name of [".harness", ".Harness", ".devcontainer"])
    await inBox(place, `mkdir -p ${name} && echo '${LOOSE}' > ${name}/config.json; mkdir -p made; true`);
  assert.deepEqual(
    [".harness", ".Harness", ".devcontainer", "made"].map((name) => existsSync(place.at("work", name))),
    [false, false, false, true],
  );
  assert.deepEqual([await standings(place), await modeOf(place)], [[], "workspace-write"]);
});

test(
  "trusted files cannot be changed in a box, and a box that may write them makes them untrusted",
  { skip },
  async () => {
    const files = { ".harness/config.json": '{"pids": 1000}', ".devcontainer/devcontainer.json": "{}" };
    await using place = await household({ ...files, "src/a.txt": "a" });
    await trustAll(place);
    const script = (name: string) => `echo '${LOOSE}' > ${name}`;
    for (const name of Object.keys(files)) {
      const { code, stderr } = await inBox(place, script(name));
      assert.notEqual(code, 0, stderr);
    }
    assert.equal((await inBox(place, script("src/a.txt"))).code, 0);
    assert.equal(await readFile(place.at("work/src/a.txt"), "utf8"), `${LOOSE}\n`);
    assert.deepEqual(await standings(place), ["trusted", "trusted"]);
    const open = await inBox(place, script(".harness/config.json"), ["--mode", "danger-full-access"]);
    assert.equal(open.code, 0, open.stderr);
    assert.deepEqual(
      [await standings(place), await modeOf(place)],
      [["changed", "trusted"], "workspace-write"],
    );
  },
);

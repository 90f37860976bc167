import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { trustedFile } from "../../src/extensions/trust.ts";
import { scratch } from "../fixtures/scratch.ts";
import { Dice, killed } from "../kills/killed.ts";

const KINDS = ["settings", "environment", "rules"] as const;

/** A project with three kinds of things, and who records one of them. */
async function project() {
  const place = await scratch({
    "w/.harness/config.json": "{}",
    "w/.harness/env.json": "{}",
    "w/.harness/policy.json": "{}",
  });
  const owner = { stateDir: place.at("state"), home: place.at("home"), uid: process.getuid?.() ?? 0 };
  const words = [owner.stateDir, owner.home, place.at("w")];
  const states = async () =>
    Promise.all(KINDS.map(async (kind) => (await trustedFile(owner, place.at("w"), kind)).state));
  return { place, words, states };
}

test("processes that record at the same time lose nothing and leave no other files", async () => {
  const { place, words, states } = await project();
  await using _ = place;
  await Promise.all(
    KINDS.map((kind) => killed("fixtures/trust-writer.ts", [...words, kind], { kind: "never" })),
  );
  assert.deepEqual(await states(), ["trusted", "trusted", "trusted"]);
  const left = (await readdir(place.at("state/trust"))).filter((name) => !name.endsWith(".json"));
  assert.deepEqual(left, ["lock"]);
});

test("a process killed while another records does not affect the other's record", async () => {
  const { place, words, states } = await project();
  await using _ = place;
  await killed("fixtures/trust-writer.ts", [...words, "settings"], { kind: "never" });
  const dice = new Dice(7);
  for (let nth = 0; nth < 6; nth += 1) {
    const moment = { kind: "step", at: 1 + dice.below(30), half: nth % 2 === 0 } as const;
    await Promise.all([
      killed("fixtures/trust-writer.ts", [...words, "environment"], moment),
      killed("fixtures/trust-writer.ts", [...words, "rules"], { kind: "never" }),
    ]);
    const [settings, , rules] = await states();
    assert.deepEqual([settings, rules], ["trusted", "trusted"]);
  }
});

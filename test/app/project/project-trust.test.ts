import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { projectText, trustedFile } from "../../../src/app/project/project-trust.ts";
import { recordTrusted, trustOf } from "../../../src/extensions/trust.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("what a project brings is told apart: absent, not trusted, trusted", async () => {
  await using place = await scratch({ "w/.harness/config.json": "{}" });
  const host = hostFrom({ HOME: place.at("home") });
  const owner = { stateDir: host.places.state, home: host.places.home, uid: host.uid };
  const states = () =>
    Promise.all(
      (["settings", "environment"] as const).map(async (kind) => [
        (await trustedFile(host, place.at("w"), kind)).state,
        kind === "settings" && (await projectText(host, place.at("w"), kind))?.trusted,
      ]),
    );
  assert.deepEqual(await states(), [
    ["untrusted", false],
    ["absent", false],
  ]);
  const seen = await trustOf(owner, place.at("w"));
  assert.ok(seen.place);
  await recordTrusted(
    owner,
    seen.place,
    seen.items.map(({ brought }) => brought),
  );
  assert.deepEqual(await states(), [
    ["trusted", true],
    ["absent", false],
  ]);
});

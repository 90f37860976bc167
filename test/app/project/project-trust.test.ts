import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { projectText, trustedFile } from "../../../src/app/project/project-trust.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { trustAll } from "../../fixtures/trust-all.ts";

test("project files are absent, untrusted or trusted", async () => {
  await using place = await scratch({ "w/.harness/config.json": "{}" });
  const host = hostFrom({ HOME: place.at("home") });
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
  await trustAll(host, place.at("w"));
  assert.deepEqual(await states(), [
    ["trusted", true],
    ["absent", false],
  ]);
});

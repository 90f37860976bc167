import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import {
  forgetGone,
  projectText,
  readTrust,
  readUntrusted,
  trustedFile,
  untrustedIn,
} from "../../../src/app/project/project-trust.ts";
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

const HOOKS = '[{"event": "PreToolUse", "command": "guard"}]';

test("a guard that was trusted and is no longer there is reported until somebody has seen it", async () => {
  await using place = await scratch({ "w/.harness/hooks.json": HOOKS, "w/.harness/config.json": "{}" });
  const host = hostFrom({ HOME: place.at("home") });
  await trustAll(host, place.at("w"));
  assert.equal(await untrustedIn(host, place.at("w")), undefined);
  await rm(place.at("w/.harness/hooks.json"));
  const untrusted = await untrustedIn(host, place.at("w"));
  assert.match(
    untrusted?.text ?? "",
    /^no longer applies: \.harness\/hooks\.json \(it was trusted, and is no longer there\); harness trust/,
  );
  assert.deepEqual(untrusted?.items, [
    { kind: "hooks", file: ".harness/hooks.json", why: "it was trusted, and is no longer there" },
  ]);
  await forgetGone(host, await readTrust(host, place.at("w")));
  assert.equal(await untrustedIn(host, place.at("w")), undefined);
  await place.write("w/.harness/hooks.json", HOOKS);
  assert.equal((await trustedFile(host, place.at("w"), "hooks")).state, "untrusted");
});

test("a guard that is trusted above, and that a nearer folder keeps from applying, is reported", async () => {
  await using place = await scratch({ "w/.git/HEAD": "", "w/.harness/hooks.json": HOOKS, "w/b/c/x": "" });
  const host = hostFrom({ HOME: place.at("home") });
  await trustAll(host, place.at("w"));
  assert.equal((await trustedFile(host, place.at("w/b/c"), "hooks")).state, "trusted");
  assert.equal(await untrustedIn(host, place.at("w/b/c")), undefined);
  await place.write("w/b/.harness/readme", "");
  assert.equal((await trustedFile(host, place.at("w/b/c"), "hooks")).state, "absent");
  const { text = "", items } = (await untrustedIn(host, place.at("w/b/c"))) ?? {};
  assert.equal(
    text,
    `does not apply, although it is trusted: ${place.at("w/.harness/hooks.json")} (the project is ${place.at("w/b")}, which is nearer)`,
  );
  assert.deepEqual(items, []);
  // A person who has decided about the nearer one knows of it.
  await place.write("w/b/.harness/config.json", "{}");
  await trustAll(host, place.at("w/b/c"));
  assert.equal(await untrustedIn(host, place.at("w/b/c")), undefined);
  assert.deepEqual((await readUntrusted(host, place.at("w"))).shown.outer, []);
});

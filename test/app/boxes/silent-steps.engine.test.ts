import assert from "node:assert/strict";
import test from "node:test";
import { buildEnvironment } from "../../../src/app/boxes/environment-build.ts";
import { ownEnvironments, removeEnvironments } from "../../../src/app/boxes/own-boxes.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { HarnessError } from "../../../src/core/errors.ts";
import { skip } from "../../fixtures/engine.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import { scratch } from "../../fixtures/scratch.ts";

/** What a recipe comes to where a step may be silent for that long: the versions, or the message. */
async function built(recipe: object, silentMs: number): Promise<string> {
  await using place = await scratch({
    "work/.keep": "",
    ".config/harness/environments/own.json": JSON.stringify(recipe),
  });
  await giveAway(place.at("work"));
  const host = hostFrom({ HOME: place.path, PATH: process.env["PATH"] });
  const told: string[] = [];
  const wanted = {
    host,
    settings: { ...DEFAULTS, env: "own" },
    workspace: place.at("work"),
    rebuild: false,
    silentMs,
    onStep: ({ title }: { readonly title: string }) => void told.push(title),
    onOutput: () => undefined,
    warn: () => undefined,
  };
  try {
    await buildEnvironment(wanted, AbortSignal.timeout(120_000));
    return `built: ${told.join("; ")}`;
  } catch (thrown) {
    assert.ok(thrown instanceof HarnessError, String(thrown));
    return thrown.message;
  } finally {
    await removeEnvironments(
      host,
      (await ownEnvironments(host)).map(({ id }) => id),
    );
  }
}

/** It asks again and again for what it does not get, and says so once. */
const HANGS = "echo first; echo ERR not granted >&2; while :; do sleep 1; done";
const TELLS = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done";

test(
  "a set-up command that hangs without output is ended and its last words are shown, and one that keeps printing is not",
  { skip },
  async () => {
    const hung = await built({ setup: [{ run: "true" }, { run: HANGS }] }, 2500);
    assert.match(
      hung,
      /^set-up failed: echo first[^]*\(ended: it printed nothing for 2\.5 s\)\n {4}first\n {4}ERR not granted$/,
    );
    assert.match(await built({ setup: [{ run: TELLS }] }, 2500), /^built: /);
  },
);

test("a silent line of the system layer is ended in the same way", { skip }, async () => {
  const hung = await built({ system: [{ run: HANGS }] }, 2500);
  assert.match(
    hung,
    /^set-up failed: echo first[^]*\(ended: it printed nothing for 2\.5 s\)\n {4}first\n {4}ERR not granted$/,
  );
});

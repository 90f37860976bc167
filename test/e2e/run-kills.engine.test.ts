// slow: it kills a run at many moments, one after the other
import assert from "node:assert/strict";
import test from "node:test";
import { History } from "../../src/agent/context/history.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { skip } from "../fixtures/engine.ts";
import { many } from "../fixtures/property.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { wholeFiles, writer } from "../kills/engine-lives.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const KILLS = many(10);
test("a run killed at any moment loses nothing and leaves nothing half-done", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((_chat, nth) => writer(nth));
  // Moments are fractions of the duration of a whole run, to be independent of the machine's load.
  const start = performance.now();
  const whole = await harness(place, ["run", "--quiet", ...model.flags, "--max-turns", "4", "write files"]);
  // What it writes does not fit the window for long.
  assert.ok(whole.code === 1 || whole.code === 3, whole.stderr);
  const wholeMs = performance.now() - start;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const flags = ["run", "--quiet", ...model.flags, "--max-turns", "500", "write files"];
    await harness(place, kill % 3 === 2 ? [...flags, "--continue"] : flags, {
      killAfterMs: wholeMs * (0.05 + ((kill * 7919) % 997) / 997),
    });
  }
  assert.ok((await wholeFiles(place.at("work"))) > 0, "nothing was ever written, so nothing was tested");
  const asked = await resumed(place);
  assertValid(asked);
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

/** Every session can be read and its history sent; the last one goes on, and ends. */
async function resumed(place: Awaited<ReturnType<typeof household>>) {
  using store = openStore(place.at(".local/state/harness"));
  const sessions = store.list({});
  assert.ok(sessions.length >= KILLS / 3, `${sessions.length} sessions`);
  for (const { id } of sessions) History.from(store.open(id).records(), () => undefined).view();
  await using model = await startModel([{ text: "It goes on." }]);
  const ran = await harness(place, [
    "run",
    "--json",
    "--continue",
    ...model.flags,
    "--intent",
    "direct",
    "go on",
  ]);
  assert.equal(finishedOf(ran).status, "done", ran.stderr);
  return model.asked();
}

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, type Ran, type Said, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";

const bash = (...commands: readonly string[]): Said => ({
  calls: commands.map((command) => ["bash", { command }] as const),
});
const FINE: Said = { text: "Everything is done." };
/** Asks, and is not contained; what it says in the box tells that it ran. */
const FAR = "curl -sS -m 5 http://example.com/x || echo tried";
const PARK = ["run", "--json", "--on-ask", "park"] as const;

const endOf = (ran: Ran): readonly unknown[] => {
  const { status, exit_code } = finishedOf(ran);
  return [ran.code, exit_code, status];
};
const sessionOf = (ran: Ran): string => finishedOf(ran).session;

test("a question stops the run there, and approve goes on with the rest of the reply", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash("echo one > one", FAR, "echo three > three"), FINE]);
  const ran = await harness(place, [...PARK, ...model.flags, "do it"]);
  assert.deepEqual(endOf(ran), [7, 7, "parked"], ran.stderr);
  assert.match(finishedOf(ran).reason, /curl/);
  assert.deepEqual([existsSync(place.at("work/one")), existsSync(place.at("work/three"))], [true, false]);
  assert.equal(model.asked().length, 1);
  const shown = await harness(place, ["sessions", "show", sessionOf(ran)]);
  assert.match(shown.stdout, /curl -sS -m 5 http:\/\/example\.com\/x \|\| echo tried/);
  assert.match(shown.stdout, new RegExp(`harness approve ${sessionOf(ran)}`));
  const more = await harness(place, ["approve", sessionOf(ran), "--once"]);
  assert.deepEqual([more.code, more.stdout], [0, `${FINE.text}\n`], more.stderr);
  assert.equal(existsSync(place.at("work/three")), true);
  assertValid(model.asked());
  const [one = "", far = "", three = ""] = resultsIn(model.asked()[1]);
  assert.match(far, /tried/);
  assert.doesNotMatch(one + three, /tried|parked/);
});

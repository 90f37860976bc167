import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { approve, bash, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { boxesFor, counting } from "./frozen.ts";
import { eventsOf, startModel } from "./run-command.ts";
import { assertValid, resultsIn } from "./run-requests.ts";

test("the box waits with its jobs and /tmp, nothing runs in it, and approve goes on in it", { skip }, async () => {
  await using place = await household();
  const look = bash("cat /tmp/n /tmp/kept; sleep 1; cat /tmp/n");
  await using model = await startModel([
    { calls: [["bash", { command: counting, background: true }], ["bash", { command: "echo kept > /tmp/kept; cd /tmp; export MINE=1" }]] },
    bash(FAR),
    look,
    { calls: [["bash", { job: "j1" }], ["bash", { command: "pwd; echo $MINE" }], ["bash", { job: "j1", kill: true }]] },
    FINE,
  ]);
  const ran = await park(place, model);
  assert.deepEqual(endOf(ran), PARKED, ran.stderr);
  const session = sessionOf(ran);
  const [box, ...others] = await boxesFor(place);
  assert.deepEqual([box?.State, others], ["paused", []], ran.stderr);
  const more = await approve(place, session, ["--once", "--json"]);
  assert.equal(more.code, 0, more.stderr);
  assert.equal(more.stderr, "");
  assertValid(model.asked());
  console.log(JSON.stringify(model.asked().map((chat) => resultsIn(chat).slice(-3)), null, 1));
  console.log(eventsOf(more).filter(({type}) => type === "run.finished" || type==="box.ready"));
  assert.deepEqual(await boxesFor(place), []);
});

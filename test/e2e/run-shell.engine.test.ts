import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, startModel } from "./run-command.ts";

const COMMANDS: readonly (readonly [command: string, runs: boolean])[] = [
  ["source ./env.sh", true],
  ["export FOO=1; mkdir sub; cd sub", true],
  ["export http_proxy=http://proxy.example.org", false],
  ['echo "$FOO" >out.txt', true],
  ["ls", true],
];

test("folder and variables persist between commands with nobody there", { skip }, async () => {
  await using place = await household({ "env.sh": "export PATH=/x:$PATH FOO=1\n" });
  await using model = await startModel([
    ...COMMANDS.map(([command]) => ({ calls: [["bash", { command }]] as const })),
    { text: "done" },
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "set the environment up"]);
  assert.equal(finishedOf(ran).denials.length, 1, ran.stderr);
  assert.deepEqual(
    eventsOf(ran).flatMap((event) => (event.type === "call.decided" ? [event.runs] : [])),
    COMMANDS.map(([, runs]) => runs),
  );
  assert.equal(await place.read("work/sub/out.txt"), "1\n");
  // Resource use is reported for each command that ran, and for nothing else.
  const peaks = eventsOf(ran).flatMap((event) => (event.type === "call.ended" ? [event.peak] : []));
  assert.deepEqual(
    peaks.map((peak) => peak !== undefined && peak.pids > 0 && peak.memory_bytes > 0),
    COMMANDS.map(([, runs]) => runs),
  );
});

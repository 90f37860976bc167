import assert from "node:assert/strict";
import test from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, sandboxExec } from "./box-command.ts";
import { noScreen, onScreen } from "./drawn-chat.ts";

/** The first two go on once somebody has made a file for each. */
const RECIPE = {
  folders: ["deps"],
  setup: [
    { run: "echo one >> deps/count" },
    { run: "test -f second || sleep 600" },
    { run: "test -f third || sleep 600" },
    { run: "echo four >> deps/count" },
  ],
};
const BUILD = ["env", "build", "--env", "own"];

/** Until this stands on the screen; then Ctrl-C. What was on it, and every byte that was sent. */
async function stoppedAt(
  place: Scratch,
  columns: number,
  wanted: RegExp,
): Promise<{ readonly seen: string; readonly sent: string }> {
  await using screen = await onScreen(place, BUILD, { columns });
  const seen = await screen.until(wanted);
  await screen.press("C-c");
  const left = await screen.until(/left with \d+/);
  assert.match(left, /^error: interrupted\n {2}next: harness env build {3}\(continues\)\nleft with 130$/m);
  assert.doesNotMatch(left, /^environment /m, "no bar stays behind");
  return { seen, sent: await screen.bytes() };
}

test(
  "a build on a terminal draws a progress bar and can be stopped with Ctrl-C, the next one continues, and without redrawing lines show the same",
  { skip: skip || noScreen },
  async () => {
    await using place = await household();
    await place.write(".config/harness/environments/own.json", JSON.stringify(RECIPE));
    try {
      const wide = await stoppedAt(
        place,
        100,
        /^environment \[#{6}\.{18}\] 25 % 1 of 4 steps {2}test -f second/m,
      );
      assert.match(
        wide.seen,
        /^1\/4 echo one >> deps\/count\n2\/4 test -f second \|\| sleep 600\nenvironment /m,
      );
      assert.match(wide.sent, /environment \[\.{24}\] 0 % 0 of 4 steps[^]*environment \[#{6}\.{18}\] 25 %/);

      await place.write("work/second", "");
      const narrow = await stoppedAt(place, 44, /^environment 50 % 2 of 4 steps\b/m);
      assert.doesNotMatch(narrow.sent, /\[[#.]+\]/);
      assert.doesNotMatch(narrow.sent, /1\/4| 0 % 0 of/, "what was done is not done again");
      for (const row of narrow.seen.split("\n")) assert.ok(row.length < 44, row);

      await place.write("work/third", "");
      const ended = await runProgram("bin/harness", BUILD, { home: place.path, cwd: place.at("work") });
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stderr, /^3\/4 test -f third \|\| sleep 600\n4\/4 echo four >> deps\/count\n/m);
      assert.doesNotMatch(ended.stderr, /\u001B|[\r%]|\[[#.]+\]/);
      const { stdout } = await sandboxExec(place, ["--env", "own", "--", "cat", "deps/count"]);
      assert.equal(stdout.toString(), "one\nfour\n");
    } finally {
      await runProgram("bin/harness", ["env", "rm", "--all"], { home: place.path, cwd: place.at("work") });
    }
  },
);

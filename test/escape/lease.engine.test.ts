// alone: its boxes attack the machine until their lease is over
import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { household } from "../e2e/box-command.ts";
import { boxesFor, goneWithin, LEASE_MS } from "../e2e/frozen.ts";
import { DONE, endOf, FINE, park } from "../e2e/parked.ts";
import { bash, harness, startModel } from "../e2e/run-command.ts";
import { skip } from "../fixtures/engine.ts";

/** A box that may be frozen outlives the connection of its harness; it must not outlive the harness. */

const SPIN = "for i in $(seq 120); do (while :; do :; done) & done";
const ATTACKS: Readonly<Record<string, string>> = {
  "uses all its processor time": `${SPIN}; touch begun; wait`,
  "signals the runner":
    "touch begun; while :; do kill -STOP 1; kill -CONT 1; kill -9 1; kill -USR1 1; kill -CHLD 1; done 2> /dev/null",
  "writes to the runner's connection":
    "touch begun; while :; do for fd in 0 1 2 3; do head -c 4096 /dev/urandom > /proc/1/fd/$fd; done; done 2> /dev/null",
  "floods the runner with output": "touch begun; yes | tee /dev/stderr",
  "forks endlessly": "touch begun; f() { f | f & }; f; sleep 100",
  "keeps the runner reaping": "touch begun; while :; do (setsid sh -c 'sleep 0.01 &' &) ; done",
  "speaks to the runner's socket":
    "touch begun; python3 -c \"import socket,time\nwhile 1:\n  s=socket.socket(socket.AF_UNIX)\n  try:\n    s.connect('/run/harness.sock'); s.sendall(b'\\x0e'*64); time.sleep(0.01)\n  except OSError: pass\"",
  "stops its own supervisor": "touch begun; kill -STOP $PPID; while :; do :; done",
};

/** Whether a box with this in it stood when its harness had been killed; it is gone with its lease. */
async function goneWithItsLease(command: string): Promise<boolean> {
  // The project's own code, which the policy lets run as contained.
  await using place = await household({ "attack.sh": `${command}\n` });
  await using model = await startModel([
    { calls: [["bash", { command: "bash ./attack.sh", background: true }]] },
    // A second command would end at once where the first one has used up every process.
    "hang",
  ]);
  const words = ["run", "--on-ask", "park", "--cpus", "0.1", ...model.flags, "do it"];
  const killed = await harness(place, words, {
    whenMade: [place.at("work/begun"), (child) => void setTimeout(() => child.kill("SIGKILL"), 1500)],
  });
  assert.equal(killed.code, null, killed.stderr);
  const stood = (await boxesFor(place)).length === 1;
  await goneWithin(place, LEASE_MS + 15_000);
  return stood;
}

/**
 * Side by side, each with a box of its own: most of it is waiting. What they attack is the runner, which has no more
 * than they have; all that the machine has is attacked under the one harness that lives.
 */
describe("a lease", { concurrency: 2 }, () => {
  describe("a command", { concurrency: 8 }, () => {
    for (const [what, command] of Object.entries(ATTACKS))
      test(`a command that ${what} is gone one lease after its harness was killed`, { skip }, async () => {
        // A harness of another test that starts at that moment removes what a dead one left.
        for (let tries = 0; tries < 3; tries += 1) if (await goneWithItsLease(command)) return;
        assert.fail("the end by the lease was never observed");
      });
  });

  describe("a harness", { concurrency: 2 }, () => {
    test(
      "a living harness keeps its box for longer than a lease, whatever the commands do",
      { skip },
      async () => {
        await using place = await household({ "spin.sh": `${SPIN}; wait\n` });
        await using model = await startModel([
          { calls: [["bash", { command: "bash ./spin.sh", background: true }]] },
          bash(`sleep ${LEASE_MS / 1000 + 6}; echo still > still`),
          FINE,
        ]);
        assert.deepEqual(endOf(await park(place, model)), DONE);
        assert.equal(await place.read("work/still"), "still\n");
      },
    );

    test("a run that cannot be parked ends its box with its input, without a lease", { skip }, async () => {
      await using place = await household();
      await using model = await startModel([bash("touch begun; sleep 100"), FINE]);
      await harness(place, ["run", ...model.flags, "do it"], {
        whenMade: [place.at("work/begun"), (child) => child.kill("SIGKILL")],
      });
      await goneWithin(place, 3000);
    });

    test("a harness stopped for less than a lease continues with its box", { skip }, async () => {
      await using place = await household();
      await using model = await startModel([bash("touch begun; sleep 12; echo still > still"), FINE]);
      const ran = await harness(place, ["run", "--json", "--on-ask", "park", ...model.flags, "do it"], {
        whenMade: [
          place.at("work/begun"),
          (child) => {
            child.kill("SIGSTOP");
            void sleep(8000).then(() => child.kill("SIGCONT"));
          },
        ],
      });
      assert.deepEqual(endOf(ran), DONE, ran.stderr);
    });
  });
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import test, { describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { household, sandboxExec } from "../../e2e/box-command.ts";
import { boxesFor, goneWithin } from "../../e2e/frozen.ts";
import { FINE } from "../../e2e/parked.ts";
import { bash, finishedOf, harness, startModel } from "../../e2e/run-command.ts";
import { COMPILED } from "../../fixtures/cli.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { ROOT, skip } from "../../fixtures/engine.ts";
import { Room } from "../../fixtures/escape.ts";
import type { Scratch } from "../../fixtures/scratch.ts";
import { engineProxy, type Proxy } from "../life-proxy.ts";
import { goneWithin as roomGoneWithin, leftOn, startRun } from "../life-run.ts";

/** On a busy machine the runtime may not freeze it at once, and says so. */
async function paused(id: string, tries = 5): Promise<void> {
  await engine.api
    .getContainer(id)
    .pause()
    .catch(async (thrown: unknown) => {
      if (tries <= 1 || !/unable to freeze/.test(String(thrown))) throw thrown;
      await paused(id, tries - 1);
    });
}

/** A container that is paused and an engine that hangs end no connection; nothing may wait for them for ever. */

/** On a busy machine the runtime takes seconds to freeze a container, which must be before the command's time is over. */
const TIMEOUT_S = "10";

/** Far more than a deadline and its grace on a loaded machine, far less than for ever. */
const SOON_MS = 150_000;

async function freeze(place: Scratch): Promise<void> {
  for (const { Id } of await boxesFor(place)) await paused(Id);
}

async function frozenFor(place: Scratch, ms: number): Promise<void> {
  await freeze(place);
  await sleep(ms);
  for (const { Id } of await boxesFor(place)) await engine.api.getContainer(Id).unpause();
}

async function soon<T>(work: Promise<T>): Promise<T> {
  const late = sleep(SOON_MS, undefined, { ref: false }).then(() => assert.fail("it waits forever"));
  return Promise.race([work, late]);
}

const BEGIN = "touch begun; while :; do sleep 0.1; done";

/** What a start asks of the engine, as in life.engine.test.ts; from there on it takes everything and answers nothing. */
const STAGES = ["GET version", "GET containers/json", "POST containers/create", "POST containers/ID/start"];

/** Side by side: all of it is waiting. */
describe("nothing waits forever", { concurrency: 2 }, () => {
  describe("a container is paused while a command runs", { concurrency: 4 }, () => {
    test("exec --timeout: the box is lost shortly afterwards, and removed", { skip }, async () => {
      await using place = await household();
      const { code, stderr } = await soon(
        sandboxExec(place, ["--timeout", TIMEOUT_S, "--", "sh", "-c", BEGIN], {
          whenMade: [place.at("work/begun"), () => void freeze(place)],
        }),
      );
      assert.equal(code, 125, stderr);
      assert.match(stderr, /has not answered for 5 seconds[^]*next: /);
      await goneWithin(place, 5000);
    });

    for (const [signal, code] of [
      ["SIGTERM", 143],
      ["SIGINT", 130],
    ] as const)
      test(`exec: the first ${signal} ends it`, { skip }, async () => {
        await using place = await household();
        const ended = await soon(
          sandboxExec(place, ["--", "sh", "-c", BEGIN], {
            whenMade: [place.at("work/begun"), (kill) => void freeze(place).then(() => kill(signal))],
          }),
        );
        assert.equal(ended.code, code, ended.stderr);
        await goneWithin(place, 5000);
      });

    for (const [flags, codes] of [
      [
        ["--max-time", "4"],
        [3, 6],
      ],
      [["--timeout", TIMEOUT_S], [6]],
    ] as const)
      test(`run ${flags.join(" ")}: the run ends and reports it`, { skip }, async () => {
        await using place = await household();
        await using model = await startModel([bash(BEGIN), FINE]);
        const ran = await soon(
          harness(place, ["run", "--json", ...flags, ...model.flags, "do it"], {
            whenMade: [place.at("work/begun"), () => void freeze(place)],
          }),
        );
        const { exit_code, reason } = finishedOf(ran);
        assert.ok((codes as readonly number[]).includes(exit_code) && ran.code === exit_code, reason);
        await goneWithin(place, 5000);
      });

    test("run: the first SIGTERM ends it", { skip }, async () => {
      await using place = await household();
      await using model = await startModel([bash(BEGIN), FINE]);
      const ran = await soon(
        harness(place, ["run", "--json", ...model.flags, "do it"], {
          whenMade: [place.at("work/begun"), (child) => void freeze(place).then(() => child.kill("SIGTERM"))],
        }),
      );
      assert.deepEqual([ran.code, finishedOf(ran).exit_code], [143, 143], ran.stderr);
      await goneWithin(place, 5000);
    });

    test(
      "a reader that stops reading does not prevent a signal from ending the command",
      { skip },
      async () => {
        await using place = await household();
        const child = spawn(
          path.join(ROOT, "bin/harness"),
          ["sandbox", "exec", "--", "sh", "-c", "touch begun; yes"],
          {
            cwd: place.at("work"),
            env: { PATH: process.env["PATH"], HOME: place.path, ...COMPILED },
            stdio: ["ignore", "pipe", "ignore"],
          },
        );
        const closed = once(child, "exit");
        for (let i = 0; i < 1000 && !existsSync(place.at("work/begun")); i += 1) await sleep(20);
        await sleep(1000);
        child.kill("SIGTERM");
        assert.deepEqual(await soon(closed), [143, null]);
        child.stdout.destroy();
        await goneWithin(place, 5000);
      },
    );

    test("a shorter pause does not end the command", { skip }, async () => {
      await using place = await household();
      const { code, stdout, stderr } = await sandboxExec(
        place,
        ["--", "sh", "-c", "touch begun; until [ -e go ]; do sleep 0.1; done; echo through"],
        {
          whenMade: [
            place.at("work/begun"),
            () => void frozenFor(place, 2000).then(() => place.write("work/go", "")),
          ],
        },
      );
      assert.deepEqual([code, stdout.toString(), stderr], [0, "through\n", ""]);
    });
  });

  describe("an engine hangs", { concurrency: 5 }, () => {
    for (const stage of STAGES)
      test(`at ${stage}: SIGTERM ends the start`, { skip }, async () => {
        await using room = await Room.make();
        const state: { run?: ReturnType<typeof startRun>; proxy?: Proxy } = {};
        await using proxy = await engineProxy(path.join(room.root, "engine.sock"), (request) => {
          if (request !== stage) return;
          state.proxy?.stall();
          state.run?.child.kill("SIGTERM");
        });
        state.proxy = proxy;
        const run = (state.run = startRun(room, "echo ran", { DOCKER_HOST: proxy.host }));
        assert.equal(await soon(run.ended), 143, run.said());
        assert.doesNotMatch(run.said(), /^ran/m);
        const next = startRun(room, "echo fine");
        assert.deepEqual([await next.ended, next.said(), await leftOn(room)], [0, "fine\n", []]);
      });

    test(
      "while a command with a timeout runs: the box is lost, and what is left is reported",
      { skip },
      async () => {
        await using room = await Room.make();
        await using proxy = await engineProxy(path.join(room.root, "engine.sock"));
        const run = startRun(room, "echo begun; sleep 100", { DOCKER_HOST: proxy.host }, ["--timeout", "2"]);
        await run.until("begun");
        proxy.stall();
        assert.equal(await soon(run.ended), 125, run.said());
        assert.match(run.said(), /has not answered for 5 seconds/);
        // Its runner may have exited by then for lack of requests, so nothing is left to report.
        if (!run.said().includes("could not be removed")) assert.deepEqual(await room.boxes(), []);
        proxy.cut();
        await roomGoneWithin(room, 5000);
        const next = startRun(room, "echo fine");
        assert.deepEqual([await next.ended, next.said(), await leftOn(room)], [0, "fine\n", []]);
      },
    );
  });
});

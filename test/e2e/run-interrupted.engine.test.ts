import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { bash, eventsOf, finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const STUBBORN = `python3 -c 'import signal, time
for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, signal.SIG_IGN)
open("began", "w"); time.sleep(60)'`;
const UNTIL_GO = "until [ -e go ]; do sleep 0.1; done";
const LATE = `touch began; (${UNTIL_GO}; touch late) & ${UNTIL_GO}; touch later; wait`;

/** What would have been made by now if something of the call still ran. */
async function madeLater(place: Scratch): Promise<readonly string[]> {
  await place.write("work/go", "");
  await sleep(1000);
  return ["late", "later"].filter((name) => existsSync(place.at("work", name)));
}

/** The next run sees a complete history, in a workspace that is not locked. */
async function goesOn(place: Scratch, roles: readonly string[]): Promise<void> {
  assert.deepEqual(await boxesOver(place.at("work")), []);
  await using model = await startModel([bash("touch next"), { text: "went on" }]);
  const ran = await harness(place, ["run", "--continue", ...model.flags, "go on"]);
  assert.deepEqual([ran.code, ran.stdout], [0, "went on\n"], ran.stderr);
  assertValid(model.asked());
  assert.deepEqual(
    model.asked()[0]?.messages.map(({ role }) => role),
    roles,
  );
  assert.ok(existsSync(place.at("work/next")));
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  test(
    `${signal} during a call ends the run with ${code}: nothing keeps running, and changes stay`,
    {
      skip,
    },
    async () => {
      await using place = await household();
      await using model = await startModel([bash("touch first"), bash(LATE)]);
      const ran = await harness(place, ["run", "--json", ...model.flags, "make files"], {
        whenMade: [place.at("work/began"), (child) => child.kill(signal)],
      });
      const { status, exit_code, changes } = finishedOf(ran);
      assert.deepEqual([ran.code, status, exit_code], [code, "interrupted", code], ran.stderr);
      assert.deepEqual(changes?.added, ["began", "first"]);
      assert.ok(eventsOf(ran).some((event) => event.type === "rolled_back"));
      await goesOn(place, ["system", "user", "assistant", "tool", "user"]);
      assert.deepEqual(await madeLater(place), []);
    },
  );

test("a signal while the model is silent ends the run at once, and it can be resumed", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((_chat, nth) => (nth === 0 ? bash("touch first") : "hang"));
  const ran = await harness(place, ["run", "--json", ...model.flags, "make files"], {
    whenMade: [place.at("work/first"), (child) => setTimeout(() => child.kill("SIGINT"), 500)],
  });
  assert.deepEqual([ran.code, finishedOf(ran).status], [130, "interrupted"], ran.stderr);
  await goesOn(place, ["system", "user", "assistant", "tool", "user"]);
});

test("two signals end it although its command ignores them", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([bash(STUBBORN)]);
  const ran = await harness(place, ["run", ...model.flags, "wait"], {
    whenMade: [
      place.at("work/began"),
      (child) => {
        child.kill("SIGINT");
        setTimeout(() => child.kill("SIGINT"), 5);
      },
    ],
  });
  assert.deepEqual([ran.code, ran.stdout], [130, ""], ran.stderr);
  await using next = await startModel([bash("touch next"), { text: "went on" }]);
  const more = await harness(place, ["run", "--continue", ...next.flags, "go on"]);
  assert.equal(more.code, 0, more.stderr);
  assertValid(next.asked());
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

test("closing stdout early ends the run with its box", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((_chat, nth) => bash(`sleep 0.2; touch f${nth}`));
  const ran = await harness(place, ["run", "--json", "--max-turns", "30", ...model.flags, "make files"], {
    readsOnce: true,
  });
  assert.deepEqual([ran.code, existsSync(place.at("work/f20"))], [129, false], ran.stderr);
  assert.deepEqual(await boxesOver(place.at("work")), []);
});

test(
  "a harness killed during a call leaves a session, and the next run removes its box",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel([bash("touch first"), bash(LATE)]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "make files"], {
      whenMade: [place.at("work/began"), (child) => child.kill("SIGKILL")],
    });
    assert.equal(ran.code, null);
    await goesOnAfterKill(place);
  },
);

/** The call that was running has a result that says that it has none. */
async function goesOnAfterKill(place: Scratch): Promise<void> {
  await using model = await startModel([bash("touch next"), { text: "went on" }]);
  const ran = await harness(place, ["run", "--continue", ...model.flags, "go on"]);
  assert.deepEqual([ran.code, ran.stdout], [0, "went on\n"], ran.stderr);
  assertValid(model.asked());
  const results = model.asked()[0]?.messages.filter(({ role }) => role === "tool") ?? [];
  assert.match(results.at(-1)?.content ?? "", /No result: the call was interrupted/);
  assert.deepEqual(await boxesOver(place.at("work")), []);
  assert.deepEqual(await madeLater(place), []);
}

test("a command cancelled after 100 ms creates no file later", { skip }, async () => {
  await using place = await household();
  const made = `touch began; nohup setsid bash -c '${UNTIL_GO}; touch late' >/dev/null 2>&1 & ${UNTIL_GO}; touch later`;
  await using model = await startModel([bash(made)]);
  const ran = await harness(place, ["run", ...model.flags, "make a file"], {
    whenMade: [place.at("work/began"), (child) => setTimeout(() => child.kill("SIGINT"), 100)],
  });
  assert.equal(ran.code, 130, ran.stderr);
  assert.deepEqual([existsSync(place.at("work/began")), await madeLater(place)], [true, []]);
});

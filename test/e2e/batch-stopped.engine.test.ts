// also slow: a second signal
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { processOwner } from "../../src/boxes/box-record.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { batchOf, folders, replies, rowsText } from "./batch.ts";
import { type AskedChat, harness, type Ran, startModel } from "./run-command.ts";
import { firstOf } from "../fixtures/slow-test.ts";

/** Rows of which the one in `b` waits for its model until it is released. */
async function threeRows(place: Scratch): Promise<string> {
  const rows = ["a", "b", "c"].map((name) => ({
    dir: place.at(name),
    prompt: `Change the notes. do: echo ${name}${name} >> notes.txt`,
  }));
  return place.write("tasks.jsonl", rowsText(rows));
}

const isAbout = (chat: AskedChat, name: string): boolean =>
  chat.messages.some(({ content }) => content.includes(`echo ${name}${name}`));

/** Once so many rows have ended, and the one that waits is under way. */
async function untilEnded(place: Scratch, ended: number): Promise<readonly string[]> {
  for (let nth = 0; nth < 1500; nth += 1) {
    const lines =
      (await readFile(place.at("out/results.jsonl"), "utf8").catch(() => "")).split("\n").length - 1;
    const running = await readdir(place.at("out/running")).catch(() => []);
    if (lines >= ended && running.length > 0) return running;
    await sleep(20);
  }
  return assert.fail(`there are not ${ended} rows that have ended`);
}

/** One that has ended and was not waited for yet is gone. */
const isThere = async (pid: number): Promise<boolean> => (await processOwner(pid)) !== undefined;

const idsIn = async (place: Scratch): Promise<readonly string[]> =>
  (await readFile(place.at("out/results.jsonl"), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly id: string }).id);

/** The batch of `threeRows`, and what is done to its process while the row of `b` waits. */
function started(
  place: Scratch,
  words: readonly string[],
  meanwhile?: (child: ChildProcess) => Promise<void>,
): Promise<Ran> {
  const line = [
    "batch",
    place.at("tasks.jsonl"),
    "--json",
    "--jobs",
    "2",
    "--out",
    place.at("out"),
    ...words,
  ];
  if (meanwhile === undefined) return harness(place, line);
  return harness(place, line, { whenMade: [place.at("out/lock"), (child) => void meanwhile(child)] });
}

test(
  "a killed batch continues with the unfinished rows: nothing runs twice, is lost or is left behind",
  { skip },
  async () => {
    await using place = await folders("a", "b", "c");
    const state = { hangs: true, pid: 0 };
    await using model = await startModel((chat) =>
      state.hangs && isAbout(chat, "b") ? "hang" : replies(chat),
    );
    await threeRows(place);
    const killed = await started(place, model.flags, async (child) => {
      const [running = ""] = await untilEnded(place, 2);
      const note = JSON.parse(await readFile(place.at("out/running", running), "utf8")) as {
        readonly pid: number;
      };
      state.pid = note.pid;
      child.kill("SIGKILL");
    });
    assert.equal(killed.code, null);
    assert.ok(await isThere(state.pid), "the run of the row is not left");
    const before = await idsIn(place);
    assert.equal(before.length, 2);
    state.hangs = false;
    const again = await started(place, ["--resume", ...model.flags]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /1 runs of the earlier batch were still running/);
    assert.ok(!(await isThere(state.pid)), "the run of the killed batch is still there");
    const { rows, whole } = batchOf(again);
    assert.deepEqual(
      rows.map(({ dir }) => dir),
      [place.at("b")],
    );
    assert.deepEqual([whole.rows, whole.done, whole.not_started], [3, 3, 0]);
    const ids = await idsIn(place);
    assert.deepEqual([ids.slice(0, 2), new Set(ids).size], [before, 3]);
    for (const name of ["a", "c"]) {
      const asked = model.asked().filter((chat) => isAbout(chat, name));
      assert.equal(asked.length, 2, `${name} was asked ${asked.length} times`);
    }
    const boxes = await harness(place, ["sandbox", "ls", "--json"]);
    assert.ok(!boxes.stdout.includes(place.path), boxes.stdout);
    assert.deepEqual(await readdir(place.at("out/running")), []);
    const nothing = await started(place, ["--resume", ...model.flags]);
    assert.deepEqual([nothing.code, batchOf(nothing).rows, batchOf(nothing).whole.done], [0, [], 3]);
    const fresh = await started(place, model.flags);
    assert.equal(fresh.code, 2);
    assert.match(fresh.stdout + fresh.stderr, /contains the results of an earlier batch/);
  },
);

for (const [signal, code] of firstOf([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const))
  test(
    `${signal} ends running rows in order and the batch with ${code}, and a second batch on the folder is refused meanwhile`,
    { skip },
    async () => {
      await using place = await folders("a", "b", "c");
      const state: { hangs: boolean; second?: Ran } = { hangs: true };
      await using model = await startModel((chat) =>
        state.hangs && isAbout(chat, "b") ? "hang" : replies(chat),
      );
      await threeRows(place);
      const ended = await started(place, model.flags, async (child) => {
        await untilEnded(place, 2);
        state.second = await started(place, ["--resume", ...model.flags]);
        child.kill(signal);
      });
      assert.equal(state.second?.code, 2);
      assert.match(state.second.stdout + state.second.stderr, /another harness batch is using/);
      assert.equal(ended.code, code, ended.stderr);
      const { rows, whole } = batchOf(ended);
      assert.equal(rows.length, 2);
      assert.deepEqual([whole.done, whole.not_started, whole.exit_code], [2, 1, code]);
      const boxes = await harness(place, ["sandbox", "ls", "--json"]);
      assert.ok(!boxes.stdout.includes(place.path), boxes.stdout);
      state.hangs = false;
      const again = await started(place, ["--resume", ...model.flags]);
      assert.equal(again.code, 0, again.stderr);
      assert.equal(batchOf(again).whole.done, 3);
    },
  );

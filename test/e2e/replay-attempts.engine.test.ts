// slow: it replays runs with candidates, one after the other
import assert from "node:assert/strict";
import test from "node:test";
import { noOverlay } from "../docker/box/open-box.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { type AskedChat, finishedOf, harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

const PROJECT = {
  "package.json": '{"scripts": {"test": "sh test/a.test.sh"}}',
  "test/a.test.sh": "grep -q right a\n",
  a: "1\n",
};

/** What each candidate does, told apart by how freely they are asked; then they answer. The first bends the check. */
const DOES = [["echo true >test/a.test.sh; echo more >>a"], ["echo wrong >>a", "cat a"], ["echo right >>a"]];

interface Line {
  readonly outcome?: string;
  readonly tool?: string;
  readonly command?: string;
  readonly now?: { readonly status?: string } | null;
  readonly summary?: unknown;
}

/** The commands, how the request ended, and the sum. */
async function replayed(place: Scratch, ...words: readonly string[]) {
  const ran = await harness(place, ["replay", "--conversation", "--json", ...words]);
  const lines = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  const calls = lines.flatMap(({ tool, command }) => (tool === undefined ? [] : [command]));
  const ends = lines.flatMap(({ tool, now }) => (tool === undefined && now ? [now.status] : []));
  return [ran.code, calls, ends, lines.at(-1)?.summary];
}

test(
  "candidates are replayed by number, from sessions and from files, each with its own end",
  { skip: noOverlay },
  async () => {
    await using place = await household(PROJECT);
    await using other = await household(PROJECT);
    const begun: unknown[] = [];
    await using model = await startModel((chat: AskedChat) => {
      const { options } = chat as AskedChat & { readonly options?: { readonly temperature?: number } };
      const mark = options?.temperature;
      if (!begun.includes(mark)) begun.push(mark);
      const command = DOES[begun.indexOf(mark)]?.[resultsIn(chat).length];
      return command === undefined ? { text: "It is done." } : { calls: [["bash", { command }]] };
    });
    const flags = ["--json", "--attempts", "4", "--check", "npm test", ...model.flags];
    const ran = await harness(place, ["run", ...flags, "mend it"]);
    const { attempts = [], session } = finishedOf(ran);
    assert.deepEqual(
      attempts.map(({ status, applied }) => [status, applied]),
      [
        ["failed", false],
        ["failed", false],
        ["done", true],
      ],
      ran.stderr,
    );
    await place.write("work/a", "1\n");
    for (const [at, commands] of DOES.entries()) {
      const nth = String(at + 1);
      const file = other.at(`${nth}.tar`);
      const exported = await harness(place, [
        "sessions",
        "export",
        session,
        "--attempt",
        nth,
        "--bundle",
        file,
      ]);
      assert.equal(exported.code, 0, exported.stderr);
      const same = { same: commands.length, differs: 0, "not run": 0 };
      const wanted = [0, commands, [attempts[at]?.status], same];
      assert.deepEqual(await replayed(other, "--bundle", file), wanted, nth);
      assert.deepEqual(await replayed(place, "--attempt", nth), wanted, nth);
    }
    const none = await harness(place, ["replay", session, "--conversation", "--attempt", "4"]);
    assert.deepEqual([none.code, none.stdout], [2, ""]);
    assert.match(none.stderr, new RegExp(`the run of ${session} had candidates 1 to 3`));
  },
);

test(
  "another kind of session has no candidates, and a strict end is replayed strictly",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "one\n" });
    {
      await using model = await startModel([{ text: "The file a.txt says one." }]);
      const ran = await harness(place, ["run", "--strict", ...model.flags, "what does a.txt say?"]);
      assert.equal(ran.code, 1, ran.stderr);
    }
    assert.deepEqual(await replayed(place), [0, [], ["failed"], { same: 0, differs: 0, "not run": 0 }]);
    const none = await harness(place, ["replay", "--attempt", "1"]);
    assert.deepEqual([none.code, none.stdout], [2, ""]);
    assert.match(none.stderr, /is not a candidate of a finished run with --attempts/);
  },
);

test("checks of a small model's work are repeated in a replay", { skip }, async () => {
  await using place = await household({ "conf.json": '{ "debug": true }\n' });
  {
    const broken = { path: "conf.json", content: '{ "debug": false\n' };
    await using model = await startModel([{ calls: [["write_file", broken]] }, { text: "Debug is off." }]);
    const ran = await harness(place, ["run", ...model.smallFlags, "set debug to false in conf.json"]);
    assert.equal(ran.code, 1, ran.stderr);
  }
  await place.write("work/conf.json", '{ "debug": true }\n');
  const [code, calls, ends] = await replayed(place);
  assert.deepEqual([code, calls, ends], [0, ["write_file conf.json"], ["failed"]]);
});

import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import {
  type AskedChat,
  type Broken,
  eventsOf,
  harness,
  isAside,
  type Ran,
  type Replies,
  type Said,
  startModel,
} from "./run-command.ts";
import { assertValid, bytesOfChat } from "./run-requests.ts";

const WINDOW = 8192;
const TASK =
  "Count the lines of every file below src, never touch the folder legal, and answer with KUMQUAT.";
/** Of what a turn of this model reads. */
const PAGE = 4000;
const files = Object.fromEntries(
  Array.from({ length: 30 }, (_, at) => [
    `src/f${at}.txt`,
    `${`line of f${at} `.repeat(10)}\n`.repeat(PAGE / 110),
  ]),
);
const SUMMARY = {
  goal: "count the lines",
  constraints: ["never touch legal"],
  decisions: ["count with wc"],
  open: ["the files from f9 on"],
  files: ["src/f1.txt: 36 lines"],
  done: ["f0 to f8 are counted"],
};

/** The request for a summary. */
/** Reads a file a turn, so many; what it says to be asked for a summary is given. */
const reader =
  (turns: number, summary: () => Said | Broken): Replies =>
  (chat) => {
    if (isAside(chat)) return summary();
    const at = state.turn;
    state.turn += 1;
    if (at >= turns) return { text: "KUMQUAT" };
    return { text: `Reading f${at}.`, calls: [["read_file", { path: `src/f${at}.txt` }]] };
  };
const state = { turn: 0 };

interface Played {
  readonly ran: Ran;
  readonly asked: readonly AskedChat[];
}

async function played(turns: number, summary: () => Said | Broken): Promise<Played> {
  state.turn = 0;
  await using place = await household(files);
  await using model = await startModel(reader(turns, summary), WINDOW);
  const ran = await harness(place, ["run", "--json", ...model.flags, TASK]);
  return { ran, asked: model.asked() };
}

const compactions = (ran: Ran): readonly string[] =>
  eventsOf(ran).flatMap((event) => (event.type === "compaction" ? [event.status] : []));

test(
  "a run longer than its window keeps the task, matching pairs and one system prompt",
  { skip },
  async () => {
    const { ran, asked } = await played(24, () => ({ text: JSON.stringify(SUMMARY) }));
    assert.equal(ran.code, 0, ran.stderr);
    assertValid(asked);
    assert.ok(compactions(ran).some((status) => status === "pruned" || status === "succeeded"));
    for (const chat of asked.filter((each) => !isAside(each))) {
      assert.ok(chat.messages[1]?.content.includes(TASK));
      assert.ok(bytesOfChat(chat) / 4 < WINDOW, `${bytesOfChat(chat)}`);
    }
    const system = new Set(asked.map(({ messages }) => messages[0]?.content));
    assert.equal(system.size, 1);
  },
);

test("constraints, decisions and open points survive a summary", { skip }, async () => {
  const { ran, asked } = await played(28, () => ({ text: JSON.stringify(SUMMARY) }));
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(compactions(ran).includes("succeeded"), compactions(ran).join());
  const last = JSON.stringify(asked.at(-1)?.messages);
  for (const words of ["never touch legal", "count with wc", "the files from f9 on"])
    assert.ok(last.includes(words), words);
});

for (const [what, summary] of [
  ["says nothing", { text: "" }],
  ["the server refuses", { status: 400, lines: [{ error: "no" }] }],
  ["calls a tool", { calls: [["bash", { command: "touch summarised" }]] }],
] as const satisfies readonly (readonly [string, Said | Broken])[])
  test(`a summary that ${what} changes nothing, and the run continues`, { skip }, async () => {
    const { ran, asked } = await played(16, () => summary);
    assert.equal(ran.code, 0, ran.stderr);
    assertValid(asked);
    assert.ok(compactions(ran).includes("failed"), compactions(ran).join());
    assert.ok(!eventsOf(ran).some((event) => event.type === "call.proposed" && event.tool === "bash"));
    for (const chat of asked.filter((each) => !isAside(each)))
      assert.ok(chat.messages[1]?.content.includes(TASK));
  });

test("between two turns the request only grows at its end, except after a compaction", { skip }, async () => {
  const { ran, asked } = await played(24, () => ({ text: JSON.stringify(SUMMARY) }));
  const turns = asked.filter((chat) => !isAside(chat));
  const breaks = turns.slice(1).filter((chat, at) => !isPrefix(turns[at], chat)).length;
  const shortened = compactions(ran).filter((status) => status === "pruned" || status === "succeeded").length;
  assert.ok(breaks <= shortened, `${breaks} breaks, ${shortened} compactions`);
  assert.ok(breaks > 0);
  assert.equal(new Set(turns.map(({ tools }) => JSON.stringify(tools))).size, 1);
});

const isPrefix = (before: AskedChat | undefined, after: AskedChat): boolean =>
  JSON.stringify(after.messages).startsWith(JSON.stringify(before?.messages).slice(0, -1));

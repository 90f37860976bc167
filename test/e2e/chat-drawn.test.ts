import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { household } from "./box-command.ts";
import { noScreen as skip, onScreen, type Screen } from "./drawn-chat.ts";
import { startModel } from "./run-command.ts";

const READY = /^›(?: .*)?\n.*no box yet/m;

/** Steps of a model that answers from a file. */
async function scripted(
  steps: readonly (readonly unknown[])[],
  size: { readonly columns?: number; readonly rows?: number } = {},
  files: Readonly<Record<string, string>> = {},
) {
  const place = await household(files);
  await place.write("model.jsonl", steps.map((reply) => JSON.stringify({ reply })).join("\n"));
  const screen = await onScreen(place, ["--provider", "scripted", "--model", place.at("model.jsonl")], size);
  await screen.until(READY);
  return {
    place,
    screen,
    say: async (text: string): Promise<void> => {
      await screen.type(text);
      await screen.press("Enter");
    },
    [Symbol.asyncDispose]: async () => {
      await screen[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

/** The terminal is as it was before, with a visible cursor. */
async function assertClean(screen: Screen, at: (name: string) => string): Promise<void> {
  await screen.until(/left with/);
  const sent = await screen.bytes();
  for (const [mode, wanted] of [
    ["2004", "l"],
    ["25", "h"],
    ["2026", "l"],
  ] as const)
    assert.equal([...sent.matchAll(new RegExp(`\u001B\\[\\?${mode}([hl])`, "g"))].at(-1)?.[1], wanted, mode);
  assert.equal(await screen.state("#{cursor_flag} #{alternate_on}"), "1 0");
  assert.equal(await readFile(at("after"), "utf8"), await readFile(at("before"), "utf8"));
}

for (const [how, keys] of [
  ["Ctrl-D", ["C-d"]],
  ["Ctrl-C twice", ["C-c", "C-c"]],
] as const)
  test(`${how} leaves with 0, and the terminal is restored`, { skip }, async () => {
    await using chat = await scripted([]);
    await chat.screen.press(...keys);
    await chat.screen.until(/left with 0/);
    await assertClean(chat.screen, chat.place.at);
  });

test(
  "the answer is shown above, input and status below, and a message of several lines is one message",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel((chat) => ({
      text: `You said: ${JSON.stringify(chat.messages.at(-1)?.content)}`,
      tokens: [1000, 20],
    }));
    await using screen = await onScreen(place, model.flags);
    await screen.until(READY);
    await screen.type("one\\");
    await screen.press("Enter");
    await screen.paste("two\nthree\n");
    await screen.press("Enter");
    const shown = await screen.until(/You said: "one\\n[^"]*"/);
    assert.match(shown, /› one\n {2}two\n {2}three/);
    assert.match(
      await screen.until(/% of/),
      /› *\n {2}coder:7b · workspace-write · 3 % of 32\.8k · 1\.0k tokens/,
    );
    assert.match(model.asked().at(-1)?.messages.at(-1)?.content ?? "", /^one\ntwo\nthree\n?$/);
    await screen.type("exit");
    await screen.press("Enter");
    await screen.until(/left with 0/);
    await assertClean(screen, place.at);
  },
);

test("Esc ends the request, offers the prompt again, and the chat continues", { skip }, async () => {
  await using chat = await scripted([["I begin ", { delay: "60s" }, "late"], ["Now I answer."]]);
  await chat.say("take long");
  await chat.screen.until(/I begin/);
  await chat.screen.until(/Esc stops it/);
  await chat.screen.press("Escape");
  assert.match(await chat.screen.until(/^› take long\n {2}/m), /cancelled/);
  await chat.screen.type("something else");
  await chat.screen.until(/^› something else\n {2}/m);
  await chat.screen.press("Enter");
  assert.match(await chat.screen.until(/Now I answer/), /› something else/);
  assert.doesNotMatch(await chat.screen.all(), /late/);
});

test(
  "messages typed while it works are queued, can be taken back, and are sent in turn",
  { skip },
  async () => {
    await using chat = await scripted([["First.", { delay: "4s" }], ["Second."], ["Third."]]);
    await chat.say("one");
    await chat.screen.until(/First/);
    await chat.say("two");
    await chat.say("threee");
    await chat.screen.until(/queued: two\n {2}queued: threee/);
    await chat.screen.press("Up");
    await chat.screen.until(/^› threee/m);
    await chat.screen.press("BSpace");
    await chat.screen.press("Enter");
    await chat.screen.until(/Third\./);
    const all = await chat.screen.all();
    assert.match(all, /› one\n\nFirst\.\n\n› two\n\nSecond\.\n\n› three\n\nThird\./);
  },
);

test("messages that wait are kept, and sent later, if the model fails", { skip }, async () => {
  const failure = { fail: "unauthorised", reason: "the key is wrong" };
  await using chat = await scripted([[{ delay: "4s" }, failure], ["First."], ["Second."], ["Third."]]);
  await chat.say("one");
  await chat.screen.until(/Esc stops it/);
  await chat.say("two");
  await chat.say("three");
  await chat.screen.until(/queued: three/);
  const failed = await chat.screen.until(/the key is wrong[^]*not sent: [^\n]*\n› one/);
  assert.match(failed, /queued: two\n {2}queued: three/);
  await chat.screen.press("Enter");
  await chat.screen.until(/Third\./);
  assert.match(await chat.screen.all(), /› one\n\nFirst\.\n\n› two\n\nSecond\.\n\n› three\n\nThird\./);
});

test("Esc brings back what was not sent, behind the message that failed", { skip }, async () => {
  const failure = { fail: "unauthorised", reason: "the key is wrong" };
  await using chat = await scripted([[{ delay: "4s" }, failure], ["First."]]);
  await chat.say("one");
  await chat.screen.until(/Esc stops it/);
  await chat.say("two");
  await chat.screen.until(/not sent: [^\n]*\n› one/);
  await chat.screen.press("Escape");
  await chat.screen.until(/^› one\n {2}two\n/m);
  await chat.screen.press("Enter");
  await chat.screen.until(/First\./);
});

test(
  "a file after @ is completed, a long paste is one piece, and an earlier message can be found",
  { skip },
  async () => {
    const files = { "src/summary.ts": "export {};\n", "src/other.ts": "export {};\n" };
    await using chat = await scripted([["First."], ["Second."]], {}, files);
    const { screen, say } = chat;
    await screen.type("look at @summ");
    await screen.press("Tab");
    await screen.until(/^› look at @src\/summary\.ts/m);
    await screen.paste(Array.from({ length: 20 }, (_, at) => `row ${at}`).join("\n"));
    await screen.until(/^› look at @src\/summary\.ts \[pasted 20 lines/m);
    await screen.press("Enter");
    await screen.until(/First\./);
    assert.match(
      await screen.all(),
      /^› look at @src\/summary\.ts row 0\n {2}row 1\n[\s\S]*… 8 more lines$/m,
    );
    await say("and that");
    await screen.until(/Second\./);
    await screen.press("C-r");
    await screen.type("summary");
    // It has many lines, and stands there as one piece.
    await screen.until(/^› \[pasted 20 lines\]\n {2}earlier messages with: summary$/m);
  },
);

test("resizing the terminal during a reply leaves the screen intact", { skip }, async () => {
  await using chat = await scripted([
    [
      { text: "alpha beta gamma delta\n\n", times: 3 },
      { delay: "2s" },
      { text: "epsilon zeta eta theta\n\n", times: 3 },
      { delay: "2s" },
      "The end.",
    ],
    ["Still here."],
  ]);
  await chat.say("speak");
  await chat.screen.until(/alpha/);
  await chat.screen.resize(44, 16);
  await chat.screen.until(/epsilon/);
  await chat.screen.resize(100, 30);
  await chat.screen.until(/The end\./);
  await chat.say("and now?");
  const shown = await chat.screen.until(/Still here\.\n\n›/);
  assert.equal(shown.split("Esc stops it").length, 1, shown);
  const all = await chat.screen.all();
  for (const [word, times] of [
    ["alpha", 3],
    ["epsilon", 3],
    ["The end", 1],
  ] as const) {
    const count = all.split(word).length - 1;
    // The terminal reflows before the chat knows, so a row drawn at that moment may be left over.
    assert.ok(count === times || count === times + 1, `${word}, ${count} times:\n${all}`);
  }
});

test("a very long answer is shown completely above, each line once", { skip }, async () => {
  const rows = Array.from({ length: 400 }, (_, at) => `line ${at}.`);
  await using chat = await scripted([[`\`\`\`\n${rows.join("\n")}\n\`\`\``, " ", "\n\nAll of it."]]);
  await chat.say("write");
  await chat.screen.until(/All of it\./);
  const all = (await chat.screen.all()).split("\n").map((row) => row.trim());
  for (const row of rows) assert.equal(all.filter((each) => each === row).length, 1, row);
});

test(
  "ten thousand pieces of a reply cause a bounded number of frames without clearing the screen, and each is shown once",
  { skip },
  async () => {
    await using chat = await scripted([
      [{ text: "word ", times: 10_000 }, "\n\nThat was all."],
      ["Still here."],
    ]);
    await chat.say("write");
    await chat.screen.until(/That was all\./);
    const sent = await chat.screen.bytes();
    const count = (sequence: string): number => sent.split(sequence).length - 1;
    assert.ok(count("\u001B[?2026h") < 1000, `${count("\u001B[?2026h")} frames`);
    assert.deepEqual([count("\u001B[2J"), count("\u001B[3J")], [0, 0]);
    await chat.say("and?");
    await chat.screen.until(/Still here\./);
    const words = (await chat.screen.all()).split(/\s+/).filter((word) => word === "word");
    assert.equal(words.length, 10_000);
  },
);

test("a slash command is completed, answered and distinguished from a message", { skip }, async () => {
  await using chat = await scripted([]);
  await chat.screen.type("/");
  // None is cut, however narrow it is.
  await chat.screen.until(/\n {2}\/help {2}\/new[^…]*\/exit\n/);
  await chat.screen.type("sess");
  await chat.screen.until(/\/sessions/);
  await chat.screen.press("Tab");
  await chat.screen.press("Enter");
  await chat.screen.until(/There are no sessions of this folder/);
  await chat.say("/sesions");
  await chat.screen.until(/did you mean \/sessions\?/);
});

test(
  "without colours nothing is coloured, and without drawing the chat is line-based",
  { skip },
  async () => {
    await using place = await household();
    await using screen = await onScreen(place, [], { env: { NO_COLOR: "1" } });
    await screen.until(READY);
    assert.doesNotMatch(await screen.bytes(), /\u001B\[[\d;]*m/);
    await screen.press("C-d");
    await screen.until(/left with 0/);
    for (const [words, env] of [
      [["--plain"], {}],
      [[], { TERM: "dumb" }],
      [[], { HARNESS_PLAIN: "true" }],
      [[], { HARNESS_CHAT: "lines" }],
    ] as const) {
      await using other = await household();
      await using lines = await onScreen(other, words, { env });
      await lines.until(/^harness>/m);
      assert.doesNotMatch(await lines.bytes(), /\u001B\[\?2026h/);
    }
  },
);

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip as noEngine } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { noScreen, onScreen } from "./drawn-chat.ts";
import { calling, lastOf, startModel } from "./run-command.ts";

const skip = noScreen || noEngine;
/** The mark stands there once keys answer. */
const ASKED = /^run it\?\n[\s\S]*^❯ n {2}no$/m;
/** The line to type in, with nothing going on. */
const READY = /\n\n›(?: .*)?\n {2}\S+ · workspace-write/;

type Call = readonly [tool: string, args: Readonly<Record<string, unknown>>];

async function chatting(calls: readonly Call[], files: Readonly<Record<string, string>> = {}) {
  const place = await household(files);
  const model = await startModel(calling(calls));
  const screen = await onScreen(place, model.flags, { rows: 40 });
  await screen.until(READY);
  await screen.type("change what is there, please");
  await screen.press("Enter");
  return {
    place,
    model,
    screen,
    [Symbol.asyncDispose]: async () => {
      await screen[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

const command = (text: string): Call => ["bash", { command: text }];

test(
  "a command is shown completely before confirmation: yes runs it, Enter alone refuses it",
  { skip },
  async () => {
    await using chat = await chatting([command("node a.js > yes.txt"), command("node a.js > no.txt")], {
      "a.js": "console.log(1);\n",
    });
    const { screen, place } = chat;
    const shown = await screen.until(ASKED);
    assert.match(shown, /│ node a\.js > yes\.txt\n {2}│ {6}\^\^\^\^/);
    assert.match(shown, /It is contained/);
    await screen.type("y");
    await screen.until(/❯ y {2}once/);
    await screen.press("Enter");
    await screen.until(/│ node a\.js > no\.txt[\s\S]*^❯ n {2}no$/m);
    await screen.press("Enter");
    const end = await screen.until(/All of it is done\./);
    assert.match(end, /✓ bash node a\.js > yes\.txt {2}approved/);
    assert.match(end, /⊘ bash node a\.js > no\.txt/);
    assert.equal(await place.read("work/yes.txt"), "1\n");
    assert.equal(existsSync(place.at("work/no.txt")), false);
  },
);

test("a no passes on a reason to the model, and an edited command runs instead", { skip }, async () => {
  const files = { "a.js": "console.log(1);\n", "b.js": "console.log(2);\n" };
  await using chat = await chatting([command("node a.js > a.txt"), command("node a.js > b.txt")], files);
  const { screen, model, place } = chat;
  await screen.until(ASKED);
  await screen.type("t");
  await screen.press("Enter");
  // What is typed at once is meant for the line that was asked for.
  await screen.type("not with node");
  await screen.until(/^tell the model> not with node$/m);
  await screen.press("Enter");
  const told = await screen.until(/│ node a\.js > b\.txt[\s\S]*^❯ n {2}no$/m);
  assert.match(told, /^ {2}› not with node$/m);
  assert.match(lastOf(model.asked().at(-1)), /not with node/);
  await screen.type("e");
  await screen.press("Enter");
  await screen.until(/^edit> node a\.js > b\.txt/m);
  await screen.press("C-u");
  await screen.type("node b.js > b.txt");
  await screen.press("Enter");
  await screen.until(/│ node b\.js > b\.txt[\s\S]*^❯ n {2}no$/m);
  await screen.type("y");
  await screen.press("Enter");
  await screen.until(/All of it is done\./);
  assert.equal(await place.read("work/b.txt"), "2\n");
  assert.equal(existsSync(place.at("work/a.txt")), false);
});

test(
  "keys sent together with an answer go to what was asked, and not to a question that was not drawn yet",
  { skip },
  async () => {
    const calls = ["a", "b", "c"].map((name) => command(`node a.js > ${name}.txt`));
    await using chat = await chatting(calls, { "a.js": "console.log(1);\n" });
    const { screen, model, place } = chat;
    await screen.until(ASKED);
    // An answer to this question, and what would be one to the next.
    await screen.burst("y\ny\nand then");
    const next = await screen.until(/│ node a\.js > b\.txt[\s\S]*^❯ n {2}no$/m);
    assert.match(next, /queued: y\n/);
    assert.equal(await place.read("work/a.txt"), "1\n");
    await screen.burst("t\nnot with node\n, please");
    await screen.until(/│ node a\.js > c\.txt[\s\S]*^❯ n {2}no$/m);
    assert.match(lastOf(model.asked().at(-1)), /not with node/);
    await screen.press("Enter");
    await screen.until(/^› and then, please/m);
    for (const name of ["b", "c"]) assert.equal(existsSync(place.at(`work/${name}.txt`)), false);
  },
);

test("text typed before a question becomes the next message and not an answer", { skip }, async () => {
  await using chat = await chatting([command("sleep 2"), command("node a.js > a.txt")], { "a.js": "" });
  const { screen, place } = chat;
  await screen.type("y");
  await screen.press("Enter");
  await screen.until(ASKED);
  await screen.press("Escape");
  await screen.until(/cancelled/);
  assert.equal(existsSync(place.at("work/a.txt")), false);
});

test("a task of reading, editing and testing asks at most twice", { skip }, async () => {
  const files = {
    "sum.js": "exports.sum = (a, b) => a - b;\n",
    "sum.test.js":
      "require('node:test')('sum', () => require('node:assert').equal(require('./sum').sum(1, 2), 3));\n",
    "package.json": '{"scripts":{"test":"node --test","build":"node sum.js"}}',
  };
  await using chat = await chatting(
    [
      ["list_dir", { path: "." }],
      ["read_file", { path: "sum.js" }],
      ["edit_file", { path: "sum.js", old: "a - b", new: "a + b" }],
      command("npm test"),
      command("npm run build"),
      command("npm run build"),
      command("git diff | head -20"),
    ],
    files,
  );
  const { screen, place } = chat;
  let asked = 0;
  for (;;) {
    const shown = await screen.until(/^❯ n {2}no$|All of it is done\./m);
    if (!ASKED.test(shown)) break;
    asked += 1;
    await screen.type("s");
    await screen.press("Enter");
    await screen.until(/^(?![\s\S]*\nrun it\?\n)/);
  }
  assert.ok(asked <= 2, `asked ${asked} times`);
  assert.match(await place.read("work/sum.js"), /a \+ b/);
  assert.match(await screen.all(), /│ -exports\.sum = \(a, b\) => a - b;|│ -a - b/);
});

test("questions of the chat itself are shown next to their answer", { skip }, async () => {
  await using chat = await chatting([["write_file", { path: "new.txt", content: "1\n" }]]);
  const { screen, place } = chat;
  await screen.until(/All of it is done\./);
  await screen.type("/undo files");
  await screen.press("Enter");
  await screen.until(/^Take this back\?\n {2}y {2}yes\n❯ n {2}no$/m);
  await screen.type("y");
  await screen.press("Enter");
  await screen.until(/^Take this back\? {2}❯ yes\n[\s\S]*1 path brought back$/m);
  assert.equal(existsSync(place.at("work/new.txt")), false);
});

test("the end of a command's output is shown, and all of it on request", { skip }, async () => {
  await using chat = await chatting([command("seq 1 60")]);
  const { screen } = chat;
  const folded = await screen.until(/All of it is done\./);
  assert.match(folded, /… \d+ more lines \(Ctrl-O shows all\)\n {2}│ 5\d\n/);
  assert.doesNotMatch(await screen.all(), /^ {2}│ 7$/m);
  await screen.press("C-o");
  await screen.until(/^ {2}│ 40$[\s\S]*^ {2}│ 60$[\s\S]*^›/m);
  const rows = (await screen.all()).split("\n").flatMap((row) => /^ {2}│ (\d+)$/.exec(row)?.[1] ?? []);
  assert.deepEqual(
    rows.slice(-60),
    Array.from({ length: 60 }, (_, at) => `${at + 1}`),
  );
});

test("output of a command has no effect on the terminal", { skip }, async () => {
  const hostile = String.raw`printf '\033]52;c;ZXZpbA==\007\033[2J\033]0;title\007\033[?1049h\342\200\256done\n'`;
  await using chat = await chatting([command(hostile)]);
  const { screen } = chat;
  await screen.until(/All of it is done\./);
  const sent = await screen.bytes();
  for (const sequence of ["\u001B]", "\u001B[?1049h", "\u202E", "\u0007"])
    assert.equal(sent.includes(sequence), false, JSON.stringify(sequence));
  assert.match(await screen.all(), /\]52;c;ZXZpbA==/);
});

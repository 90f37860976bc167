import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { startModel } from "./run-command.ts";
import { noTerminal as skip, onTerminal } from "./terminal.ts";

const PROMPT = /harness> $/;

test("without a terminal there is no chat, and the alternative is named", async () => {
  await using place = await scratch();
  const table = [
    [[], 'harness run "'],
    [["--mode", "read-only"], 'harness run "'],
    [["resume"], "harness run --continue"],
    [["resume", "abc"], "harness run --resume abc"],
  ] as const;
  for (const [words, hint] of table) {
    const { code, stdout, stderr } = await runProgram("bin/harness", words, { home: place.path });
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.ok(stderr.includes(`next: ${hint}`), stderr);
  }
});

test("an unknown session is reported before anything starts", { skip }, async () => {
  await using place = await household();
  for (const words of [["resume"], ["resume", "zzz"]]) {
    await using terminal = onTerminal(place, words);
    assert.equal(await terminal.ended, 2);
    assert.doesNotMatch(terminal.screen(), /harness> /);
  }
});

for (const [how, keys] of [
  ["exit", "exit\r"],
  ["QUIT", "QUIT\r"],
  ["Ctrl-D", "\u0004"],
  ["Ctrl-C twice", "\u0003\u0003"],
] as const)
  test(`${how} leaves with 0, and an empty chat leaves no session`, { skip }, async () => {
    await using place = await household();
    await using terminal = onTerminal(place, ["--mode", "read-only"]);
    assert.match(await terminal.until(PROMPT), /read-only/);
    terminal.type(keys);
    assert.equal(await terminal.ended, 0);
    assert.deepEqual(await readdir(place.at("work")), []);
    assert.equal(existsSync(place.at(".local/state/harness/sessions.db")), false);
  });

test("an unreachable model is reported with a remedy, and the chat continues", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([{ text: "never" }]);
  await model[Symbol.asyncDispose]();
  await using terminal = onTerminal(place, model.flags);
  await terminal.until(PROMPT);
  terminal.type("hello\r");
  const failed = await terminal.until(/harness> hello$/);
  assert.match(failed, /✗ model: [\s\S]*next: /);
  assert.equal(failed.match(/✗/g)?.length, 1, failed);
  terminal.type("\u0015/model other:1b\r");
  assert.match(
    await terminal.until(/gave no list of models[\s\S]*harness> $/),
    /The model is now other:1b, but nothing is known about it/,
  );
  terminal.type("/cost\r");
  await terminal.until(/requests[\s\S]*harness> $/);
});

test("a pasted block is one message with all its lines", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([{ text: "Hm." }]);
  await using terminal = onTerminal(place, model.flags);
  await terminal.until(PROMPT);
  terminal.type("\u001B[200~hello\rworld\r\u001B[201~");
  await terminal.until(/\[pasted 3 lines #1\]/);
  terminal.type("\r");
  await terminal.until(/Hm\.\n[\s\S]*harness> $/);
  const users = model.asked().flatMap(({ messages }) => messages.filter(({ role }) => role === "user"));
  assert.ok(
    users.every(({ content }) => content === "hello\nworld\n"),
    JSON.stringify(users),
  );
});

test("a box that cannot start is reported with a remedy, and retried", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([{ text: "I look.", calls: [["bash", { command: "ls" }]] }]);
  await using terminal = onTerminal(place, model.flags, { DOCKER_HOST: `unix://${place.at("none.sock")}` });
  await terminal.until(PROMPT);
  for (const text of ["run the tests", "run them again"]) {
    terminal.type(`${text}\r`);
    assert.match(await terminal.until(/next: [\s\S]*harness> .*$/), /✗ no container engine answers/);
  }
  terminal.type("exit\r");
  assert.equal(await terminal.ended, 0);
});

test("typed messages are available in the next chat of the same folder only", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([{ text: "Hm." }]);
  await using first = onTerminal(place, model.flags);
  await first.until(PROMPT);
  first.type("remember the milk\r");
  await first.until(/Hm\.\n[\s\S]*harness> $/);
  first.type("exit\r");
  assert.equal(await first.ended, 0);
  await using second = onTerminal(place, model.flags);
  await second.until(PROMPT);
  second.type("\u001B[A\u001B[A");
  await second.until(/harness> remember the milk$/);
  second.type("\u0003\u0004");
  assert.equal(await second.ended, 0);
  await place.write("other/x", "");
  await using other = onTerminal(place, [...model.flags, "--cwd", place.at("other")]);
  await other.until(PROMPT);
  other.type("\u001B[A");
  other.type("new\r");
  assert.doesNotMatch(await other.until(/Hm\.|✗/), /remember/);
});

test("an unusable argument of a chat command is reported with what to type", { skip }, async () => {
  await using place = await household();
  await using terminal = onTerminal(place, []);
  await terminal.until(PROMPT);
  for (const [line, said] of [
    ["/grant foo/bar", /"\/" is not allowed in a grant[^]*\n {2}next: \/grant \?\n/],
    ["/resume nosuch", /no session has this id\n {2}next: \/sessions\n/],
    ["/undo file", /\/undo takes no argument, or files; it cannot undo file\.\n/],
    ["/help foo", /There is no \/foo; \/help lists all commands\n/],
  ] as const) {
    terminal.type(`${line}\r`);
    await terminal.until(said);
    await terminal.until(PROMPT);
  }
});

test("an unknown command suggests the nearest, and a blank line does nothing", { skip }, async () => {
  await using place = await household();
  await using terminal = onTerminal(place, []);
  await terminal.until(PROMPT);
  terminal.type("\r");
  assert.equal(await terminal.until(PROMPT), "\nharness> ");
  terminal.type("/sesions\r");
  assert.match(await terminal.until(PROMPT), /did you mean \/sessions\?/);
});

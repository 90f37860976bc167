import assert from "node:assert/strict";
import test from "node:test";
import { fakeTerminal } from "../../fakes/terminal.ts";
import {
  answerTo,
  COMMANDS,
  completed,
  type SlashCall,
  slashOf,
} from "../../../src/cli/chat/chat-commands.ts";

const of = (line: string) => slashOf(line, COMMANDS);

test("quit and exit leave, in any case and with a slash", () => {
  for (const line of ["quit", "EXIT", " Exit ", "/quit", "/exit"])
    assert.deepEqual(of(line), { kind: "leave" }, line);
});

test("a command gets its argument without surrounding blanks", () => {
  assert.deepEqual(of("/model   qwen3:8b "), { kind: "command", name: "model", argument: "qwen3:8b" });
  assert.deepEqual(of("/HELP"), { kind: "command", name: "help", argument: "" });
});

test("a question mark right after a command's name describes it, and no mistyped command is sent", () => {
  assert.deepEqual(of("/undo?"), { kind: "command", name: "undo", argument: "?" });
  assert.deepEqual(of("/undo ?"), { kind: "command", name: "undo", argument: "?" });
  assert.deepEqual(of("/undo_files"), { kind: "unknown", name: "undo_files", near: undefined });
  assert.deepEqual(of("/model2"), { kind: "unknown", name: "model2", near: "model" });
});

test("text that only contains a command's word is sent to the model", () => {
  for (const line of ["exit the loop early", "quit smoking", "/usr/bin/env is where?", "a /help b"])
    assert.deepEqual(of(line), { kind: "text" }, line);
});

test("an unknown command suggests the nearest", () => {
  assert.deepEqual(of("/compakt now"), { kind: "unknown", name: "compakt", near: "compact" });
  assert.deepEqual(of("/frobnicate"), { kind: "unknown", name: "frobnicate", near: undefined });
});

test("the tab key completes commands and modes", () => {
  assert.deepEqual(completed("/mod", COMMANDS, {}), [["/model", "/mode"], "/mod"]);
  assert.deepEqual(completed("/mode re", COMMANDS, { mode: ["read-only", "workspace-write"] }), [
    ["read-only"],
    "re",
  ]);
  assert.deepEqual(completed("hello", COMMANDS, {}), [[], "hello"]);
});

test("every command has a line of help", () => {
  assert.deepEqual(COMMANDS.map(({ name }) => name).toSorted(), [
    "apply",
    "clear",
    "commit",
    "compact",
    "cost",
    "diff",
    "doctor",
    "grant",
    "help",
    "init",
    "memory",
    "mode",
    "model",
    "new",
    "policy",
    "provider",
    "resume",
    "sessions",
    "system",
    "tools",
    "undo",
    "web",
  ]);
  for (const { says } of COMMANDS) assert.notEqual(says, "");
});

const never = (): never => assert.fail("it is only described");
const called = (name: string, argument: string, columns = 80): Promise<string> => {
  const chat = { commands: () => Promise.resolve({ all: [], untrusted: [], note: "" }) };
  const { stream: output } = fakeTerminal(columns);
  return answerTo(name, { chat, argument, output, show: never, confirm: never } as unknown as SlashCall);
};

test("a question mark after a command, or its name after /help, describes it without running it", async () => {
  for (const { name, says } of COMMANDS) {
    const text = await called(name, "?");
    assert.ok(text.startsWith(`/${name}`) && text.includes(says), text);
    assert.equal(await called("help", name), text);
    assert.equal(await called("help", `/${name}`), text);
  }
  assert.match(await called("help", "exit"), /^\/exit {3}leave/);
  assert.match(await called("help", "compakt"), /did you mean \/compact\?/);
  assert.match(await called("help", ""), /\n\/exit +leave/);
});

const granted = (mode: string, allow_domains: readonly string[]): Promise<string> =>
  answerTo("grant", {
    chat: { settings: { mode, allow_domains } },
    argument: "",
    show: never,
    confirm: never,
  } as unknown as SlashCall);

test("/grant lists the grants, and reports no network only when there is none", async () => {
  assert.equal(await granted("workspace-write", []), "Nothing is granted: the box has no network.");
  assert.equal(await granted("workspace-write", ["npm", "example.org"]), "npm, example.org");
  assert.match(await granted("danger-full-access", []), /an unfiltered network/);
});

for (const columns of [40, 80, 120])
  test(`the list of commands fits ${columns} columns, and no name touches its description`, async () => {
    const rows = (await called("help", "", columns)).split("\n\n")[0]?.split("\n") ?? [];
    assert.deepEqual(
      rows.filter((row) => row.length > columns),
      [],
    );
    for (const { name, takes = "" } of COMMANDS) {
      const typed = `/${name} ${takes}`.trim();
      assert.ok(
        rows.some((row) => row === typed || row.startsWith(`${typed}  `)),
        typed,
      );
    }
  });

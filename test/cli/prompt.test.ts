import assert from "node:assert/strict";
import test from "node:test";
import { Prompt } from "../../src/cli/terminal-input.ts";
import { fakeKeyboard } from "../fakes/keyboard.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

function prompting() {
  const keys = fakeKeyboard();
  const terminal = fakeTerminal(80);
  const prompt = new Prompt(keys.keyboard, terminal.stream, () => [[], ""]);
  return { ...keys, terminal, prompt };
}

const line = (text: string) => ({ kind: "line", text }) as const;

test("a line is what is typed until Enter, with editing keys", async () => {
  const { prompt, type } = prompting();
  const asked = prompt.ask();
  type("fix thx\u007Fe test\r");
  assert.deepEqual(await asked, line("fix the test"));
});

test("a backslash at the end continues on the next line, two of them do not", async () => {
  const { prompt, type } = prompting();
  const asked = prompt.ask();
  type("one\\\r");
  await new Promise((resolve) => setImmediate(resolve));
  type("two\r");
  assert.deepEqual(await asked, line("one\ntwo"));
  const other = prompt.ask();
  type(String.raw`C:\\` + "\r");
  assert.deepEqual(await other, line(String.raw`C:\\`));
});

test("a pasted block is sent only by Enter, as one text", async () => {
  const { prompt, type } = prompting();
  const asked = prompt.ask();
  type("see \u001B[200~one\rtwo\r\u001B[201~");
  type("!\r");
  assert.deepEqual(await asked, line("see one\ntwo\n!"));
});

test("what is written while a line is edited stands above it, and the line goes on", async () => {
  const { prompt, type, terminal } = prompting();
  const long = "x".repeat(100);
  const note = (text: string): void => prompt.besides(() => void terminal.stream.write(`${text}\n`));
  note("at first");
  const asked = prompt.ask();
  type(long);
  note("note: one");
  type(" end\r");
  assert.deepEqual(await asked, line(`${long} end`));
  note("at last");
  const written = terminal.written().replaceAll(/\u001B\[\d*[GJ]|\r/g, "");
  assert.equal(written, `at first\nharness> ${long}\nnote: one\nharness> ${long} end\nat last\n`);
});

test("lines typed ahead are returned one after the other", async () => {
  const { prompt, type } = prompting();
  type("first\rsecond\r");
  assert.deepEqual([await prompt.ask(), await prompt.ask()], [line("first"), line("second")]);
});

test("a suggestion is sent by Enter, and edited by any other key", async () => {
  const { prompt, type } = prompting();
  const same = prompt.ask("try it");
  type("\r");
  assert.deepEqual(await same, line("try it"));
  const edited = prompt.ask("try it");
  type("\u007F\u007Fthat\r");
  assert.deepEqual(await edited, line("try that"));
  const other = prompt.ask("try it");
  type("exit\r");
  assert.deepEqual(await other, line("exit"));
});

test("a suggestion of several lines is sent unchanged", async () => {
  const { prompt, type } = prompting();
  const asked = prompt.ask("one\ntwo");
  type("\r");
  assert.deepEqual(await asked, line("one\ntwo"));
});

test("Ctrl-C discards the line, and reports whether it was empty", async () => {
  const { prompt, type } = prompting();
  const asked = prompt.ask();
  type("abc");
  type("\u0003");
  assert.deepEqual(await asked, { kind: "interrupt", empty: false });
  const empty = prompt.ask();
  type("\u0003");
  assert.deepEqual(await empty, { kind: "interrupt", empty: true });
});

test("Ctrl-D and a closed terminal are the end", async () => {
  const { prompt, type, hangUp } = prompting();
  const asked = prompt.ask();
  type("\u0004");
  assert.deepEqual(await asked, { kind: "end" });
  const gone = prompt.ask();
  hangUp();
  assert.deepEqual(await gone, { kind: "end" });
});

test("the up arrow brings back sent lines, newest first, including those of an earlier session", async () => {
  const { prompt, type } = prompting();
  prompt.remember(["oldest", "older"]);
  const first = prompt.ask();
  type("new\r");
  await first;
  const again = prompt.ask();
  type("\u001B[A\u001B[A\r");
  assert.deepEqual(await again, line("older"));
});

test("a tab completes once the files are found, unless the line has changed", async () => {
  const keys = fakeKeyboard();
  const waiting: ((hits: readonly string[]) => void)[] = [];
  const complete = (text: string) =>
    new Promise<readonly [readonly string[], string]>((resolve) =>
      waiting.push((hits) => resolve([hits, text.slice(text.indexOf("@"))])),
    );
  const prompt = new Prompt(keys.keyboard, fakeTerminal(80).stream, complete);
  const found = async (hits: readonly string[]): Promise<void> => {
    waiting.shift()?.(hits);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const asked = prompt.ask();
  keys.type("see @pars\t");
  await found(["@src/parser.ts"]);
  keys.type(" @doc\t");
  keys.type("s");
  await found(["@docs/plan.md"]);
  keys.type(" now\r");
  assert.deepEqual(await asked, line("see @src/parser.ts @docs now"));
  const gone = prompt.ask();
  keys.type("@x\t");
  keys.type("\r");
  assert.deepEqual(await gone, line("@x"));
  await found(["@xyz"]);
});

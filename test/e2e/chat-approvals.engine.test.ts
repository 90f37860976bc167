import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip as noEngine } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { AGAIN, chatting } from "./chatting.ts";
import { calling, lastOf } from "./run-command.ts";
import { noTerminal } from "./terminal.ts";

const skip = noTerminal || noEngine;
const ASKED = /run it\? \[y\/N\] $/;
const POLICY = ".config/harness/policy.toml";
const GOLDEN = `[[rule]]
effect = "write"
path = "golden/**"
decision = "ask"
reason = "only on purpose"
`;

type Call = readonly [tool: string, args: Readonly<Record<string, unknown>>];

/** A chat whose model was told to make these calls. */
async function calls(made: readonly Call[], rules?: string) {
  const prepare = async (place: Scratch): Promise<void> => {
    if (rules !== undefined) await place.write(POLICY, rules);
  };
  const chat = await chatting(calling(made), { prepare });
  chat.terminal.type("change what is there, please\r");
  return chat;
}

const command = (text: string): Call => ["bash", { command: text }];

test("a no passes on a reason, and an edited command is what runs and is reported", { skip }, async () => {
  await using chat = await calls([command("echo one > one.txt"), command("echo two > two.txt")]);
  const { terminal, model, place } = chat;
  assert.match(await terminal.until(ASKED), /It would:\n[^]*writes [^\n]*one\.txt\n/);
  terminal.type("t\r");
  await terminal.until(/tell the model> $/);
  terminal.type("write it into two.txt, ünd gut\r");
  await terminal.until(ASKED);
  assert.match(lastOf(model.asked().at(-1)), /The user's reason: write it into two\.txt, ünd gut/);
  terminal.type("e\r");
  await terminal.until(/edit> echo two > two\.txt/);
  terminal.type("\u007F\u007F\u007Fmd\r");
  assert.match(await terminal.until(ASKED), /│ echo two > two\.md\n/);
  terminal.type("y\r");
  assert.match(await terminal.until(AGAIN), /✓ bash echo two > two\.md/);
  assert.match(
    lastOf(model.asked().at(-1)),
    /\[the user replaced the arguments: \{"command":"echo two > two\.md"\}\]/,
  );
  assert.equal(await place.read("work/two.md"), "two\n");
  assert.deepEqual(
    [existsSync(place.at("work/one.txt")), existsSync(place.at("work/two.txt"))],
    [false, false],
  );
});

test(
  "a write is shown with all its lines before confirmation, without control characters",
  { skip },
  async () => {
    const content = `[core]\n\u001B]52;c;aGk=\u0007\u001B[2J\u202Ehidden\n${"x".repeat(300)}\n`;
    await using chat = await calls([["write_file", { path: "golden/a.txt", content }]], GOLDEN);
    const shown = await chat.terminal.until(ASKED);
    assert.match(shown, /write_file wants to write/);
    assert.match(shown, /│ \+\[core\]\n {2}│ \+␛\]52;c;aGk=␇␛\[2J<U\+202E>hidden\n/);
    chat.terminal.type("\r");
    await chat.terminal.until(AGAIN);
    assert.equal(existsSync(chat.place.at("work/golden/a.txt")), false);
    assert.doesNotMatch(Buffer.from(chat.terminal.bytes()).toString(), /\u001B\]52|\u001B\[2J|\u202E/);
  },
);

test(
  "always shows its rule before writing it, and the same command is not asked about again",
  { skip },
  async () => {
    await using chat = await calls([command("echo hi > hi.txt"), command("echo hi > hi.txt")]);
    const { terminal, place } = chat;
    await terminal.until(ASKED);
    terminal.type("a\r");
    const shown = await terminal.until(/write it, and run the command\? \[y\/N\] $/);
    assert.match(
      shown,
      /This would be written to [^]*policy\.toml:\n {2}│ \[\[rule\]\]\n {2}│ effect = "write"\n/,
    );
    assert.equal(existsSync(place.at(POLICY)), false, "nothing is written yet");
    terminal.type("y\r");
    assert.doesNotMatch(await terminal.until(AGAIN), /run it\?/);
    assert.match(await place.read(POLICY), /approved as it stands/);
    assert.equal(await place.read("work/hi.txt"), "hi\n");
  },
);

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { noScreen as skip, onScreen } from "./drawn-chat.ts";
import { type AskedChat, type Said, startModel } from "./run-command.ts";

/** A drawn chat whose terminal stops, comes back, or is closed. */

const READY = /^›(?: .*)?\n.*no box yet/m;
const PATIENCE_MS = 60_000;

/** Answers with what was said, at length. */
const long = (chat: AskedChat): Said => {
  const said = chat.messages.at(-1)?.content ?? "";
  const rows = Array.from({ length: 400 }, (_, at) => `${said.trim()} ${at}.`);
  return { text: `\`\`\`\n${rows.join("\n")}\n\`\`\`\n\nThat was ${said.trim()}.` };
};

async function until(holds: () => boolean, what: string): Promise<void> {
  const over = AbortSignal.timeout(PATIENCE_MS);
  while (!holds()) {
    if (over.aborted) throw new Error(`never came: ${what}`);
    await sleep(50);
  }
}

const pidOf = async (place: Scratch): Promise<number> => Number(await place.read("pid"));

test("Ctrl-Z restores the shell's terminal, and fg resumes the chat where it was", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(long);
  await using screen = await onScreen(place, model.flags, { asJob: ":" });
  await screen.until(READY);
  await screen.type("half a sent");
  await screen.until(/^› half a sent/m);
  for (const times of [1, 2]) {
    await screen.press("C-z");
    await screen.until(new RegExp(`^stopped ${times}$`, "m"));
    assert.equal(await place.read("between"), await place.read("before"));
    assert.equal(await screen.state("#{cursor_flag}"), "1");
    await screen.press("Enter");
    await screen.until(/^› half a sent\n {2}\S+ · .*no box yet\s*$/m);
  }
  await screen.type("ence");
  await screen.press("Enter");
  await screen.until(/That was half a sentence\./);
  await screen.press("C-d");
  await screen.until(/left with 0/);
  assert.equal(await place.read("after"), await place.read("before"));
});

test("fg during a request draws the current work once, below what the shell printed", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(["hang"]);
  await using screen = await onScreen(place, model.flags, { asJob: ":" });
  await screen.until(READY);
  await screen.type("take long");
  await screen.press("Enter");
  await screen.until(/Esc stops it/);
  for (const times of [1, 2]) {
    await screen.press("C-z");
    await screen.until(new RegExp(`^stopped ${times}$`, "m"));
    await screen.press("Enter");
    const shown = await screen.until(new RegExp(`stopped ${times}[^]*Esc stops it`));
    assert.equal(shown.match(/Esc stops it/g)?.length, 1, shown);
  }
  await screen.press("Escape");
  await screen.until(/cancelled/);
  await screen.press("C-u");
  await screen.press("C-d");
  await screen.until(/left with 0/);
  assert.equal(await place.read("after"), await place.read("before"));
});

for (const [how, env] of [
  ["drawn", {}],
  ["line-based", { HARNESS_CHAT: "lines" }],
] as const)
  test(`where no shell could continue it, a ${how} chat goes on after Ctrl-Z`, { skip }, async () => {
    await using place = await household();
    await using model = await startModel(long);
    await using screen = await onScreen(place, model.flags, { env });
    await screen.until(/^(?:›|harness>)/m);
    await screen.type("half a sent");
    await screen.until(/half a sent/);
    await screen.press("C-z");
    await screen.until(/Ctrl-Z does nothing/);
    await screen.until(/Ctrl-Z does nothing[^]*half a sent/);
    await screen.type("ence");
    await screen.press("C-a");
    await screen.type("not ");
    await screen.press("Enter");
    await screen.until(/That was not half a sentence\./);
    await screen.press("C-d");
    await screen.until(/left with 0/);
  });

test(
  "a chat stopped from outside gets its keys back, whatever terminal modes the shell set",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel(long);
    await using screen = await onScreen(place, model.flags, { asJob: "stty sane" });
    await screen.until(READY);
    process.kill(await pidOf(place), "SIGSTOP");
    await screen.until(/stopped/);
    await screen.press("Enter");
    await screen.until(/no box yet\s*$/);
    // A line that the terminal edits itself would send nothing without Enter, and nothing would be completed.
    await screen.type("/sess");
    await screen.until(/^› \/sess\n {2}\/sessions/m);
    await screen.press("C-u");
    await screen.type("go on");
    await screen.press("Enter");
    await screen.until(/That was go on\./);
    await screen.press("C-d");
    await screen.until(/left with 0/);
  },
);

test("a stopped terminal delays no request, and shows everything in the end", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(async (chat) => {
    await until(() => existsSync(place.at("go")), "go");
    return long(chat);
  });
  await using screen = await onScreen(place, model.flags);
  await screen.until(READY);
  await screen.type("one");
  await screen.press("Enter");
  await screen.until(/Esc stops it/);
  for (const said of ["two", "three"]) {
    await screen.type(said);
    await screen.press("Enter");
    await screen.until(new RegExp(`queued: ${said}`));
  }
  const terminal = Number(await screen.state("#{pid}"));
  process.kill(terminal, "SIGSTOP");
  try {
    await place.write("go", "");
    await until(() => model.asked().length >= 3, "the third request");
  } finally {
    process.kill(terminal, "SIGCONT");
  }
  await screen.until(/That was three\.\n\n›/);
  const all = (await screen.all()).split("\n").map((row) => row.trim());
  for (const said of ["one", "two", "three"])
    for (let at = 0; at < 400; at += 1)
      assert.equal(all.filter((row) => row === `${said} ${at}.`).length, 1, `${said} ${at}`);
});

test("Ctrl-S puts a draft aside and stops nothing, and Ctrl-Q does no harm", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(long);
  await using screen = await onScreen(place, model.flags);
  await screen.until(READY);
  await screen.type("a draft");
  await screen.press("C-s");
  await screen.until(/^›\s*\n/m);
  await screen.press("C-q");
  await screen.type("first this");
  await screen.press("Enter");
  await screen.until(/That was first this\./);
  await screen.press("C-s");
  await screen.until(/^› a draft/m);
});

test("a terminal closed during a request ends the chat, and nothing said is lost", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat) =>
    chat.messages.at(-1)?.content.includes("later") === true ? "hang" : long(chat),
  );
  await using screen = await onScreen(place, model.flags);
  await screen.until(READY);
  await screen.type("before");
  await screen.press("Enter");
  await screen.until(/That was before\./);
  await screen.type("and later");
  await screen.press("Enter");
  await screen.until(/Esc stops it/);
  await screen[Symbol.asyncDispose]();
  const listed = await runProgram("bin/harness", ["sessions", "list", "--json", "--all"], {
    home: place.path,
  });
  assert.equal(listed.code, 0, listed.stderr);
  const [first = "{}"] = listed.stdout.split("\n");
  const session = JSON.parse(first) as { id?: string; title?: string };
  assert.equal(session.title, "before");
  const shown = await runProgram("bin/harness", ["sessions", "show", session.id ?? ""], {
    home: place.path,
  });
  assert.match(shown.stdout, /That was before\./);
  await using again = await onScreen(place, model.flags);
  await again.until(READY);
  await again.press("Up");
  await again.until(/^› and later/m);
});

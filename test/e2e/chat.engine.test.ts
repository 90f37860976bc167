import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { skip as noEngine } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { AGAIN, chatting, PROMPT } from "./chatting.ts";
import { type AskedChat, lastOf, type Replies, type Said, startModel } from "./run-command.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

const skip = noTerminal || noEngine;
const roles = (chat: AskedChat | undefined): readonly string[] =>
  chat?.messages.map(({ role }) => role) ?? [];

/** Runs what a person asks to be run; anything else is answered at once. */
const obeys: Replies = (chat): Said => {
  const { role, content } = chat.messages.at(-1) ?? { role: "", content: "" };
  if (role === "tool") return { text: `It said: ${content.split("\n")[0]}` };
  const command = /^run: (.*)$/m.exec(content)?.[1];
  if (command !== undefined) return { text: "I run it.", calls: [["bash", { command }]] };
  return { text: `You said: ${content.split("\n")[0]}` };
};

test("a greeting is answered by one request, without a box", { skip }, async () => {
  await using chat = await chatting(obeys);
  const screen = await chat.ask("hello");
  assert.match(screen, /\nYou said: hello\n/);
  assert.equal(chat.model.asked().length, 1);
  chat.terminal.type("exit\r");
  assert.equal(await chat.terminal.ended, 0);
  assert.doesNotMatch(chat.terminal.screen(), /box ready/);
});

const liar: Replies = (chat): Said =>
  chat.messages.at(-1)?.role === "tool"
    ? { text: "All tests pass." }
    : /first/.test(lastOf(chat))
      ? { calls: [["bash", { command: "echo ok" }]] }
      : { text: /what does/.test(lastOf(chat)) ? "It adds." : "The tests passed." };

test(
  "an answer that claims actions without calls is marked as unverified, in any request",
  { skip },
  async () => {
    await using chat = await chatting(liar, { files: { "work/sum.js": "" } });
    const asks = async (text: string): Promise<string> => (await chat.ask(text)).replaceAll(/\s+/g, " ");
    const WORD = /! The model gave its answer but made no calls: nothing backs what it says was done\./;
    const NO_LOOK = /! The model gave its answer without looking at the repository\./;
    assert.match(await asks("run the tests"), WORD);
    assert.match(await asks("what does sum.js do?"), NO_LOOK);
    assert.doesNotMatch(await asks("now first say ok"), WORD);
    assert.doesNotMatch(await asks("what does sum.js do?"), NO_LOOK, "something was seen before");
    assert.match(await asks("run the tests"), WORD);
  },
);

const TOGETHER = Array.from(
  { length: 24 },
  (_, at) => `Then I look at the file number ${at} of them.\n`,
).join("");

test("a small model that repeats itself is stopped and asked again, three times", { skip }, async () => {
  await using chat = await chatting([{ text: TOGETHER.repeat(5) }], { model: "smallFlags" });
  const screen = (await chat.ask("what is a monad?")).replaceAll(/\s+/g, " ");
  assert.match(screen, /repeated itself endlessly in 3 replies in a row/);
  const asked = chat.model.asked();
  assert.equal(asked.length, 3);
  assert.equal(asked[1]?.messages.at(-2)?.content, `${TOGETHER}…`);
  assert.deepEqual(new Set(asked.map(({ options }) => options?.num_predict)), new Set([4096]));
});

const LONG = Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join("");
/** Writes a part of a file for all of it, twice at most. */
const partly: Replies = (chat): Said => {
  const { role, content } = chat.messages.at(-1) ?? { role: "", content: "" };
  const path = /file (\w+)/.exec(content)?.[1];
  if (path !== undefined && role === "user") return { calls: [["read_file", { path }]] };
  const read = chat.messages.findLast(({ role: by }) => by === "user")?.content ?? "";
  if (/^\d+\t/m.test(content))
    return { calls: [["write_file", { path: /file (\w+)/.exec(read)?.[1], content: "line 3\n" }]] };
  return { text: `It said: ${content.split("\n")[0]}` };
};

test(
  "replacing most of a file is challenged once when the current model is a small one",
  { skip },
  async () => {
    const files = { a: LONG, b: LONG };
    await using chat = await chatting(partly, { files, model: "smallFlags" });
    assert.match(await chat.ask("mend file a"), /39 of its 40 lines/);
    assert.equal(await chat.place.read("work/a"), LONG);
    await chat.ask("/model coder:7b");
    assert.match(await chat.ask("mend file b"), /b: replaced/);
    assert.equal(await chat.place.read("work/b"), "line 3\n");
  },
);

test("y runs a command once, Enter refuses it", { skip }, async () => {
  await using chat = await chatting(obeys);
  chat.terminal.type("run: echo yes > asked.txt\r");
  const question = await chat.terminal.until(/run it\? \[y\/N\] $/);
  assert.match(question, /│ echo yes > asked\.txt\n/);
  chat.terminal.type("y\r");
  assert.match(await chat.terminal.until(PROMPT), /✓ bash echo yes > asked\.txt/);
  assert.equal(await chat.place.read("work/asked.txt"), "yes\n");
  chat.terminal.type("run: echo no > refused.txt\r");
  await chat.terminal.until(/run it\? \[y\/N\] $/);
  chat.terminal.type("\r");
  assert.match(await chat.terminal.until(PROMPT), /⊘ bash echo no > refused\.txt/);
  assert.equal(existsSync(chat.place.at("work/refused.txt")), false);
  assert.match(lastOf(chat.model.asked().at(-1) ?? { messages: [] }), /The user said no/);
});

test(
  "a question that needs a host can be answered with a grant, which applies to the running box",
  { skip },
  async () => {
    // The host's own way out is a stub on loopback: no name leads anywhere else.
    const server = createServer(({ url }, response) => response.end(`had ${url}\n`)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const env = { HTTP_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: "127.0.0.1" };
    server.unref();
    await using chat = await chatting(obeys, { env });
    const said = async (name: string, key: string): Promise<string> => {
      chat.terminal.type(`run: cat /tmp/seen; date >> /tmp/seen; curl -sS -m 5 http://files.test/${name}\r`);
      const question = await chat.terminal.until(/run it\? \[y\/N\] $/);
      chat.terminal.type(`${key}\r`);
      await chat.terminal.until(AGAIN);
      const lines = lastOf(chat.model.asked().at(-1) ?? { messages: [] }).split("\n");
      const dates = lines.filter((line) => /\d\d:\d\d:\d\d/.test(line)).length;
      const had = lines.includes(`had http://files.test/${name}`);
      return `${question.includes("--allow-domain")} ${dates} ${had}`;
    };
    assert.equal(await said("1", "y"), "true 0 false");
    assert.equal(await said("2", "g"), "true 1 true", "the same box: what it had in /tmp is there");
    assert.equal(await said("3", "y"), "true 2 false", "it was for that call");
    assert.equal(await said("4", "a"), "true 3 true");
    assert.equal(await said("5", "y"), "false 4 true", "it is granted by now");
    assert.match(chat.terminal.screen(), /granted from now on by /);
    const settings = JSON.parse(await chat.place.read(".config/harness/config.json")) as object;
    assert.deepEqual(settings, { allow_domains: ["files.test"] });
    server.closeAllConnections();
    server.close();
  },
);

test("text typed before a question does not answer it", { skip }, async () => {
  await using chat = await chatting(obeys);
  chat.terminal.type("run: echo yes > asked.txt\ry\ryes\r");
  await chat.terminal.until(/run it\? \[y\/N\] $/);
  chat.terminal.type("\r");
  assert.match(await chat.terminal.until(PROMPT), /declined/);
  assert.equal(existsSync(chat.place.at("work/asked.txt")), false);
});

test("Ctrl-C at a question is a no and ends the turn", { skip }, async () => {
  await using chat = await chatting(obeys);
  chat.terminal.type("run: echo yes > asked.txt\r");
  await chat.terminal.until(/run it\? \[y\/N\] $/);
  chat.terminal.type("\u0003");
  assert.match(await chat.terminal.until(/harness> run: echo yes > asked\.txt$/), /cancelled/);
  const asked = chat.model.asked().length;
  await chat.ask("hello");
  assert.deepEqual(roles(chat.model.asked().at(-1)), ["system", "user"]);
  assert.equal(chat.model.asked().length, asked + 1);
  assert.equal(existsSync(chat.place.at("work/asked.txt")), false);
});

test("Ctrl-C ends a command with all its processes, and its turn is removed", { skip }, async () => {
  await using chat = await chatting(obeys);
  await chat.ask("hello");
  chat.terminal.type("run: touch begun; sleep 30; touch late\r");
  await chat.terminal.until(/run it\? \[y\/N\] $/);
  chat.terminal.type("y\r");
  while (!existsSync(chat.place.at("work/begun"))) await new Promise((resolve) => setTimeout(resolve, 20));
  chat.terminal.type("\u0003");
  assert.match(await chat.terminal.until(/harness> run: touch begun/), /cancelled/);
  chat.terminal.type("run: ps -e | grep -c slee[p]\r");
  await chat.terminal.until(/It said: .*\n[\s\S]*harness> $/);
  const asked = chat.model.asked();
  const text = JSON.stringify(asked.slice(-2).map(({ messages }) => messages.slice(1)));
  assert.doesNotMatch(text, /touch begun/);
  assert.deepEqual(roles(asked.at(-1)), ["system", "user", "assistant", "user", "assistant", "tool"]);
  const processes = lastOf(asked.at(-1) ?? { messages: [] });
  assert.match(processes, /^0$/m);
  assert.doesNotMatch(processes, /not found/);
  assert.deepEqual((await readdir(chat.place.at("work"))).toSorted(), ["begun"]);
});

test("/undo takes the last message back, /clear all but the system prompt", { skip }, async () => {
  await using chat = await chatting(obeys);
  await chat.ask("hello");
  await chat.ask("hi there");
  assert.match(await chat.ask("/undo"), /Taken back, with everything after it: hi there/);
  await chat.ask("good morning");
  const users = (): readonly string[] =>
    (chat.model.asked().at(-1)?.messages ?? [])
      .filter(({ role }) => role === "user")
      .map(({ content }) => content);
  assert.deepEqual(users(), ["hello", "good morning"]);
  await chat.ask("/clear");
  await chat.ask("hello again");
  assert.deepEqual(users(), ["hello again"]);
  assert.deepEqual(roles(chat.model.asked().at(-1)), ["system", "user"]);
});

test("a change of the mode is reported with the next request and enforced", { skip }, async () => {
  await using chat = await chatting(obeys);
  await chat.ask("hello");
  assert.match(await chat.ask("/mode read-only"), /The mode is read-only now/);
  const screen = await chat.ask("run: echo x > x.txt");
  assert.match(screen, /⊘ bash echo x > x\.txt/);
  assert.doesNotMatch(screen, /run it\?/);
  const told = chat.model
    .asked()
    .at(-1)
    ?.messages.filter(({ content }) => content.includes("mode is read-only now"));
  assert.deepEqual(
    told?.map(({ role }) => role),
    ["user"],
  );
  const prompts = chat.model.asked().map(({ messages }) => messages[0]?.content);
  assert.equal(new Set(prompts.filter((text) => text?.startsWith("You are harness"))).size, 1);
});

test("a resumed session shows the model the same conversation", { skip }, async () => {
  await using place = await household({ "a.txt": "one\n" });
  await using model = await startModel(obeys);
  await using first = onTerminal(place, model.flags);
  await first.until(PROMPT);
  first.type("run: cat a.txt\r");
  await first.until(/It said: [\s\S]*harness> $/);
  first.type("\u0004");
  assert.equal(await first.ended, 0);
  const before = model.asked().at(-1)?.messages ?? [];
  await using second = onTerminal(place, ["resume", ...model.flags]);
  assert.match(await second.until(PROMPT), /› run: cat a\.txt\n {2}I run it\.\n {2}It said/);
  second.type("hello\r");
  await second.until(PROMPT);
  const after = model.asked().at(-1)?.messages ?? [];
  assert.deepEqual(after.slice(0, before.length), before);
  assert.deepEqual(
    after.slice(before.length).map(({ role }) => role),
    ["assistant", "user"],
  );
});

test("/compact shows the savings and keeps the system prompt once", { skip }, async () => {
  const summary = { goal: "to talk", constraints: [], decisions: [], files: [], risks: [] };
  await using chat = await chatting((asked, nth) =>
    lastOf(asked).includes('"goal"')
      ? { text: JSON.stringify(summary) }
      : { text: `${"a long answer ".repeat(300)} ${nth}` },
  );
  for (const text of ["hello", "hi", "good morning"]) await chat.ask(text);
  assert.match(await chat.ask("/compact"), /older turns summarised: about [\d,]+ -> [\d,]+ tokens/);
  await chat.ask("hello again");
  const seen = chat.model.asked().at(-1);
  assert.deepEqual(
    roles(seen).filter((role) => role === "system"),
    ["system"],
  );
  assert.match(JSON.stringify(seen), /Goal: to talk/);
});

test(
  "a cancelled turn leaves nothing behind, even if older turns were summarised in it",
  { skip },
  async () => {
    const summary = { goal: "to talk", constraints: [], decisions: [], files: [], risks: [] };
    const state = { summaries: 0, hung: false };
    const replies: Replies = (asked) => {
      if (lastOf(asked).includes('"goal"')) {
        state.summaries += 1;
        return { text: JSON.stringify(summary) };
      }
      if (state.summaries === 0 || state.hung) return { text: "a long answer ".repeat(100) };
      state.hung = true;
      return "hang";
    };
    await using place = await household();
    await using model = await startModel(replies, 6144);
    await using terminal = onTerminal(place, model.flags);
    await terminal.until(PROMPT);
    let text = "";
    for (let at = 0; state.summaries === 0 && at < 50; at += 1) {
      text = `greeting number ${at}`;
      terminal.type(`${text}\r`);
      await terminal.until(new RegExp(`${text}\r?\n[\\s\\S]*(?:older turns summarised|\nharness> $)`));
    }
    assert.equal(state.summaries, 1, terminal.screen().slice(-3000));
    for (let tries = 0; !state.hung && tries < 500; tries += 1) await sleep(20);
    terminal.type("\u0003");
    await terminal.until(/~ cancelled\n\nharness> greeting number \d+$/);
    terminal.type("hello there\r");
    await terminal.until(AGAIN);
    const seen = JSON.stringify(model.asked().at(-1));
    assert.match(seen, /hello there/);
    assert.equal(seen.includes(text), false);
  },
);

for (const [signal, code] of [
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  test(`${signal} during a turn ends with ${code}, and the session can be resumed`, { skip }, async () => {
    await using chat = await chatting((asked) => (lastOf(asked) === "hello" ? { text: "Hi." } : "hang"));
    await chat.ask("hello");
    chat.terminal.type("good morning\r");
    while (chat.model.asked().length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    process.kill(await chat.terminal.pid(), signal);
    assert.equal(await chat.terminal.ended, code);
    await using again = onTerminal(chat.place, ["resume", ...chat.model.flags]);
    assert.match(await again.until(PROMPT), /› hello\n {2}Hi\.\n/);
  });

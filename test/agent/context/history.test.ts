import assert from "node:assert/strict";
import test from "node:test";
import type { Message, PromptParts, ToolOffer } from "../../../src/core/model-provider.ts";
import type { SessionRecord } from "../../../src/core/session.ts";
import { History, PromptSize, viewOf } from "../../../src/agent/context/history.ts";
import { answered, parked } from "../../contract/store-words.ts";

const user = (text: string): Message => ({ role: "user", text });
const asks = (...ids: readonly string[]): Message => ({
  role: "assistant",
  text: "",
  calls: ids.map((id) => ({ id, name: "read_file", args: {} })),
});
const result = (call: string, text = "short"): Message => ({ role: "tool", call, text });
const long = "x".repeat(1000);

function recorded(): { readonly history: History; readonly records: SessionRecord[] } {
  const records: SessionRecord[] = [];
  return { history: new History((record) => void records.push(record)), records };
}

test("the first pin wins, is shown first and only once, and survives a clear", () => {
  const { history, records } = recorded();
  history.pin("be good");
  history.pin("be bad");
  history.add(user("a"));
  history.clear();
  assert.equal(history.count, 0);
  assert.deepEqual(history.view(), [{ role: "system", text: "be good" }]);
  assert.deepEqual(
    records.map(({ kind }) => kind),
    ["pinned", "message", "cleared"],
  );
});

test("a message that cannot be recorded is not added", () => {
  const history = new History(() => {
    throw new Error("disk full");
  });
  assert.throws(() => history.add(user("a")), /disk full/);
  assert.equal(history.count, 0);
});

test("adding a system message or a result without its call throws", () => {
  const { history, records } = recorded();
  history.add(asks("1"));
  history.add(result("1"));
  assert.throws(() => history.add({ role: "system", text: "x" }));
  assert.throws(() => history.add(result("1")));
  assert.throws(() => history.add(result("2")));
  assert.equal(records.length, 2);
});

test("calls left open when the process ended get a result, which is recorded", () => {
  const records: SessionRecord[] = [asks("1", "2"), result("1")].map((message) => ({
    kind: "message",
    message,
  }));
  const repairs: SessionRecord[] = [];
  const history = History.from(records, (record) => void repairs.push(record));
  assert.equal(repairs.length, 1);
  const last = history.messages.at(-1);
  assert.ok(last?.role === "tool" && last.call === "2");
  assert.match(last.text, /interrupted before it ended/);
  assert.deepEqual(History.from([...records, ...repairs], () => assert.fail()).view(), history.view());
});

test("open calls get a result before the next message", () => {
  const { history } = recorded();
  history.add(asks("1"));
  history.add(user("stop"));
  assert.deepEqual(
    history.view().map(({ role }) => role),
    ["assistant", "tool", "user"],
  );
});

test("undo returns the last request and restores the earlier view, also across a compaction", () => {
  const { history } = recorded();
  for (const message of [user("a"), asks("1"), result("1")]) history.add(message);
  history.compact({ at: 3, pruneBefore: 0, keepFrom: 1, artifact: "early" });
  const before = history.view();
  for (const message of [user("b"), asks("2"), result("2")]) history.add(message);
  history.compact({ at: 6, pruneBefore: 0, keepFrom: 4, artifact: "holds b" });
  assert.equal(history.undo(), "b");
  assert.deepEqual(history.view(), before);
  assert.equal(history.count, 3);
  assert.equal(history.undo(), "a");
  assert.equal(history.undo(), undefined);
  assert.equal(history.compaction, undefined);
});

test("a compaction shows the first request, the current one and the artifact in place of what it hides", () => {
  const { history } = recorded();
  history.pin("s");
  const all = [user("fix it"), asks("1"), result("1", long), user("now that"), asks("2"), result("2", long)];
  for (const message of all) history.add(message);
  history.compact({ at: 6, pruneBefore: 0, keepFrom: 4, artifact: "did A" });
  const [system, summary, ...kept] = history.view();
  assert.deepEqual(system, { role: "system", text: "s" });
  assert.match(summary?.text ?? "", /^fix it\n[^]*now that\n[^]*did A\n/);
  assert.deepEqual(kept, all.slice(4));
  assert.deepEqual([history.count, history.messages], [6, all]);
});

test("a request that is too long to repeat is shown by its head and tail", () => {
  const { history } = recorded();
  const text = `begin ${"😀".repeat(5000)} end`;
  for (const message of [user(text), asks()]) history.add(message);
  history.compact({ at: 2, pruneBefore: 0, keepFrom: 1, artifact: "-" });
  const shown = history.view()[0]?.text ?? "";
  assert.ok(shown.length < 4300 && shown.isWellFormed());
  assert.match(shown, /^begin [^]* characters left out [^]* end\n/);
});

test("an old long result is reduced to one line that names the tool and where all of it is stored", () => {
  const { history } = recorded();
  const marked = `${long}\n[… 70 KB left out; show_full(id="o-7", offset=15000) shows them …]\n${long}`;
  for (const message of [user("a"), asks("1", "2", "3"), result("1", long), result("2"), result("3", marked)])
    history.add(message);
  history.add(asks("4"));
  history.add(result("4", long));
  history.compact({ at: 7, pruneBefore: 6, keepFrom: 0, artifact: "" });
  const shown = history.view().map(({ text }) => text);
  assert.match(shown[2] ?? "", /^\[result of read_file [^\n]*1000 characters; read it again[^\n]*\]$/);
  assert.equal(shown[3], "short");
  assert.match(shown[4] ?? "", /show_full has it as o-7\]$/);
  assert.equal(shown[6], long);
});

test("calls that wait for a person stay open when the run is resumed, and are given up otherwise", () => {
  const before = [user("go"), asks("c1", "c2"), result("c1")].map((message): SessionRecord => ({
    kind: "message",
    message,
  }));
  const records = [...before, parked("curl x")];
  const waiting = History.from(records, () => undefined, "come");
  assert.deepEqual([waiting.openReply?.at, waiting.openReply?.calls.map(({ id }) => id)], [1, ["c2"]]);
  const textOf = (more: readonly SessionRecord[]): string | undefined =>
    History.from([...records, ...more], () => undefined).messages.at(-1)?.text;
  assert.equal(textOf([]), "not run: parked and never approved");
  assert.equal(textOf([answered("curl x", "never")]), "not run: parked and never approved");
  assert.match(textOf([answered("curl x", "once")]) ?? "", /interrupted/);
});

const ask = (text: string): Message => ({ role: "user", text });
const NONE: readonly ToolOffer[] = [];
const offers = [{ name: "bash", description: "d".repeat(100), schema: { type: "object" } }];

test("before the server has reported a count, four bytes are a token and each message costs four more", () => {
  const size = new PromptSize("m", () => NONE);
  assert.equal(size.tokens([]), 0);
  assert.equal(size.tokens([ask("a".repeat(400))]), 104);
  assert.equal(size.tokens([ask("ü".repeat(200)), ask("")]), 108);
});

test("tools and the arguments of calls are included in the size", () => {
  const size = new PromptSize("m", () => offers);
  assert.equal(size.tokens([]), Math.ceil(JSON.stringify(offers).length / 4));
  const calls = [{ id: "1", name: "bash", args: { command: "x".repeat(400) } }];
  assert.ok(size.tokens([{ role: "assistant", text: "", calls }]) > size.tokens([]) + 100);
});

test("a count from the server corrects the estimate, and a missing count changes nothing", () => {
  const size = new PromptSize("m", () => offers);
  const messages = [ask("a".repeat(8000))];
  const guess = size.tokens(messages);
  size.learn(messages, null);
  assert.equal(size.tokens(messages), guess);
  size.learn(messages, 1500);
  assert.ok(Math.abs(size.tokens(messages) - 1500) <= 2, `${size.tokens(messages)}`);
});

const parted = (parts: PromptParts): number =>
  Object.values<number>({ ...parts }).reduce((sum, part) => sum + part, 0);

test("the parts of a request are listed by purpose and add up to the whole", () => {
  const size = new PromptSize("m", () => offers);
  const instructions = `<project_instructions path="AGENTS.md">\n${"i".repeat(400)}\n</project_instructions>`;
  const summary = viewOf(
    { pinned: undefined, messages: [ask("the goal"), ask("more"), ask("now")] },
    { at: 2, keepFrom: 2, pruneBefore: 0, artifact: "a".repeat(400) },
  ).slice(0, 1);
  const messages: readonly Message[] = [
    { role: "system", text: `${"s".repeat(400)}\n\n${instructions}` },
    ...summary,
    ask("r".repeat(400)),
    { role: "assistant", text: "", calls: [{ id: "1", name: "bash", args: { command: "x".repeat(400) } }] },
    { role: "tool", call: "1", text: "t".repeat(4000) },
  ];
  const parts = size.parts(messages);
  assert.equal(parted(parts), size.tokens(messages));
  for (const [name, part] of Object.entries(parts)) assert.ok(part >= 30, `${name}: ${part}`);
  assert.ok(parts.results > 1000 && parts.results < 1010, `${parts.results}`);
  assert.ok(parts.instructions > 110 && parts.instructions < 120, `${parts.instructions}`);
});

test("the parts add up exactly to the server's count", () => {
  const size = new PromptSize("m", () => offers);
  for (const counted of [0, 1, 7, 999, 123_457])
    assert.equal(parted(size.parts([ask("a"), ask("b".repeat(99))], counted)), counted);
  assert.equal(parted(new PromptSize("m", () => NONE).parts([])), 0);
});

import assert from "node:assert/strict";
import test from "node:test";
import type { EventBody } from "../../../src/core/events.ts";
import type { Message, ModelFailure } from "../../../src/core/model-provider.ts";
import type { SessionRecord } from "../../../src/core/session.ts";
import { Compactor, type CompactorOptions } from "../../../src/agent/context/compaction.ts";
import {
  mergeSummaries,
  readSummary,
  renderSummary,
  SUMMARY_REQUEST,
  SUMMARY_SCHEMA,
} from "../../../src/agent/context/conversation-summary.ts";
import { History } from "../../../src/agent/context/history.ts";

const never = new AbortController().signal;
const WINDOW = 10_000;

/** Four characters are a token; the tools are 500. */
const tokens = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + Math.ceil(JSON.stringify(message).length / 4), 500);

type Reply = string | ModelFailure | ((messages: readonly Message[]) => string | ModelFailure);

function compacting(reply: Reply, means: Partial<CompactorOptions> = {}) {
  const records: SessionRecord[] = [];
  const events: Extract<EventBody, { type: "compaction" }>[] = [];
  const asked: (readonly Message[])[] = [];
  const history = new History((record) => void records.push(record));
  const compactor = new Compactor(history, {
    window: WINDOW,
    known: true,
    tokens,
    now: () => 0,
    summarise: (messages) => {
      asked.push(messages);
      return Promise.resolve(typeof reply === "function" ? reply(messages) : reply);
    },
    emit: (event) => void (event.type === "compaction" && events.push(event)),
    ...means,
  });
  history.pin("the prompt");
  return { history, compactor, records, events, asked };
}

/** Replies with one call each, whose results have so many characters. */
function work(history: History, sizes: readonly number[], text = ""): void {
  for (const size of sizes) {
    const id = `c${history.count}`;
    history.add({ role: "assistant", text, calls: [{ id, name: "read_file", args: {} }] });
    history.add({ role: "tool", call: id, text: "r".repeat(size) });
  }
}

const failure = (reason: string): ModelFailure => ({ kind: "server", reason, remedy: "" });
const ask = (text: string): Message => ({ role: "user", text });
const small = JSON.stringify({ goal: "fix it", decisions: ["keep the API"] });

test("below 80 % of the window nothing is compacted", async () => {
  const { history, compactor, records, events } = compacting(() => assert.fail("asked"));
  history.add(ask("fix it"));
  work(history, [10_000, 10_000]);
  const before = records.length;
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.deepEqual([records.length, events], [before, []]);
});

test("old results are dropped first when that frees enough; the newest and those of the last two replies stay", async () => {
  const { history, compactor, events } = compacting(() => assert.fail("asked"));
  history.add(ask("fix it"));
  work(history, [8000, 8000, 8000, 4000, 4000]);
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  const results = history.view().filter(({ role }) => role === "tool");
  assert.deepEqual(
    results.map(({ text }) => text.startsWith("[result of read_file")),
    [true, true, true, false, false],
  );
  assert.equal(history.count, 11);
  const [event] = events;
  assert.deepEqual([events.length, event?.status, event?.trigger], [1, "pruned", "pressure"]);
  assert.ok((event?.before ?? 0) > 8000 && (event?.after ?? WINDOW) < 6000);
});

test("the newest results are kept up to a quarter of the window, however many replies they belong to", async () => {
  const { history, compactor } = compacting(() => assert.fail("asked"));
  history.add(ask("fix it"));
  work(history, [10_000, 10_000, 8000, 1600, 1600, 1600, 1600]);
  await compactor.fit(never);
  const results = history.view().filter(({ role }) => role === "tool");
  assert.deepEqual(
    results.map(({ text }) => text.startsWith("[result of")),
    [true, true, true, false, false, false, false],
  );
});

test("no summary is requested where it would save little", async () => {
  const { history, compactor, events } = compacting(() => assert.fail("asked"));
  history.add(ask("fix it"));
  history.add(ask("x".repeat(33_000)));
  assert.deepEqual([await compactor.fit(never), events], [{ kind: "fits" }, []]);
});

test("where dropping results is not enough, an artifact replaces the older part", async () => {
  const { history, compactor, events, asked } = compacting(small);
  history.add(ask("the first request"));
  for (let turn = 0; turn < 20; turn += 1) {
    history.add(ask(`${turn} ${"u".repeat(900)}`));
    history.add({ role: "assistant", text: "a".repeat(800), calls: [] });
  }
  const before = history.view();
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.deepEqual(
    events.map(({ status }) => status),
    ["started", "succeeded"],
  );
  const [system, summary, ...kept] = history.view();
  assert.deepEqual(system, before[0]);
  assert.match(summary?.text ?? "", /^the first request\n[^]*Goal: fix it\n[^]*- keep the API/);
  assert.deepEqual(kept, before.slice(-kept.length));
  assert.equal(history.messages.length, 41);
  const left = tokens(kept) - 500;
  assert.ok(left > 0.15 * WINDOW && left <= 0.24 * WINDOW, `${left}`);
  const [request] = asked;
  assert.deepEqual(request?.slice(0, -1), before.slice(0, before.length - kept.length));
  assert.deepEqual(request?.at(-1), ask(SUMMARY_REQUEST));
});

test("the previous artifact is part of what is summarised, and its decisions survive", async () => {
  let nth = 0;
  const { history, compactor, asked } = compacting(() => {
    nth += 1;
    return JSON.stringify({
      goal: `goal ${nth}`,
      decisions: [`decision ${nth}: ${"abcdefghijkl"[nth]?.repeat(4)}`],
    });
  });
  history.add(ask("the first request"));
  for (let turn = 0; turn < 120; turn += 1) {
    history.add(ask(`${turn} ${"u".repeat(900)}`));
    history.add({ role: "assistant", text: "a".repeat(800), calls: [] });
    assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  }
  assert.ok(asked.length > 3);
  assert.match(asked[1]?.[1]?.text ?? "", /^the first request[^]*goal 1/);
  assert.match(history.view()[1]?.text ?? "", /^the first request[^]*Goal: goal \d+/);
  assert.match(history.view()[1]?.text ?? "", /- decision 1: bbbb\n/);
  assert.equal(history.count, 241);
});

for (const [name, reply] of [
  ["an error", failure("the server fell over")],
  ["an empty reply", " \n"],
  ["an empty object", "{}"],
  ["a reply larger than what it would replace", "not shorter ".repeat(5000)],
] as const)
  test(`${name} in place of a summary changes nothing and is not retried at once`, async () => {
    const { history, compactor, records, events, asked } = compacting(reply, { window: 1200 });
    history.add(ask("fix it"));
    for (let turn = 0; turn < 3; turn += 1) history.add(ask("u".repeat(900)));
    const [before, count] = [JSON.stringify([...history.view()]), records.length];
    assert.deepEqual(await compactor.fit(never), {
      kind: "too_long",
      tokens: tokens(history.view()),
      window: 1200,
    });
    assert.equal(JSON.stringify([...history.view()]), before);
    assert.equal(records.length, count);
    assert.deepEqual(
      events.map(({ status }) => status),
      ["started", "failed"],
    );
    assert.notEqual(events[1]?.reason, "");
    assert.equal(asked.length, 1);
  });

test("after a failed summary the turn continues, and the summary is retried once the history has grown", async () => {
  let fails = true;
  const { history, compactor, asked, events } = compacting(() => (fails ? failure("busy") : small));
  history.add(ask("fix it"));
  for (let turn = 0; turn < 9; turn += 1) history.add(ask("u".repeat(3600)));
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.equal(events.at(-1)?.reason, "busy");
  history.add(ask("and this"));
  await compactor.fit(never);
  assert.equal(asked.length, 1);
  fails = false;
  history.add(ask("u".repeat(2000)));
  await compactor.fit(never);
  assert.deepEqual([asked.length, events.at(-1)?.status], [2, "succeeded"]);
});

test("an earlier failure does not prevent compaction once the request exceeds a known window", async () => {
  let fails = true;
  const { history, compactor } = compacting(() => (fails ? failure("busy") : small));
  history.add(ask("fix it"));
  for (let turn = 0; turn < 10; turn += 1) history.add(ask("u".repeat(3600)));
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  history.add(ask("u".repeat(1800)));
  fails = false;
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.ok(history.compaction !== undefined);
});

test("an oversized request is blocked only if the window is known, not if it is guessed", async () => {
  for (const known of [true, false]) {
    const { history, compactor, events } = compacting(failure("busy"), { known });
    history.add(ask("x".repeat(50_000)));
    const fitted = await compactor.fit(never);
    assert.equal(fitted.kind, known ? "too_long" : "fits");
    assert.deepEqual(events, []);
  }
});

test("cancelling a summary leaves the history unchanged", async () => {
  const stop = new AbortController();
  const { history, compactor, records, events } = compacting(() => {
    stop.abort();
    return small;
  });
  history.add(ask("fix it"));
  for (let turn = 0; turn < 10; turn += 1) history.add(ask("u".repeat(3600)));
  const before = records.length;
  await compactor.fit(stop.signal);
  assert.equal(records.length, before);
  assert.deepEqual([events.at(-1)?.status, events.at(-1)?.reason], ["failed", "cancelled"]);
});

test("results in current use are dropped last, oldest first, before a request is given up as too long", async () => {
  const { history, compactor, events } = compacting(failure("busy"));
  history.add(ask("fix it"));
  const calls = ["a", "b", "c"].map((id) => ({ id, name: "bash", args: {} }));
  history.add({ role: "assistant", text: "", calls });
  for (const { id } of calls) history.add({ role: "tool", call: id, text: "r".repeat(16_000) });
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  const shown = history.view().map(({ text }) => text.startsWith("[result of bash"));
  assert.deepEqual(shown.slice(-3), [true, false, false]);
  assert.equal(events.at(-1)?.status, "pruned");
});

test("a prompt that the server refused as too long is shortened, whatever window was assumed", async () => {
  const { history, compactor, events } = compacting(small, { window: 1_000_000 });
  history.add(ask("fix it"));
  work(history, [3000, 3000, 3000, 3000, 3000, 3000], "a".repeat(3000));
  const before = tokens(history.view());
  assert.equal(await compactor.now("refused", never), true);
  assert.ok(tokens(history.view()) < 0.65 * before);
  assert.ok(events.length > 0 && events.every(({ trigger }) => trigger === "refused"));
});

test("a refused prompt lowers the assumed window for later requests, and never blocks one", async () => {
  const { history, compactor, events } = compacting(small, { window: 1_000_000, known: false });
  history.add(ask("fix it"));
  work(history, [3000, 3000, 3000, 3000, 3000, 3000], "a".repeat(3000));
  const refused = tokens(history.view());
  await compactor.now("refused", never);
  events.length = 0;
  work(history, [3000, 3000, 3000, 3000], "a".repeat(3000));
  assert.ok(tokens(history.view()) < 500_000);
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.equal(events.at(-1)?.trigger, "pressure");
  history.add(ask("w ".repeat(4 * refused)));
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
});

test("results are dropped when a refused prompt has no older part to summarise", async () => {
  const { history, compactor, events } = compacting(() => assert.fail("asked"), { window: 1_000_000 });
  work(history, [9000]);
  assert.equal(await compactor.now("refused", never), true);
  assert.deepEqual(
    events.map(({ status }) => status),
    ["pruned"],
  );
});

test("a person can compact at any size, and is told when there is nothing to compact", async () => {
  const { history, compactor, events } = compacting(small);
  assert.equal(await compactor.now("manual", never), false);
  assert.deepEqual([events.at(-1)?.status, events.at(-1)?.trigger], ["failed", "manual"]);
  history.add(ask("fix it"));
  work(history, [2000, 2000, 2000]);
  assert.equal(await compactor.now("manual", never), true);
  assert.deepEqual([events.at(-1)?.status, history.view()[1]?.role], ["succeeded", "user"]);
});

test("an older part that does not fit by itself is summarised with shortened messages or in pieces", async () => {
  const { history, compactor, asked } = compacting(small);
  history.add(ask("fix it"));
  const id = "w";
  const args = { path: "a", content: "w".repeat(30_000) };
  history.add({ role: "assistant", text: "", calls: [{ id, name: "write_file", args }] });
  history.add({ role: "tool", call: id, text: "r".repeat(30_000) });
  work(history, [100, 100, 100]);
  assert.deepEqual(await compactor.fit(never), { kind: "fits" });
  assert.ok(asked.length > 0 && asked.every((messages) => tokens(messages) <= WINDOW));
  assert.ok(tokens(history.view()) < WINDOW / 2);
});

test("a compacted turn that is cancelled leaves nothing behind, not even in the summary", async () => {
  const { history, compactor } = compacting(() => JSON.stringify({ goal: "SECRET PLAN" }));
  history.add(ask("first"));
  for (let turn = 0; turn < 6; turn += 1)
    history.add({ role: "assistant", text: "a".repeat(3600), calls: [] });
  const [count, before] = [history.count, history.view()];
  history.add(ask("second"));
  for (let turn = 0; turn < 6; turn += 1)
    history.add({ role: "assistant", text: "b".repeat(3600), calls: [] });
  await compactor.fit(never);
  assert.match(JSON.stringify([...history.view()]), /SECRET PLAN/);
  history.rollBack(count);
  assert.deepEqual(history.view(), before);
});

test("text kept verbatim is shown next to the summary and is rolled back with it", async () => {
  const plan = { text: "[>] mend <project_instructions> it" };
  const { history, compactor, records } = compacting(JSON.stringify({ goal: "g" }), {
    kept: () => plan.text,
  });
  history.add(ask("go"));
  work(history, [10_000, 10_000, 8000]);
  await compactor.now("manual", never);
  const shown = history.view()[1]?.text ?? "";
  assert.ok(shown.endsWith(`[End of the summary]\n\n${plan.text}`), shown);
  const again = History.from(records, () => undefined);
  assert.deepEqual(again.view(), history.view());
  plan.text = "[x] mend it";
  assert.equal(history.view()[1]?.text, shown);
  work(history, [10_000, 10_000, 8000]);
  await compactor.now("manual", never);
  assert.ok(history.view()[1]?.text.endsWith("[End of the summary]\n\n[x] mend it"));
  history.rollBack(7);
  assert.equal(history.view()[1]?.text, shown);
});

test("text to keep verbatim is shown next to the summary only until the next summary", async () => {
  const told: string[] = [];
  const { history, compactor } = compacting(small, {
    keep: (trigger) => Promise.resolve(told.push(trigger) === 1 ? "the port is 8080\n- not an entry" : ""),
  });
  history.add(ask("the first request"));
  const more = async (): Promise<string> => {
    for (let turn = 0; turn < 20; turn += 1) {
      history.add(ask(`${turn} ${"u".repeat(900)}`));
      history.add({ role: "assistant", text: "a".repeat(800), calls: [] });
    }
    await compactor.fit(never);
    return history.view()[1]?.text ?? "";
  };
  assert.match(await more(), /- keep the API\n> the port is 8080\n> - not an entry\n/);
  const later = await more();
  assert.ok(
    later.includes("keep the API") && !later.includes("8080") && !later.includes("not an entry"),
    later,
  );
  assert.ok(told.length >= 2 && told.every((trigger) => trigger === "pressure"));
});

const whole = {
  goal: "make the parser accept tabs",
  constraints: ["no new packages"],
  decisions: ["tabs count as one column"],
  open: ["docs are not updated"],
  files: ["src/parse.ts: the lexer"],
  done: ["added a failing test"],
};
const json = JSON.stringify(whole);
const rendered = `Goal: make the parser accept tabs
Constraints:
- no new packages
Decisions:
- tabs count as one column
Open:
- docs are not updated
Files:
- src/parse.ts: the lexer
Done:
- added a failing test`;

const read = (reply: string): string => {
  const artifact = readSummary(reply);
  return artifact === undefined ? "nothing" : renderSummary(artifact);
};

for (const [name, reply] of [
  ["plain JSON", json],
  ["JSON in a fence", `\`\`\`json\n${JSON.stringify(whole, null, 2)}\n\`\`\``],
  ["JSON with prose around", `Here is what I need {so far}:\n${json}\nThat is all.`],
  ["JSON after thoughts", `<think>{"goal": "no"}</think>${json}`],
  [
    "entries as objects",
    json.replace('"src/parse.ts: the lexer"', '{"path":"src/parse.ts","why":"the lexer"}'),
  ],
  ["a list as one text", json.replace('["no new packages"]', '"- no new packages"')],
] as const)
  test(`an artifact is parsed from ${name}`, () => assert.equal(read(reply), rendered));

for (const [name, reply] of [
  ["nothing", ""],
  ["spaces", " \n\t"],
  ["an empty object", "{}"],
  ["an object without known keys", '{"name": "x", "arguments": {}}'],
  ["empty lists", '{"goal": "", "open": []}'],
  ["thoughts only", "<think>hm</think>"],
] as const)
  test(`${name} is not an artifact`, () => assert.equal(read(reply), "nothing"));

test("prose is taken unchanged, also with unrelated or truncated JSON in it", () => {
  for (const prose of ["We fixed it.", 'The call {"name": "x"} failed.', '{"goal": "fix it", "open": ["do'])
    assert.equal(read(prose), prose);
});

test("a long goal of several lines becomes one line", () => {
  assert.equal(read(JSON.stringify({ goal: `fix\n${"g".repeat(500)}` })), `Goal: fix ${"g".repeat(500)}`);
});

test("an artifact is bounded in its lists, its lines and its total length", () => {
  const long = Array.from({ length: 20 }, (_, n) => `${n} ${"word ".repeat(200)}`);
  const text = read(
    JSON.stringify({ ...whole, goal: "g".repeat(5000), constraints: long, open: long, files: long }),
  );
  assert.ok(text.length <= 9001, `${text.length}`);
  assert.equal(text.match(/^Open:\n(?:- .*\n)*/m)?.[0].split("\n- ").length, 9);
  assert.ok(text.split("\n").every((line) => line.length < 620));
  assert.ok(read("p".repeat(200_000)).length < 3002);
});

const merged = (earlier: string, reply: string): string => {
  const now = readSummary(reply);
  assert.ok(now !== undefined);
  return renderSummary(mergeSummaries(earlier, now));
};

test("sections missing from a new artifact are carried over from the previous one", () => {
  assert.equal(
    merged(rendered, '{"decisions": ["errors are values"]}'),
    rendered.replace("- tabs", "- errors are values\n- tabs"),
  );
  assert.equal(merged(rendered, json), rendered);
  assert.equal(merged("", json), rendered);
});

test("an open point is removed when something done says that it is settled", () => {
  const text = merged(rendered, '{"goal": "g", "done": ["the docs are updated now, and checked"]}');
  assert.doesNotMatch(text, /Open:/);
});

test("a prose artifact keeps the earlier decisions and open points", () => {
  const text = merged(rendered, "The lexer works. Tabs count as one column.");
  assert.match(text, /^The lexer works\. Tabs count as one column\.\nGoal: make the parser/);
  assert.match(text, /Open:\n- docs are not updated/);
  assert.doesNotMatch(text, /Decisions:/);
});

test("decisions survive ten compactions that never repeat them", () => {
  const names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"];
  let text = "";
  for (const name of names)
    text = merged(text, JSON.stringify({ goal: name, decisions: [`we chose ${name}`] }));
  for (const name of names) assert.match(text, new RegExp(`- we chose ${name}\\b`));
});

test("the request for an artifact is short, and its schema lists every part", () => {
  assert.ok(Buffer.byteLength(SUMMARY_REQUEST) < 1000);
  assert.match(SUMMARY_REQUEST, /JSON only, call no tool/);
  const { properties, required } = SUMMARY_SCHEMA;
  assert.deepEqual(required, Object.keys(whole));
  assert.deepEqual(properties, {
    goal: { type: "string" },
    constraints: { type: "array", items: { type: "string" }, maxItems: 12 },
    decisions: { type: "array", items: { type: "string" }, maxItems: 16 },
    open: { type: "array", items: { type: "string" }, maxItems: 8 },
    files: { type: "array", items: { type: "string" }, maxItems: 12 },
    done: { type: "array", items: { type: "string" }, maxItems: 12 },
  });
});

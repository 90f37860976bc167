import assert from "node:assert/strict";
import { runId } from "../../src/app/sessions/session-access.ts";
import type { AgentEvent } from "../../src/core/events.ts";
import type { Message } from "../../src/core/model-provider.ts";
import { type SessionRecord, parkedIn } from "../../src/core/session.ts";
import { ABOUT, answered, event, message, parked, RECORDS, turn } from "./store-words.ts";
import type { Add } from "./store-suite.ts";

export function recordCases(add: Add): void {
  keptCases(add);
  countCases(add);
  claimCases(add);
  eventCases(add);
}

function keptCases(add: Add): void {
  add("a fork has everything stored so far, and both then change independently", ({ store }) => {
    const session = store.create(ABOUT);
    for (const record of RECORDS) session.append(record);
    session.outputs.keep("a long output");
    const fork = store.fork(session.id);
    assert.notEqual(fork.id, session.id);
    assert.deepEqual(fork.records(), RECORDS);
    assert.equal(fork.outputs.page("o1", 0, 99)?.text, "a long output");
    fork.append(message("only here"));
    assert.equal(fork.outputs.keep("another"), "o2");
    assert.deepEqual(
      [session.records().length, session.outputs.page("o2", 0, 9)],
      [RECORDS.length, undefined],
    );
    store.remove(session.id);
    assert.equal(store.open(fork.id).outputs.page("o1", 0, 99)?.text, "a long output");
    assert.throws(() => store.fork("none"), /none/);
  });

  add("records are returned as they were given, in order", ({ store }) => {
    const session = store.create(ABOUT);
    for (const record of RECORDS) session.append(record);
    assert.deepEqual(session.records(), RECORDS);
    assert.deepEqual(store.open(session.id).records(), RECORDS);
  });

  add("unusual text is returned unchanged", ({ store }) => {
    const texts = [
      "",
      "\u0000",
      "a\u0000b",
      "\uD83D",
      "\uDE00x",
      "\u{1F600}",
      "'; DROP TABLE records; --",
      "\r\n\u2028",
    ];
    const records = texts.map((text): SessionRecord => ({
      kind: "message",
      message: { role: "user", text },
    }));
    const session = store.create(ABOUT);
    for (const record of records) session.append(record);
    assert.deepEqual(session.records(), records);
  });

  add("changing a record afterwards does not affect the stored one", ({ store }) => {
    const session = store.create(ABOUT);
    const given = { role: "user" as const, text: "first" };
    session.append({ kind: "message", message: given });
    given.text = "second";
    assert.deepEqual(session.records(), [{ kind: "message", message: { role: "user", text: "first" } }]);
  });

  add("sessions do not mix", ({ store }) => {
    const [one, two] = [store.create(ABOUT), store.create({ ...ABOUT, title: "another" })];
    one.append(message("to one"));
    two.append(message("to two"));
    one.append(message("to one again"));
    assert.deepEqual(one.records(), [message("to one"), message("to one again")]);
    assert.deepEqual(two.records(), [message("to two")]);
  });

  add("two handles of the same session write to one history", ({ store }) => {
    const one = store.create(ABOUT);
    const other = store.open(one.id);
    one.append(message("a"));
    other.append(message("b"));
    one.append({ kind: "rolled_back", to: 1 });
    assert.deepEqual(other.records(), [message("a"), message("b"), { kind: "rolled_back", to: 1 }]);
    assert.equal(other.info().messages, 1);
  });
}

function countCases(add: Add): void {
  const cases: readonly (readonly [string, readonly SessionRecord[], number])[] = [
    ["nothing", [], 0],
    ["messages", [message("a"), message("b")], 2],
    ["a system prompt does not count", [{ kind: "pinned", text: "be brief" }, message("a")], 1],
    ["messages rolled back", [message("a"), message("b"), message("c"), { kind: "rolled_back", to: 1 }], 1],
    ["rolled back to more than there are", [message("a"), { kind: "rolled_back", to: 5 }], 1],
    [
      "more messages after a rollback",
      [message("a"), message("b"), { kind: "rolled_back", to: 1 }, message("c")],
      2,
    ],
    ["cleared", [message("a"), { kind: "cleared" }], 0],
    ["more messages after clearing", [message("a"), { kind: "cleared" }, message("b")], 1],
  ];
  for (const [what, records, count] of cases)
    add(`the number of current messages: ${what}`, ({ store }) => {
      const session = store.create(ABOUT);
      for (const record of records) session.append(record);
      assert.equal(session.info().messages, count);
      assert.deepEqual(session.records(), records);
    });

  add("the status is that of the last turn", ({ store }) => {
    const session = store.create(ABOUT);
    assert.equal(session.info().status, null);
    session.append(turn("budget"));
    session.append(message("again"));
    assert.equal(session.info().status, "budget");
    session.append(turn("done"));
    assert.equal(session.info().status, "done");
  });
}

const waits = (records: readonly SessionRecord[]): boolean => parkedIn(records) !== undefined;
const fails = (): boolean => assert.fail("looked");

/** Only one of several processes may continue what was parked. */
function claimCases(add: Add): void {
  add("a record is added only if a condition holds for the existing ones", ({ store }) => {
    const session = store.create(ABOUT);
    assert.equal(session.appendIf(answered("curl x", "once"), waits), false);
    assert.deepEqual(session.records(), []);
    session.append(parked("curl x"));
    const other = store.open(session.id);
    const words = ["once", "deny"] as const;
    const took = [session, other].map((each, at) =>
      each.appendIf(answered("curl x", words[at] ?? "never"), waits),
    );
    assert.deepEqual(took, [true, false]);
    assert.deepEqual(session.records(), [parked("curl x"), answered("curl x", "once")]);
  });

  add("a condition that throws adds nothing, and the session stays writable", ({ store }) => {
    const session = store.create(ABOUT);
    assert.throws(() => session.appendIf(message("a"), fails), /looked/);
    session.append(message("b"));
    assert.deepEqual(session.records(), [message("b")]);
  });

  add("a resumed session has no status until it ends", ({ store }) => {
    const session = store.create(ABOUT);
    session.append(parked("curl x"));
    session.append(turn("parked"));
    assert.equal(session.info().status, "parked");
    session.append(answered("curl x", "session"));
    assert.equal(session.info().status, null);
    session.append(turn("done"));
    assert.equal(session.info().status, "done");
  });
}

const note = (text: string): AgentEvent => event({ type: "notice", text });

function eventCases(add: Add): void {
  add("events are returned in order, except for the pieces of a reply", ({ store }) => {
    const session = store.create(ABOUT);
    session.log(event({ type: "turn.started", turn: 1, record_count: 0 }));
    session.log(event({ type: "thinking", text: "hm" }));
    session.log(event({ type: "text", text: "I" }));
    session.log(event({ type: "notice", text: "a\u0000b" }));
    assert.deepEqual(
      [...store.open(session.id).events()],
      [
        event({ type: "turn.started", turn: 1, record_count: 0 }),
        event({ type: "notice", text: "a\u0000b" }),
      ],
    );
    assert.deepEqual(session.records(), []);
  });

  add("what is written atomically is stored as a whole or not at all", ({ store }) => {
    const session = store.create(ABOUT);
    session.append(message("before"));
    session.log(note("before"));
    const before = session.info();
    const fails = (): never => {
      session.append(message("half"));
      session.audit.write([{ kind: "notice", text: "half" }]);
      session.log(note("half"));
      throw new Error("the other half");
    };
    assert.throws(() => session.atomically(fails), /the other half/);
    assert.deepEqual(session.info(), before);
    assert.deepEqual([session.records(), [...session.events()]], [[message("before")], [note("before")]]);
    const written = session.atomically(() => {
      session.append(message("after"));
      session.log(note("after"));
      return "written";
    });
    assert.equal(written, "written");
    assert.deepEqual(session.records(), [message("before"), message("after")]);
    assert.deepEqual([...session.events()], [note("before"), note("after")]);
    assert.ok(session.audit.verify().ok);
  });

  add("a run has a unique number, also after a killed run", ({ store }) => {
    const session = store.create(ABOUT);
    assert.deepEqual([session.lastRun(), runId(session)], [undefined, `${session.id}.1`]);
    session.log({ ...note("begun"), run: runId(session), seq: 1 });
    assert.deepEqual([session.lastRun(), runId(session)], [`${session.id}.1`, `${session.id}.2`]);
    session.log({ ...note("begun"), run: runId(session), seq: 1 });
    session.append(turn("done"));
    assert.equal(runId(session), `${session.id}.3`);
    const fork = store.fork(session.id);
    assert.deepEqual([fork.lastRun(), runId(fork)], [undefined, `${fork.id}.2`]);
  });

  add("a call is returned with its verdict and its end", ({ store }) => {
    const session = store.create(ABOUT);
    const call = "c1";
    const events = [
      event({ type: "call.proposed", call, tool: "shell", args: { command: "ls" } }),
      event({
        type: "call.decided",
        call,
        decision: "allow",
        contained: true,
        rules: [],
        runs: true,
        by: "policy",
      }),
      event({ type: "call.ended", call, kind: "ok", cause: null, text: "a.txt", full: null, ms: 3.5 }),
      event({
        type: "call.ended",
        call: "unheard of",
        kind: "failed",
        cause: "program",
        text: "",
        full: "o1",
        ms: 0,
      }),
    ];
    for (const one of events) session.log(one);
    assert.deepEqual([...session.events()], events);
  });

  add("many events can be read while more are added", ({ store }) => {
    const session = store.create(ABOUT);
    for (let at = 0; at < 1203; at += 1) session.log(note(String(at)));
    const read = session.events()[Symbol.iterator]();
    read.next();
    session.log(note("last"));
    const texts = [...session.events()].map((one) => (one.type === "notice" ? one.text : ""));
    assert.deepEqual(texts.slice(498, 503), ["498", "499", "500", "501", "502"]);
    assert.deepEqual([texts.length, texts.at(-1)], [1204, "last"]);
  });

  add("a message keeps its thinking and its calls", ({ store }) => {
    const session = store.create(ABOUT);
    const said: Message = {
      role: "assistant",
      text: "",
      thinking: "so",
      calls: [{ id: "c1", name: "edit", args: { deep: [{ "a b": null }, 1.5, true] } }],
    };
    session.append({ kind: "message", message: said });
    assert.deepEqual(session.records(), [{ kind: "message", message: said }]);
  });
}

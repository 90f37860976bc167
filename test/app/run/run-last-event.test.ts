import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import test from "node:test";
import { failedRun, sinkOf, type WaitingSink, waitingSink } from "../../../src/app/run/event-sink.ts";
import { LazyBox, readyEvent } from "../../../src/app/run/lazy-box.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import type { AgentEvent, EventBody } from "../../../src/core/events.ts";
import type { OwnedBox } from "../../../src/core/ports.ts";
import type { Session } from "../../../src/core/session.ts";
import { AuditTrail } from "../../../src/sessions/audit-trail.ts";
import { openStore } from "../../../src/sessions/session-store.ts";
import { ABOUT } from "../../contract/store-words.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { runFinished } from "../../fixtures/events.ts";

const STARTED: EventBody = {
  type: "run.started",
  task: "t",
  session: "s",
  resumed: false,
  workspace: "/w",
  mode: "workspace-write",
  provider: "scripted",
  model: "m",
};

const FINISHED = runFinished();

interface Told {
  readonly sink: WaitingSink;
  readonly shown: readonly AgentEvent[];
  readonly audited: readonly AgentEvent[];
  readonly logged: readonly AgentEvent[];
}

/** What takes nothing more; it may become so in mid-run. */
interface Full {
  audit?: boolean;
  session?: boolean;
}

const NO_SPACE = new HarnessError(EXIT.failed, "no space is left on the disk", "df -h");

function telling(full: Full = {}): Told {
  const [shown, audited, logged]: [AgentEvent[], AgentEvent[], AgentEvent[]] = [[], [], []];
  const session = {
    log: (event: AgentEvent) => {
      if (full.session === true) throw NO_SPACE;
      logged.push(event);
    },
    atomically: (work: () => void) => work(),
  } as unknown as Session;
  const audit = (event: AgentEvent): void => {
    if (full.audit === true) throw NO_SPACE;
    audited.push(event);
  };
  const sink = waitingSink(sinkOf(session, "r", audit, (event) => shown.push(event)));
  return { sink, shown, audited, logged };
}

/** Every list of events ends with the one end. */
function endsOnce({ shown, audited, logged }: Told, first: readonly string[]): void {
  for (const events of [shown, audited, logged]) {
    assert.deepEqual(
      events.map(({ type }) => type),
      [...first, "run.finished"],
    );
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, at) => at + 1),
    );
  }
}

interface Slow {
  readonly box: LazyBox;
  readonly ready: () => void;
  readonly removed: () => boolean;
}

/** Its start does not care that it was cancelled: it had passed its last look at the signal. */
function slowBox(sink: WaitingSink): Slow {
  const start = Promise.withResolvers<OwnedBox>();
  const state = { removed: false };
  const opened = {
    gone: new Promise<string>(() => undefined),
    [Symbol.asyncDispose]: () => {
      state.removed = true;
      return Promise.resolve();
    },
  } as unknown as OwnedBox;
  const box = new LazyBox(
    () => start.promise,
    (ms, ready) => sink.emit(readyEvent(ms, ready)),
  );
  return { box, ready: () => start.resolve(opened), removed: () => state.removed };
}

/** Each is one step of a run that ends while its box starts. */
const STEPS = ["start", "ready", "finish", "dispose"] as const;
type Step = (typeof STEPS)[number];

function* orders(left: readonly Step[]): Generator<readonly Step[]> {
  if (left.length === 0) yield [];
  for (const step of left)
    for (const rest of orders(left.filter((each) => each !== step))) yield [step, ...rest];
}

const MADE = [...orders(STEPS)].filter((steps) => steps.indexOf("finish") < steps.indexOf("dispose"));

for (const turns of [0, 1])
  test(`a box that is ready after the run has ended is not reported, ${turns} turns between the steps`, async () => {
    for (const steps of MADE) {
      const told = telling();
      const slow = slowBox(told.sink);
      const ends: PromiseLike<void>[] = [];
      const does: Readonly<Record<Step, () => void>> = {
        start: () => void slow.box.box().catch(() => undefined),
        ready: slow.ready,
        finish: () => told.sink.emit(FINISHED),
        dispose: () => ends.push(slow.box[Symbol.asyncDispose]()),
      };
      told.sink.begin([STARTED]);
      for (const step of steps) {
        does[step]();
        for (let count = 0; count < turns; count += 1) await turn();
      }
      await Promise.all(ends);
      await turn();
      const early = told.shown.some(({ type }) => type === "box.ready") ? ["box.ready"] : [];
      endsOnce(told, ["run.started", ...early]);
      const begun = steps.indexOf("start") < steps.indexOf("dispose");
      if (begun) assert.ok(slow.removed(), steps.join());
    }
  });

test("no event follows the end of a run, not even from a subagent", () => {
  const told = telling();
  const child = told.sink.forChild();
  told.sink.begin([STARTED]);
  child({ type: "notice", text: "n" });
  told.sink.emit(FINISHED);
  child({ type: "notice", text: "late" });
  told.sink.forChild()({ type: "notice", text: "late" });
  told.sink.emit({ type: "rolled_back", record_count: 0 });
  told.sink.emit(FINISHED);
  endsOnce(told, ["run.started", "notice"]);
});

const given = { limits: { turns: 2, calls: 3 }, session: { id: "s" } } as unknown as Parameters<
  typeof failedRun
>[1];

test("a failure in a started run becomes its end, with its exit code and the remedy", () => {
  for (const [thrown, code, status, reason] of [
    [
      new HarnessError(EXIT.sandbox, "no box", "harness doctor"),
      6,
      "sandbox",
      /no box; next: harness doctor/,
    ],
    [new HarnessError(EXIT.usage, "a bad file"), 2, "failed", /a bad file/],
    [new Error("a defect"), 1, "failed", /a defect/],
    [new SuppressedError(new Error("later"), new HarnessError(EXIT.model, "first")), 5, "model", /first/],
  ] as const) {
    const told = telling();
    told.sink.begin([STARTED]);
    const finished = failedRun(thrown, given, { sink: told.sink });
    assert.deepEqual([finished.exit_code, finished.status, finished.changes], [code, status, null]);
    assert.deepEqual([finished.verified, finished.grounded], [null, null], "set in every end");
    assert.match(finished.reason, reason);
    endsOnce(told, ["run.started"]);
  }
});

test("a run that has not started gets no end, and one that has ended gets no second one", () => {
  const told = telling();
  const failure = new HarnessError(EXIT.sandbox, "the box cannot be removed");
  assert.throws(() => failedRun(failure, given, { sink: told.sink }), failure);
  told.sink.begin([STARTED]);
  told.sink.emit(FINISHED);
  assert.equal(failedRun(failure, given, { sink: told.sink, finished: FINISHED }).exit_code, 6);
  endsOnce(told, ["run.started"]);
});

for (const what of ["audit", "session"] as const)
  test(`an end for which the ${what} has no space is shown once, with the reason`, () => {
    const full: Full = {};
    const told = telling(full);
    told.sink.begin([STARTED]);
    full[what] = true;
    assert.throws(() => told.sink.emit(FINISHED), NO_SPACE);
    const finished = failedRun(NO_SPACE, given, { sink: told.sink });
    told.sink.emit(FINISHED);
    assert.deepEqual(
      told.shown.map(({ type }) => type),
      ["run.started", "run.finished"],
    );
    assert.deepEqual(told.shown.at(-1), { ...finished, run: "r", seq: told.shown.at(-1)?.seq });
    assert.deepEqual([finished.exit_code, finished.status], [EXIT.failed, "failed"]);
    assert.match(finished.reason, /no space is left on the disk; next: df -h/);
  });

test("a run whose start cannot be recorded has not started, and shows no end", () => {
  const told = telling({ audit: true });
  assert.throws(() => told.sink.begin([STARTED, { type: "notice", text: "n" }]), NO_SPACE);
  assert.throws(() => failedRun(NO_SPACE, given, { sink: told.sink }), NO_SPACE);
  assert.deepEqual(told.shown, []);
});

const proposed = (call: string): EventBody => ({ type: "call.proposed", call, tool: "bash", args: {} });

test("a run that fails during calls ends each started call before its own end", () => {
  const told = telling();
  told.sink.begin([STARTED]);
  const child = told.sink.forChild();
  for (const call of ["c1", "c2"]) told.sink.emit(proposed(call));
  child(proposed("c1"));
  const ended = { type: "call.ended", kind: "ok", cause: null, text: "", full: null, ms: 1 } as const;
  told.sink.emit({ ...ended, call: "c1" });
  failedRun(new Error("a defect"), given, { sink: told.sink });
  endsOnce(told, [
    "run.started",
    "call.proposed",
    "call.proposed",
    "call.proposed",
    "call.ended",
    "call.ended",
    "call.ended",
  ]);
  const ends = told.shown.filter((event) => event.type === "call.ended").slice(1);
  assert.deepEqual(
    ends.map(({ agent, call, kind }) => [agent, call, kind]),
    [
      [undefined, "c2", "cancelled"],
      ["a1", "c1", "cancelled"],
    ],
  );
});

test("an event that cannot be stored leaves nothing in the database that its audit has, and the next line says so", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  const full: Full = {};
  const log = (event: AgentEvent): void => {
    if (full.session === true) throw NO_SPACE;
    session.log(event);
  };
  const trail = new AuditTrail(session.audit, { settings: {}, versions: {} });
  const sink = sinkOf(
    { ...session, log },
    "r",
    (event) => trail.take(event),
    () => undefined,
  );
  sink.emit({ type: "notice", text: "first" });
  full.session = true;
  assert.throws(() => sink.emit({ type: "notice", text: "lost" }), NO_SPACE);
  const between = session.audit.verify();
  assert.equal(between.ok, true);
  assert.match(between.notes.join("\n"), /its last lines \(1\) are unknown to the database/);
  full.session = false;
  sink.emit({ type: "notice", text: "after" });
  const after = session.audit.verify();
  assert.equal(after.ok, true);
  assert.match(after.notes.join("\n"), /continues after a kill or a failed write/);
  const texts = [...session.events()].map((event) => (event.type === "notice" ? event.text : event.type));
  assert.deepEqual(texts, ["first", "after"]);
});

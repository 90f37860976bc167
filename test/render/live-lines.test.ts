import assert from "node:assert/strict";
import test from "node:test";
import type { EventBody } from "../../src/core/events.ts";
import { RunLines } from "../../src/render/tty/run-lines.ts";
import { fakeClock, fakeTerminal } from "../fakes/terminal.ts";
import { EVERY_EVENT } from "../fixtures/events.ts";

function watched(columns: number | undefined, answerIsSeen = false) {
  const terminal = fakeTerminal(columns);
  const { clock, pass, running } = fakeClock();
  const lines = new RunLines(terminal.stream, { quiet: false, answerIsSeen, clock });
  let seq = 0;
  const take = (body: EventBody, agent?: string): void =>
    lines.take({ ...body, run: "r1", seq: seq++, ...(agent === undefined ? {} : { agent }) });
  const line = (): string => {
    pass(0);
    return terminal.seen().at(-1) ?? "";
  };
  /** Without what stands on the right. */
  const live = (): string => line().replace(/ {2,}turn .*$/, "");
  take(EVERY_EVENT["run.started"]);
  return { terminal, lines, take, pass, running, live, line };
}

const proposed = (call: string, command: string): EventBody => ({
  type: "call.proposed",
  call,
  tool: "bash",
  args: { command },
});
const runs = (call: string): EventBody => ({ ...EVERY_EVENT["call.decided"], call });
const ended = (call: string): EventBody => ({ ...EVERY_EVENT["call.ended"], call });

test("a terminal always shows what the run waits for, and for how long", () => {
  const { take, pass, live, terminal } = watched(80);
  take(EVERY_EVENT["turn.started"]);
  assert.equal(live(), "waiting for qwen3:8b");
  pass(12_400);
  assert.equal(live(), "waiting for qwen3:8b 12 s, 1,380 tokens to read");
  take(EVERY_EVENT.thinking);
  assert.equal(live(), "qwen3:8b: thinking 12 s");
  take(EVERY_EVENT.text);
  assert.equal(live(), "qwen3:8b: answering 12 s");
  take(EVERY_EVENT["model.waiting"]);
  assert.equal(live(), "retrying qwen3:8b in 2 s");
  pass(4000);
  assert.equal(live(), "waiting for qwen3:8b 2 s, 1,380 tokens to read");
  take(EVERY_EVENT["model.finished"]);
  assert.equal(live(), "");
  take(proposed("c1", "npm test"));
  take(runs("c1"));
  pass(40_000);
  assert.equal(live(), "running npm test 40 s");
  take(proposed("c2", "make"));
  take(runs("c2"));
  pass(85_000);
  assert.equal(live(), "running make (and 1 more) 1 min 25 s");
  take(ended("c2"));
  assert.equal(live(), "running npm test 2 min 5 s");
  take({ ...EVERY_EVENT.compaction, status: "started", after: null });
  pass(3000);
  assert.equal(live(), "summarising older turns 3 s");
  take(EVERY_EVENT.compaction);
  take(ended("c1"));
  assert.deepEqual(terminal.seen(), [
    "qwen3:8b (ollama) · workspace-write · /code/shop · s1",
    "~ rate limited; retrying in 2.0 s (attempt 2)",
    "I look.",
    "✗ bash make  exit 1  contained  1.2 s",
    "≡ older turns summarised: about 12,000 -> 4,000 tokens",
    "✗ bash npm test  exit 1  contained  1.2 s",
    `${" ".repeat(58)}turn 1 · 912 tokens`,
  ]);
});

const RIGHT = [
  [140, "turn 3 of 40 · 1.5k tokens · cost 0.045"],
  [80, "turn 3 of 40 · 1.5k tokens"],
  [48, "turn 3 of 40"],
  [30, "turn 3/40"],
  [21, ""],
] as const;

test("the run's progress is shown on the right, as detailed as fits", () => {
  for (const [columns, told] of RIGHT) {
    const { take, pass, line } = watched(columns);
    take({ ...EVERY_EVENT["run.started"], max_turns: 40 });
    for (const [turn, tokens] of [
      [1, 500],
      [2, 976],
    ] as const) {
      take({ ...EVERY_EVENT["turn.started"], turn });
      const usage = {
        requests: 1,
        prompt_tokens: tokens,
        completion_tokens: 12,
        cached_tokens: 0,
        cost: 0.0225,
      };
      take({ ...EVERY_EVENT["model.finished"], usage });
    }
    take({ ...EVERY_EVENT["turn.started"], turn: 3 });
    pass(2000);
    assert.ok(line().endsWith(told), `${columns}: ${line()}`);
    assert.equal(line().includes("turn"), told !== "");
    assert.ok(line().length < columns);
  }
});

test("something that is over in a moment is not shown, and the line is redrawn only by time", () => {
  const { take, pass, terminal } = watched(80);
  take({ ...EVERY_EVENT["turn.started"], turn: 1 });
  const drawn = (): number => terminal.written().split("\r\u001B[2K").length - 1;
  pass(500);
  const before = drawn();
  for (let piece = 0; piece < 1000; piece += 1) take(EVERY_EVENT.text);
  take(proposed("c1", "true"));
  take(runs("c1"));
  assert.equal(drawn(), before, "events alone cause no drawing");
  take({ ...ended("c1"), kind: "ok", cause: null } as EventBody);
  assert.equal(drawn(), before + 1);
  assert.equal(terminal.written().includes("running true"), false);
});

test("a model that is silent for a minute may be stuck; any sign of it cancels that", () => {
  const { take, pass, live } = watched(80);
  take(EVERY_EVENT["turn.started"]);
  pass(59_000);
  assert.equal(live(), "waiting for qwen3:8b 59 s, 1,380 tokens to read");
  pass(13_000);
  assert.equal(live(), "waiting for qwen3:8b 1 min 12 s, no sign of life for 1 min 12 s - stuck?");
  take(EVERY_EVENT.thinking);
  assert.equal(live(), "qwen3:8b: thinking 1 min 12 s");
});

test("a subagent's model is named as waited for while its call runs", () => {
  const { take, pass, live } = watched(80);
  take({ type: "call.proposed", call: "t1", tool: "task", args: { prompt: "find x" } });
  take(runs("t1"));
  take(EVERY_EVENT["turn.started"], "t1");
  pass(2000);
  assert.equal(live(), "waiting for qwen3:8b 2 s, 1,380 tokens to read");
  take({ ...EVERY_EVENT["model.finished"], text: "" }, "t1");
  assert.equal(live(), "running task find x 2 s");
});

test("the live line stays within the width", () => {
  const { take, pass, live } = watched(24);
  take(EVERY_EVENT["turn.started"]);
  pass(90_000);
  assert.equal(live(), "waiting for… s - stuck?");
});

test("the live line disappears while the answer is displayed elsewhere", () => {
  const { take, pass, live, terminal } = watched(80, true);
  take(EVERY_EVENT["turn.started"]);
  pass(5000);
  assert.equal(live(), "waiting for qwen3:8b 5 s, 1,380 tokens to read");
  take(EVERY_EVENT.text);
  assert.equal(live(), "");
  pass(5000);
  take(EVERY_EVENT["model.finished"]);
  assert.deepEqual(terminal.seen(), [""]);
});

test("nothing is written while a person is asked; it is written after the answer", () => {
  const { lines, take, pass, live, terminal } = watched(80);
  take(proposed("c1", "npm test"));
  take(runs("c1"));
  pass(2000);
  const first = lines.pause();
  const second = lines.pause();
  const before = terminal.written();
  take(proposed("c2", "make"));
  take(ended("c1"));
  pass(2000);
  first();
  assert.equal(terminal.written(), before);
  assert.equal(live(), "");
  second();
  assert.deepEqual(terminal.seen().slice(1), ["✗ bash npm test  exit 1  contained  1.2 s", ""]);
  take(runs("c2"));
  pass(2000);
  assert.equal(live(), "running make 2 s");
});

test("the end leaves a clean terminal and no timer", () => {
  for (const finish of ["event", "call"] as const) {
    const { lines, take, pass, running, live } = watched(80);
    take(EVERY_EVENT["turn.started"]);
    pass(2000);
    assert.equal(running(), true);
    if (finish === "event") take(EVERY_EVENT["run.finished"]);
    else lines.end();
    assert.deepEqual([live(), running()], ["", false]);
  }
});

test("a terminal that cannot rewrite a line has no live line", () => {
  process.env["TERM"] = "dumb";
  const { take, pass, terminal } = watched(80);
  process.env["TERM"] = "xterm";
  take(EVERY_EVENT["turn.started"]);
  pass(90_000);
  assert.equal(terminal.written().includes("waiting"), false);
});

test("a pipe has no live line", () => {
  const { take, pass, running, terminal } = watched(undefined);
  take(EVERY_EVENT["turn.started"]);
  pass(90_000);
  assert.equal(running(), false);
  assert.equal(terminal.written(), "qwen3:8b (ollama) · workspace-write · /code/shop · s1\n");
});

const asks = (tokens: number): EventBody => ({ type: "turn.started", turn: 1, record_count: 2, tokens });
const replied = (prompt: number | null, completion: number | null, calls = 0): EventBody => ({
  ...EVERY_EVENT["model.finished"],
  text: "",
  calls,
  usage: {
    requests: 1,
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: null,
    cost: null,
  },
});

test("a later request shows the new tokens to read, and an estimate from the last rate", () => {
  const { take, pass, live } = watched(140);
  take(asks(1400));
  pass(10_000);
  assert.equal(live(), "waiting for qwen3:8b 10 s, 1,400 tokens to read");
  pass(30_000);
  take(EVERY_EVENT.text);
  pass(2000);
  take(replied(1400, 100));
  // 35 tokens a second were read; the first 1,500 of these are kept by the server.
  take(asks(2200));
  pass(5000);
  assert.equal(live(), "waiting for qwen3:8b 5 s, 700 tokens to read, about 20 s at the last rate");
  pass(26_000);
  assert.equal(live(), "waiting for qwen3:8b 31 s, 700 tokens to read");
  take(EVERY_EVENT.compaction);
  take(asks(1750));
  pass(2000);
  assert.equal(live(), "waiting for qwen3:8b 2 s, 1,750 tokens to read, about 50 s at the last rate");
});

test("a call that is written silently gives a reading rate only where reading took the time", () => {
  for (const [completion, told] of [
    [20, ", about 40 s at the last rate"],
    [900, ""],
    [null, ", about 40 s at the last rate"],
  ] as const) {
    const { take, pass, live } = watched(140);
    take(asks(1400));
    pass(40_000);
    take(replied(1400, completion, 1));
    take(EVERY_EVENT["rolled_back"]);
    take(asks(1400));
    pass(2000);
    assert.equal(live(), `waiting for qwen3:8b 2 s, 1,400 tokens to read${told}`);
  }
});

test("a model that reads a long prompt is not called stuck before its expected time", () => {
  const { take, pass, live } = watched(140);
  take(asks(1000));
  pass(20_000);
  take(EVERY_EVENT.text);
  take(replied(1000, 10));
  take(asks(5010));
  pass(90_000);
  assert.equal(
    live(),
    "waiting for qwen3:8b 1 min 30 s, 4,000 tokens to read, about 1 min 20 s at the last rate",
  );
  pass(31_000);
  assert.match(live(), /no sign of life for 2 min 1 s - stuck\?$/);
});

test("while a reply streams, its tokens per second are estimated from the server's last count", () => {
  const { take, pass, live } = watched(140);
  const stream = (pieces: number): void => {
    for (let piece = 0; piece < pieces; piece += 1) {
      pass(100);
      take({ type: "text", text: "abcd " });
    }
  };
  take(asks(1400));
  pass(3000);
  stream(10);
  assert.equal(live(), "qwen3:8b: answering 4 s");
  stream(31);
  assert.equal(live(), "qwen3:8b: answering 7 s, 13 tokens a second");
  take(replied(1400, 41));
  take(asks(1500));
  stream(41);
  assert.equal(live(), "qwen3:8b: answering 4 s, 10 tokens a second", "one token for each piece");
});

test("without an estimate nothing is said about reading", () => {
  const { take, pass, live } = watched(140);
  take({ type: "turn.started", turn: 1, record_count: 2 });
  pass(5000);
  assert.equal(live(), "waiting for qwen3:8b 5 s");
});

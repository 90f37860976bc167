import assert from "node:assert/strict";
import { Writable } from "node:stream";
import test from "node:test";
import type { VetReport } from "../../src/core/behaviour.ts";
import { inertJson } from "../../src/core/text/visible.ts";
import { batchPage } from "../../src/render/batch-page.ts";
import type { BatchEnd } from "../../src/render/batch-results.ts";
import { evalPage } from "../../src/render/eval-page.ts";
import type { EvalResult } from "../../src/render/eval-results.ts";
import { RunJson } from "../../src/render/event-json.ts";
import { batchTable } from "../../src/render/lists/batch-lines.ts";
import { comparedTable, evalTable } from "../../src/render/lists/eval-lines.ts";
import { modelTable } from "../../src/render/lists/models-lines.ts";
import { reportText } from "../../src/render/lists/report-text.ts";
import { hitLines } from "../../src/render/lists/search-lines.ts";
import { sessionTable } from "../../src/render/lists/sessions-lines.ts";
import { trustText } from "../../src/render/lists/trust-lines.ts";
import { appliedText, undoText } from "../../src/render/lists/undo-lines.ts";
import { vetText } from "../../src/render/lists/vet-lines.ts";
import { Output } from "../../src/render/tty/output.ts";
import { vetPage } from "../../src/render/vet-page.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";
import { activeBesideEmoji, filled, HOSTILE_TEXTS, HUGE } from "../fixtures/hostile.ts";
import { fakeTerminal } from "../fakes/terminal.ts";
import { callOf, finished, reportFrom, said, started } from "../fixtures/report.ts";

const ALL: readonly string[] = [...HOSTILE_TEXTS, ...HUGE];

/** Words of our own, in which nobody else's can stand. */
const FIXED: ReadonlySet<string> = new Set(
  "type kind status decision by mode trigger when said for tier verdict intent cause from purpose outcome did event source ecosystem at weight phase how".split(
    " ",
  ),
);

const EVAL: EvalResult = {
  task: "t",
  language: "l",
  nth: 1,
  exit_code: 1,
  status: "failed",
  reason: "r",
  check_exit_code: 1,
  check_output: "c",
  solved: false,
  false_done: false,
  refusals: 0,
  attempts: 1,
  turns: 1,
  tool_calls: 1,
  prompt_tokens: 1,
  completion_tokens: 1,
  duration_ms: 1,
};

const USAGE = { requests: 1, prompt_tokens: 1, completion_tokens: 1, cached_tokens: null, cost: null };

const BATCH: BatchEnd = {
  rows: 2,
  usage: USAGE,
  spent: undefined,
  signal: undefined,
  ended: [
    {
      row: 1,
      id: "a",
      target: "t",
      status: "failed",
      exit_code: 1,
      reason: "r",
      cause: "check",
      session: "s",
      usage: USAGE,
      attempts: 0,
      duration_ms: 1,
    },
  ],
};

const VET: VetReport = {
  verdict: "hostile",
  exit_code: 40,
  repository: { name: "n", kind: "git", commit: "c", files: 1, bytes: 1 },
  findings: [{ rule: "r", weight: "hostile", text: "t", path: "p", by: ["b", "c"] }],
  steps: [],
  granted: ["g"],
  runtime: "r",
  unseen: ["u"],
  took_ms: 1,
  own_ms: 1,
};

const REPORT = reportFrom([
  started("t"),
  said("s"),
  ...callOf({ call: "c", tool: "bash", args: { command: "x" }, ended: { kind: "failed", text: "t" } }),
  finished({ answer: "a", reason: "r", changes: { added: ["a"], modified: [], deleted: [], ignored: 0 } }),
]);

const ENDED = {
  session: "s",
  done: true,
  left: ["l"],
  refused: [{ path: "p", reason: "ours" }],
  merged: ["m"],
};
const OPS = [{ path: "p", from: null, to: { kind: "file" } }];
/** Reasons of it are words of our own. */
const UNDONE: ReadonlySet<string> = new Set([...FIXED, "reason", "session"]);

const TRUST = {
  project: "p",
  hash: "0123456789ab",
  damage: "d",
  gone: [],
  look_alikes: ["l"],
  items: [
    {
      what: "hooks",
      files: ["f"],
      standing: "changed" as const,
      declined: false,
      does: [{ text: "t", loosens: true }],
      problem: "p",
      waits: true,
      diff: ["+d"],
    },
  ],
};

const SESSION = {
  id: "s",
  workspace: "w",
  mode: "workspace-write" as const,
  model: "m",
  provider: "p",
  title: "t",
  started: 0,
  changed: 0,
  status: "done" as const,
  messages: 1,
};

const HIT = {
  path: "p",
  start: 1,
  end: 2,
  symbol: "s",
  score: 1,
  preview: "a preview",
  why: "w",
};

const MODEL = {
  configured: true,
  present: false,
  kind: "chat" as const,
  assumed: {
    context: 1,
    tools: true,
    thinking: true,
    cache: false,
    calls: "native" as const,
    origin: { context: "table", tools: "table", thinking: "guess", cache: "guess", calls: "probe" } as const,
  },
};

const tagsOf = (page: string): readonly string[] => page.match(/<[^>]*>/g) ?? [];

const PAGES: Readonly<Record<string, (text: string) => string>> = {
  batch: (text) => batchPage(text, filled(BATCH, text, FIXED)),
  eval: (text) => evalPage(text, [filled(EVAL, text, FIXED)]),
  vet: (text) => vetPage(filled(VET, text, FIXED)),
};

for (const [name, page] of Object.entries(PAGES))
  test(`the page of a ${name} has the tags of its own alone, and nothing that acts or hides`, () => {
    const tags = tagsOf(page("plain"));
    assert.ok(tags.length > 20);
    for (const text of ALL) {
      const shown = page(text);
      // A text of several lines may be shown in as many rows, with the same tags.
      const kinds = new Set(tagsOf(page(text.replaceAll(/[^\n]/g, "p"))));
      assert.deepEqual(
        tagsOf(shown).filter((tag) => !kinds.has(tag)),
        [],
        text.slice(0, 60),
      );
      assert.equal(activeBesideEmoji(shown), undefined, text.slice(0, 60));
      assert.ok(shown.isWellFormed());
    }
  });

const LISTS: Readonly<Record<string, (text: string, stream: Output) => string>> = {
  report: (text, stream) => reportText(filled(REPORT, text, FIXED), stream),
  batch: (text, stream) => batchTable(filled(BATCH, text, FIXED), stream),
  eval: (text, stream) => evalTable([filled(EVAL, text, FIXED)], stream),
  "eval beside another": (text) =>
    comparedTable([filled(EVAL, text, FIXED)], [{ ...filled(EVAL, text, FIXED), solved: true }]),
  trust: (text, stream) =>
    trustText(filled(TRUST, text, new Set([...FIXED, "what", "standing", "hash"])), stream),
  undo: (text, stream) =>
    undoText({ ...filled({ ...ENDED, ops: OPS }, text, UNDONE), redo: false, dryRun: false }, stream),
  apply: (text, stream) =>
    appliedText(
      { ...filled({ ...ENDED, ops: OPS, blocked: ["p"] }, text, UNDONE), whole: false, handoff: [] },
      stream,
    ),
  sessions: (text, stream) => sessionTable([filled(SESSION, text, FIXED)], { now: 1000, all: true }, stream),
  search: (text, stream) => hitLines([filled(HIT, text, FIXED)], stream),
  models: (text, stream) => modelTable([{ ...MODEL, model: text }], stream),
  vet: (text, stream) => vetText(filled(VET, text, FIXED), stream),
};

for (const [name, list] of Object.entries(LISTS))
  for (const columns of [40, undefined])
    test(`what is written of a ${name} has nothing that acts or hides, ${columns ?? "no"} columns`, () => {
      for (const text of [...HOSTILE_TEXTS, HUGE[0] ?? ""]) {
        const chunks: Buffer[] = [];
        const sink = new Writable({
          write: (chunk: Buffer, _encoding, done) => {
            chunks.push(Buffer.from(chunk));
            done();
          },
        });
        const stream = new Output(
          Object.assign(sink, { columns, isTTY: columns !== undefined }) as unknown as NodeJS.WriteStream,
        );
        stream.write(list(text, stream));
        const bytes = Buffer.concat(chunks);
        assert.ok(bytes.length > 0);
        assert.equal(activeBesideEmoji(bytes.toString(), true), undefined, text.slice(0, 60));
      }
    });

test("lines of JSON hold it escaped, and a reader has the very text again", () => {
  const fixed = new Set([...FIXED, "call", "run"]);
  for (const text of HOSTILE_TEXTS) {
    const events = stamped(Object.values(filled(EVERY_EVENT, text, fixed)));
    const json = new RunJson((each) => each);
    const lines = (events.map((event) => json.take(event)).join("") + json.end()).split("\n").slice(0, -1);
    for (const line of lines) {
      assert.equal(activeBesideEmoji(line), undefined, text.slice(0, 60));
      assert.doesNotMatch(line, /[\u2028\u2029]/);
    }
    assert.equal((JSON.parse(inertJson({ text })) as { text: string }).text, text);
    const tasks = lines.map((line) => JSON.parse(line) as { type: string; task?: string });
    assert.equal(tasks.find(({ type }) => type === "run.started")?.task, text);
  }
});

const rows = (text: string): number => text.trimEnd().split("\n").length;

test("a name of several lines is one row of a list, and makes up no other", () => {
  const { stream } = fakeTerminal();
  const name = "a\nqwen3:8b  32,768 server";
  assert.equal(
    rows(
      modelTable(
        [
          { ...MODEL, model: name },
          { ...MODEL, configured: false, kind: "other", model: name },
        ],
        stream,
      ),
    ),
    3,
  );
  assert.equal(
    rows(sessionTable([{ ...SESSION, title: name, model: name }], { now: 1000, all: true }, stream)),
    2,
  );
});

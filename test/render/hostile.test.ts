// also slow: longer texts
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Writable } from "node:stream";
import test from "node:test";
import { inertJson } from "../../src/core/visible.ts";
import { RunJson } from "../../src/render/renderers.ts";
import { batchPage, comparisonPage, evalPage, vetPage } from "../../src/render/result-pages.ts";
import { sessionTable } from "../../src/render/sessions-lines.ts";
import { modelTable } from "../../src/render/setup-lines.ts";
import { Output } from "../../src/render/tty/output.ts";
import { fakeTerminal } from "../fakes/terminal.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";
import { BATCH, COMPARED, EVAL, FIXED, LISTS, MODEL, SESSION, VET } from "../fixtures/hostile-lists.ts";
import { activeBesideEmoji, filled, HOSTILE_TEXTS, HUGE } from "../fixtures/hostile.ts";

const ROOT = path.join(import.meta.dirname, "../..");

const ALL: readonly string[] = [...HOSTILE_TEXTS, ...HUGE];

const tagsOf = (page: string): readonly string[] => page.match(/<[^>]*>/g) ?? [];

const PAGES: Readonly<Record<string, (text: string) => string>> = {
  batch: (text) => batchPage(text, filled(BATCH, text, FIXED)),
  eval: (text) => evalPage(text, [filled(EVAL, text, FIXED)]),
  vet: (text) => vetPage(filled(VET, text, FIXED)),
  "vet beside another": (text) => comparisonPage(filled(COMPARED, text, FIXED)),
};

for (const [name, page] of Object.entries(PAGES))
  test(`the page of a ${name} contains only its own tags, and nothing active or hidden`, () => {
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

for (const [name, list] of Object.entries(LISTS))
  for (const columns of [40, undefined])
    test(`the text output of a ${name} contains nothing active or hidden, ${columns ?? "no"} columns`, () => {
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

test("JSON lines escape hostile text, and a reader gets back the exact text", () => {
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

/** The files that write lists for a person. */
const LIST_FILES = /^(?:batch-results|report-text|.*-lines)\.ts$/;
/** Exports that are exempt: parts of lists, values without untrusted text, data, patches for programs, and parts of a run's summary. */
const PARTS: ReadonlySet<string> = new Set(
  [
    "ageOf markedLines NOT_PROVEN undonePaths appliedPaths",
    "CAUSES rowResultForm summaryOf batchTotals evalResultForm evalKey evalTotals groupedResults comparedTasks",
    "pipedPatch pipedText gitPatchOf WEIGHTS WEIGHT_HEADS",
    "runSummary movedRows commitRows splitNext",
  ].flatMap((names) => names.split(" ")),
);

test("every list for people is tested with hostile text", () => {
  const held = readFileSync(path.join(ROOT, "test/fixtures/hostile-lists.ts"), "utf8");
  const folder = path.join(ROOT, "src/render");
  const lists = readdirSync(folder).filter((file) => LIST_FILES.test(file));
  const names = [...lists, "tty/run-summary.ts"].flatMap((file) => {
    const text = readFileSync(path.join(folder, file), "utf8");
    return [...text.matchAll(/^export (?:function|const) (\w+)/gm)].map(([, name = ""]) => name);
  });
  assert.ok(names.length > 30);
  assert.deepEqual(
    names.filter((name) => !PARTS.has(name) && !new RegExp(`\\b${name}\\b`).test(held)),
    [],
  );
});

/** A text of several lines may span rows here: messages, answers, output of a check. */
for (const [name, list] of Object.entries(LISTS))
  test(`a text of two lines does not fake a row of a ${name}`, () => {
    for (const columns of [40, 200]) {
      const shown = list("first\nqwzx second", fakeTerminal(columns).stream);
      for (const row of shown.split("\n")) assert.doesNotMatch(row, /^qwzx/, shown);
    }
  });

const rows = (text: string): number => text.trimEnd().split("\n").length;

test("a name of several lines is one row of a list, and does not fake another", () => {
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

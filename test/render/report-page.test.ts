// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import type { EventBody } from "../../src/core/events.ts";
import { REPORT_MARK, reportPage } from "../../src/render/html-page.ts";
import { markup } from "../../src/render/html-parts.ts";
import type { Report } from "../../src/render/report-form.ts";
import { activeBesideEmoji, HOSTILE_TEXTS, HUGE } from "../fixtures/hostile.ts";
import { anyText, fc, part } from "../fixtures/property.ts";
import { callOf, finished, INFO, reportFrom, said, SOUND, started, USUAL } from "../fixtures/report.ts";

/** A report with this text in every place for untrusted text. */
function saying(bad: string): Report {
  const rules = [{ id: bad, reason: bad, span: [0, bad.length] as const }];
  const judged = { commands: [bad, bad], reads: [bad], writes: [bad], hosts: [bad] };
  const bodies: readonly EventBody[] = [
    { ...started(bad), workspace: bad, provider: bad, model: bad },
    { type: "turn.started", turn: 1, record_count: 1 },
    { type: "notice", text: bad },
    { type: "plan", steps: [{ text: bad, status: "doing" }] },
    { type: "model.waiting", reason: bad, ms: 1, attempt: 1 },
    { type: "model.failed", kind: "unreachable", reason: bad, remedy: bad },
    said(bad),
    ...callOf({
      call: bad,
      tool: bad,
      args: { [bad]: bad, deep: [{ [bad]: bad }], command: bad },
      decided: { rules: [...rules, { id: bad, reason: bad, span: [0, 1] }], judged },
      ended: { kind: "failed", cause: "network", text: bad, full: bad },
    }),
    finished({
      answer: bad,
      status: "budget",
      reason: bad,
      changes: { added: [bad], modified: [bad], deleted: [bad], ignored: 0 },
      denials: [{ call: bad, tool: bad, target: bad, decision: "deny", rule: bad, reason: bad }],
    }),
  ];
  const session = { ...INFO, id: bad, title: bad, workspace: bad, provider: bad, model: bad };
  const audit = { ...SOUND, broken: { line: 3, why: bad }, notes: [bad] };
  return reportFrom(bodies, { session, audit, diff: `--- ${bad}\n+${bad}\n-${bad}\n@@ ${bad}` });
}

/** The tags of a page. */
const tagsOf = (page: string): readonly string[] => page.match(/<[^>]*>/g) ?? [];

/** A harmless text with the same length and lines, which are of the same kinds in a diff. */
const harmless = (bad: string): string => bad.replaceAll(/[^\n+@-]/g, "p");

test("untrusted texts add no tag, no attribute and nothing invisible", () => {
  for (const bad of [...HOSTILE_TEXTS, ...HUGE]) {
    const page = reportPage(saying(bad));
    assert.deepEqual(tagsOf(page), tagsOf(reportPage(saying(harmless(bad)))), bad.slice(0, 60));
    assert.equal(activeBesideEmoji(page), undefined);
    assert.ok(page.isWellFormed());
  }
});

test("whatever a text consists of, the page's tags stay the same", () => {
  const piece = fc.oneof(
    fc.constantFrom("<", ">", '"', "'", "&", "`", "=", "/", "--", "script", "style", "\n", "\r", "\0", "]]>"),
    anyText({ maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), (pieces) => {
      // Blank texts are not shown, and trailing blanks are removed.
      const bad = `x${pieces.join("")}x`;
      assert.deepEqual(tagsOf(reportPage(saying(bad))), tagsOf(reportPage(saying(harmless(bad)))));
    }),
    { numRuns: part(300) },
  );
});

const CHARACTERS: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#96;": "`",
  "&amp;": "&",
};

test("plain text is displayed unchanged by a browser", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => {
      const escaped = markup`${text}`.toString();
      assert.equal(
        escaped.replaceAll(/&[^;]*;/g, (entity) => CHARACTERS[entity] ?? "?"),
        text,
      );
    }),
  );
});

test("the page's policy forbids loading, running and sending, and the page contains nothing that would", () => {
  const page = reportPage(reportFrom(USUAL));
  assert.match(
    page,
    /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">/,
  );
  assert.ok(page.slice(0, 2048).includes(REPORT_MARK));
  assert.doesNotMatch(page, /<(?:script|link|img|iframe|object|embed|form|base|a|svg|video|audio|input)\b/i);
  assert.doesNotMatch(page, /\s(?:on\w+|src|href|action|srcset|formaction)=/i);
  assert.doesNotMatch(/<style>([^<]*)<\/style>/.exec(page)?.[1] ?? "", /url\(|@import|expression\(/i);
});

test("refusals come first, and each verdict is worded as well as coloured", () => {
  const page = reportPage(reportFrom(USUAL));
  const at = (text: string): number => page.indexOf(text);
  assert.ok(at("Refused (1)") > 0 && at("Refused (1)") < at(">Task<"));
  for (const [tone, words] of [
    ["good", "allowed"],
    ["held", "asked: ran, contained"],
    ["bad", "denied"],
    ["bad", "timed out, exit 124"],
  ] as const)
    assert.ok(page.includes(`<span class="pill ${tone}">${words}</span>`), words);
});

test("a long text is shortened in the page, with a note where to find all of it", () => {
  const text = `head${"x".repeat(1_000_000)}tail`;
  const page = reportPage(
    reportFrom([started("x"), ...callOf({ call: "c1", args: { command: "a" }, ended: { text } })]),
  );
  assert.ok(page.length < 60_000);
  assert.match(page, /head[^]*characters are left out; harness report --json has them[^]*tail/);
});

test("without changes, refusals and limits there are no sections for them", () => {
  const bodies = [started("x"), finished({ changes: null, tool_calls: 0 })];
  assert.doesNotMatch(reportPage(reportFrom(bodies, { diff: null })), /Refused|Limits|Hosts|>Files|>Changes/);
});

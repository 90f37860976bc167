import type { MatchedRule } from "../../core/decision.ts";
import type { Question } from "../../core/ports.ts";
import { type Cell, cellsOf, fitted, rowsOf, widthOfStream, wrapped } from "./columns.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

/** Starts every line of the quoted text, so none of them can look like our own, however the terminal wraps it. */
const GUTTER = "  │ ";
const INDENT = "    ";
/** Most columns of the quoted part beside a rule's reason. */
const QUOTED = 60;

type Shown = Pick<Question, "tool" | "text" | "mode" | "writes" | "decision" | "grants">;

/** A question to a person: everything that would run, why it is asked, and what it can do. */
export function approvalText(question: Shown, stream: Output): string {
  const prompt = `${styleText("bold", "run it?", { stream })} [y/N] `;
  return [...questionRows(question, stream), prompt].join("\n");
}

/** The same rows without the question. */
export function questionRows(question: Shown, stream: Output): readonly string[] {
  const { tool, mode, writes, decision, grants = [] } = question;
  const what = writes ? "wants to write" : "wants to run";
  return [
    `${styleText("bold", visibleLine(tool), { stream })} ${what}  (${mode})`,
    ...textRows(question, stream),
    ...decision.rules.flatMap((rule) => ruleRows(rule, question, stream)),
    ...wrapped(decision.contained ? CONTAINED : NOT_CONTAINED, widthOfStream(stream)),
    ...(grants.length === 0 ? [] : wrapped(grantedWith(grants), widthOfStream(stream))),
  ];
}

const CONTAINED =
  "It is contained: no network that was not granted, and it changes only the workspace and temporary files.";
const NOT_CONTAINED =
  "It is not contained: it may read a secret, reach the network, or change what lies elsewhere.";

/** A box cannot reach what it was not granted, whatever is answered. */
const grantedWith = (grants: readonly string[]): string =>
  visibleLine(
    `It cannot work without a network: /grant ${grants.join(" ")} in the chat, --allow-domain ${grants.join(",")} for a run.`,
  );

function textRows({ text, decision, writes }: Shown, stream: Output): readonly string[] {
  const width = widthOfStream(stream) - GUTTER.length;
  const inside = insideOf(text, decision.rules);
  const rows: string[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    const cells = cellsOf(line);
    const from = start;
    let at = 0;
    for (const row of rowsOf(cells, width)) {
      const marks = marksBelow(row, (index) => inside(from + at + index));
      const shown = row.map((cell) => cell.shown).join("");
      rows.push(`${GUTTER}${writes ? diffLine(shown, line, stream) : shown}`);
      if (marks !== "") rows.push(`${GUTTER}${styleText("yellow", marks, { stream })}`);
      at += row.length;
    }
    start += line.length + 1;
  }
  return rows;
}

function marksBelow(row: readonly Cell[], inside: (index: number) => boolean): string {
  return row
    .map(({ columns }, index) => (inside(index) ? "^" : " ").repeat(columns))
    .join("")
    .trimEnd();
}

/** Whether a rule is about a part of the text; marking all of it would say nothing. */
function insideOf(text: string, rules: readonly MatchedRule[]): (at: number) => boolean {
  const spans = rules.map(({ span }) => span).filter(([from, to]) => from > 0 || to < text.trimEnd().length);
  return (at) => spans.some(([from, to]) => at >= from && at < to);
}

function ruleRows({ id, reason, span }: MatchedRule, { text }: Shown, stream: Output): readonly string[] {
  const width = widthOfStream(stream);
  const part = text.slice(...span);
  const quoted =
    part === "" || part.trim() === text.trim()
      ? ""
      : `: ${fitted(part.trim(), Math.min(QUOTED, width - INDENT.length))}`;
  return wrapped(`· ${visibleLine(reason)} (${visibleLine(id)})${quoted}`, width - INDENT.length).map(
    (line, at) => (at === 0 ? line : `${INDENT}${line}`),
  );
}

/** Text to be written may be a diff. */
function diffLine(shown: string, line: string, stream: Output): string {
  if (line.startsWith("+")) return styleText("green", shown, { stream });
  return line.startsWith("-") ? styleText("red", shown, { stream }) : shown;
}

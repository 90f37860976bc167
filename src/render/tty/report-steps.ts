import { formatDuration } from "../../core/bounds.ts";
import { type CallReport, callsOf, type RunReport, type Step } from "../report/report.ts";
import { counted, endWords, verdictWords } from "../report/words.ts";
import { targetOf } from "./call-target.ts";
import { fitted } from "./fitted.ts";
import type { Page } from "./report-page.ts";

/** Of one run; the rest is counted. */
const MOST_STEPS = 200;

/** What happened, turn by turn, a line for each step. */
export function stepsText(run: RunReport, page: Page): void {
  let left = MOST_STEPS;
  for (const { turn, at, steps } of run.turns) {
    if (left <= 0) break;
    const told = steps.filter((step) => step.kind !== "said" || step.text.trim() !== "");
    page.line(
      page.dim(`  ${turn === 0 ? "before turn 1" : `turn ${turn}`}  +${formatDuration(at - run.started)}`),
    );
    for (const step of told.slice(0, left)) stepText(step, page);
    left -= told.length;
  }
  const more = run.turns.reduce((sum, { steps }) => sum + steps.length, 0) - MOST_STEPS;
  if (more > 0) page.line(`  … and more: ${counted(callsOf(run).length, "call")} in all; --json has them`);
}

function stepText(step: Step, page: Page): void {
  const indent = step.agent === null ? "    " : "      ";
  switch (step.kind) {
    case "call":
      page.line(callText(step, page, indent));
      return;
    case "remark":
      page.line(`${indent}${page.dim(fitted(step.text, page.width - indent.length))}`);
      return;
    case "said":
      page.line(`${indent}${fitted(step.text.trim(), page.width - indent.length)}`);
  }
}

function callText(call: CallReport, page: Page, indent: string): string {
  const { end } = call;
  const denied = end?.kind === "denied";
  const time = denied || end === null ? "" : `  ${formatDuration(end.ms)}`;
  const words = denied ? [verdictWords(call)] : [verdictWords(call), endWords(call)];
  const room =
    page.width - indent.length - words.reduce((sum, { text }) => sum + text.length + 2, time.length);
  const what = fitted(`${call.tool} ${targetOf(call.args)}`.trim(), Math.max(24, room));
  return `${indent}${what}  ${words.map((word) => page.said(word)).join("  ")}${page.dim(time)}`;
}

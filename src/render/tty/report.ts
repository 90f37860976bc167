import { countsOf, UNSEEN } from "../../core/changes.ts";
import { formatDuration } from "../../core/bounds.ts";
import { visibleLine } from "../../core/visible.ts";
import type { Report, RunReport } from "../report/report.ts";
import { auditWords, besideWords, counted, momentWords, statusWords, tokenWords } from "../report/words.ts";
import { fitted } from "./fitted.ts";
import { Page } from "./report-page.ts";
import { stepsText } from "./report-steps.ts";
import { type Output, styleText } from "./output.ts";

const MOST_PATHS = 50;
const MOST_ANSWER = 40;

/** A session for a person at a terminal; what has no room is counted, and stands in the JSON. */
export function reportText(report: Report, stream: Output): string {
  const page = new Page(stream);
  const { session, runs } = report;
  page.line(styleText("bold", fitted(session.title, page.width), { stream }));
  page.line(
    page.dim(`${session.id} · ${visibleLine(session.workspace)} · begun ${momentWords(session.started)}`),
  );
  for (const [at, run] of runs.entries()) runText(run, `run ${at + 1} of ${runs.length}`, page);
  if (runs.length === 0) page.line("no run of it was kept");
  page.heading("audit");
  page.line(page.said(auditWords(report)));
  return page.text;
}

function runText(run: RunReport, name: string, page: Page): void {
  page.heading(`${name}: asked`);
  page.wrapped(run.task.slice(0, 4000));
  page.line(page.dim(`  ${momentWords(run.started)} · ${run.mode} · ${visibleLine(run.model)}`));
  refusalsText(run, page);
  page.heading("what happened");
  stepsText(run, page);
  changesText(run, page);
  besideText(run, page);
  listText("limits hit", run.limits, page);
  listText(
    "hosts tried",
    run.hosts.map(({ host, ran }) => `${host}: the call was ${ran ? "run" : "refused"}`),
    page,
  );
  endText(run, page);
}

function refusalsText({ refusals }: RunReport, page: Page): void {
  if (refusals.length === 0) return;
  page.heading(`refused (${refusals.length})`);
  for (const { tool, target, decision, rule, reason } of refusals) {
    page.line(`  ${fitted(`${tool}  ${target}`, page.width - 2)}`);
    const who = decision === "deny" ? "denied" : "asked, and nobody let it run";
    page.line(`    ${page.said({ tone: "bad", text: `${who}: ${reason} (${rule})` })}`);
  }
}

function changesText({ end }: RunReport, page: Page): void {
  if (end === null) return;
  const { changes } = end;
  if (changes === null)
    return listText("files", end.tool_calls === 0 ? [] : ["not known: the box was lost"], page);
  const { added, modified, deleted, ignored, incomplete } = changes;
  const counts = countsOf(changes);
  const paths = [
    ...added.map((path) => `+ ${path}`),
    ...modified.map((path) => `~ ${path}`),
    ...deleted.map((path) => `- ${path}`),
  ];
  const more = counts.added + counts.modified + counts.deleted - Math.min(paths.length, MOST_PATHS);
  listText(
    "files",
    [
      ...paths.slice(0, MOST_PATHS),
      ...(more > 0 ? [`and ${more} more: --json`] : []),
      ...(ignored > 0 ? [`and ${counted(ignored, "ignored file")}`] : []),
      ...(incomplete === true ? [UNSEEN] : []),
    ],
    page,
  );
}

const firstOf = (lines: readonly string[]): readonly string[] =>
  lines.length > MOST_PATHS
    ? [...lines.slice(0, MOST_PATHS), `and ${lines.length - MOST_PATHS} more: --json`]
    : lines;

/** What was done beside the calls, and what to look at. */
function besideText({ end }: RunReport, page: Page): void {
  if (end === null) return;
  const { moved, commits, looks } = besideWords(end);
  listText("made in the box and moved out of the workspace", firstOf(moved), page);
  listText("committed for commands of the box", firstOf(commits), page);
  listText("to look at before anything is run there", firstOf(looks), page);
}

function listText(name: string, items: readonly string[], page: Page): void {
  if (items.length === 0) return;
  page.heading(name);
  for (const item of items) page.line(`  ${fitted(item, page.width - 2)}`);
}

function endText(run: RunReport, page: Page): void {
  const { end } = run;
  page.heading("came to");
  const reason = end === null || end.reason === "" ? "" : `: ${end.reason}`;
  const exit = end === null ? "" : ` (exit ${end.exit_code})`;
  page.line(`  ${page.said({ ...statusWords(run), text: `${statusWords(run).text}${exit}${reason}` })}`);
  if (end === null) return;
  const cost = end.usage.cost === null ? "cost unknown" : `cost ${end.usage.cost}`;
  const words = [
    counted(end.turns, "turn"),
    counted(end.tool_calls, "call"),
    formatDuration(run.last - run.started),
  ];
  page.line(page.dim(`  ${[...words, tokenWords(end.usage), cost].join(", ")}`));
  if (end.answer === null) return;
  const lines = end.answer.trim().split("\n");
  page.wrapped(lines.slice(0, MOST_ANSWER).join("\n"));
  if (lines.length > MOST_ANSWER) page.line(`  … ${lines.length - MOST_ANSWER} more lines`);
}

import { countsOf, UNSEEN } from "../core/ports.ts";
import type { AuditVerdict } from "../core/session.ts";
import { visibleLine } from "../core/visible.ts";
import { formatDuration, plural } from "../core/wording.ts";
import {
  auditWords,
  besideWords,
  type CallReport,
  callsOf,
  costWords,
  endWords,
  type FromBundle,
  momentWords,
  networkWords,
  packageWords,
  peakWords,
  planWords,
  type Report,
  requestRows,
  type RunReport,
  statusWords,
  type ReportStep,
  tokenWords,
  type Tone,
  verdictWords,
  type Worded,
} from "./report-form.ts";
import { targetOf } from "./tty/call-lines.ts";
import { fitToWidth, mark, widthOfStream, wrapped } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

const MAX_PATHS = 50;
const MAX_ANSWER = 40;

/** A session as text for a terminal. What does not fit is counted; the JSON report has all of it. */
export function reportText(report: Report, stream: Output): string {
  const page = new Page(stream);
  const { session, runs } = report;
  page.line(styleText("bold", fitToWidth(session.title, page.width), { stream }));
  page.line(
    page.facts([
      visibleLine(session.id),
      visibleLine(session.workspace),
      `started ${momentWords(session.started)}`,
    ]),
  );
  for (const [at, run] of runs.entries()) runText(run, `run ${at + 1} of ${runs.length}`, page);
  if (runs.length === 0) page.line("no run of this session was recorded");
  page.heading("audit");
  page.line(page.coloured(auditWords(report)));
  if (report.bundle !== undefined) bundleText(report.bundle, page);
  return page.text;
}

function bundleText({ file, sha256, not_held }: FromBundle, page: Page): void {
  page.heading("bundle");
  page.wrapped(`read from ${visibleLine(file)}`, "");
  page.line(`SHA-256 ${sha256}`);
  listText("not in it", not_held, page);
}

function runText(run: RunReport, name: string, page: Page): void {
  page.heading(`${name}: task`);
  page.wrapped(run.task.slice(0, 4000));
  page.line(page.facts([`  ${momentWords(run.started)}`, run.mode, visibleLine(run.model)]));
  refusalsText(run, page);
  const { steps } = planWords(run.plan);
  listText(
    "plan",
    steps.map(({ text, word }) => `${word.text}: ${text}`),
    page,
  );
  page.heading("what happened");
  stepsText(run, page);
  listText("requests", requestRows(run.requests), page);
  changesText(run, page);
  besideText(run, page);
  listText("limits reached", run.limits, page);
  listText(
    "hosts tried",
    run.hosts.map(({ host, ran }) => `${host}: the call ${ran ? "ran" : "was refused"}`),
    page,
  );
  const { reached, refused } = networkWords(run.network);
  listText("network: reached", firstOf(reached), page);
  listText("network: refused", firstOf(refused), page);
  if (run.end !== null) listText("installed", firstOf(packageWords(run.end)), page);
  endText(run, page);
}

function refusalsText({ refusals }: RunReport, page: Page): void {
  if (refusals.length === 0) return;
  page.heading(`refused (${refusals.length})`);
  for (const { tool, target, decision, rule, reason } of refusals) {
    page.line(`  ${fitToWidth(`${tool}  ${target}`, page.width - 2)}`);
    const who = decision === "deny" ? "denied" : "asked, and refused";
    page.line(`    ${page.coloured({ tone: "bad", text: `${who}: ${reason} (${rule})` })}`);
  }
}

function changesText({ end }: RunReport, page: Page): void {
  if (end === null) return;
  const { changes } = end;
  if (changes === null)
    return listText("files", end.tool_calls === 0 ? [] : ["unknown: the box was lost"], page);
  const { added, modified, deleted, ignored, incomplete } = changes;
  const counts = countsOf(changes);
  const paths = [
    ...added.map((path) => `${page.mark("added")} ${path}`),
    ...modified.map((path) => `${page.mark("modified")} ${path}`),
    ...deleted.map((path) => `${page.mark("deleted")} ${path}`),
  ];
  const more = counts.added + counts.modified + counts.deleted - Math.min(paths.length, MAX_PATHS);
  listText(
    "files",
    [
      ...paths.slice(0, MAX_PATHS),
      ...(more > 0 ? [`and ${more} more: --json`] : []),
      ...(ignored > 0 ? [`and ${plural(ignored, "ignored file")}`] : []),
      ...(incomplete === true ? [UNSEEN] : []),
    ],
    page,
  );
}

const firstOf = (lines: readonly string[]): readonly string[] =>
  lines.length > MAX_PATHS
    ? [...lines.slice(0, MAX_PATHS), `and ${lines.length - MAX_PATHS} more: --json`]
    : lines;

/** Changes beside the calls, and the paths to check. */
function besideText({ end }: RunReport, page: Page): void {
  if (end === null) return;
  const { moved, commits, looks, recorded } = besideWords(end);
  listText("made in the box and moved out of the workspace", firstOf(moved), page);
  listText("committed for commands in the box", firstOf(commits), page);
  listText("check these before you run anything there", firstOf(looks), page);
  listText("recorded: rules and hosts that would have been enough", recorded, page);
}

function listText(name: string, items: readonly string[], page: Page): void {
  if (items.length === 0) return;
  page.heading(name);
  for (const item of items) page.line(`  ${fitToWidth(item, page.width - 2)}`);
}

function endText(run: RunReport, page: Page): void {
  const { end } = run;
  page.heading("result");
  const reason = end === null || end.reason === "" ? "" : `: ${end.reason}`;
  const exit = end === null ? "" : ` (exit ${end.exit_code})`;
  page.line(`  ${page.coloured({ ...statusWords(run), text: `${statusWords(run).text}${exit}${reason}` })}`);
  if (end === null) return;
  const { cost } = end.usage;
  const words = [
    plural(end.turns, "turn"),
    plural(end.tool_calls, "call"),
    formatDuration(run.last - run.started),
  ];
  page.line(
    page.dim(`  ${[...words, tokenWords(end.usage), `cost ${costWords(cost, run.price)}`].join(", ")}`),
  );
  if (end.answer === null) return;
  const lines = end.answer.trim().split("\n");
  page.wrapped(lines.slice(0, MAX_ANSWER).join("\n"));
  if (lines.length > MAX_ANSWER) page.line(`  … ${lines.length - MAX_ANSWER} more lines`);
}

/** Most lines of one run; the rest is counted. */
const MAX_STEPS = 200;

/** What happened, turn by turn, one line per step. */
function stepsText(run: RunReport, page: Page): void {
  let left = MAX_STEPS;
  let all = 0;
  for (const { turn, at, steps } of run.turns) {
    const visibleSteps = steps.filter((step) => step.kind !== "said" || step.text.trim() !== "");
    all += visibleSteps.length;
    if (left <= 0) continue;
    page.line(
      page.dim(`  ${turn === 0 ? "before turn 1" : `turn ${turn}`}  +${formatDuration(at - run.started)}`),
    );
    for (const step of visibleSteps.slice(0, left)) stepText(step, page);
    left -= visibleSteps.length;
  }
  if (all > MAX_STEPS)
    page.line(`  … and more: ${plural(callsOf(run).length, "call")} in all; --json has them`);
}

function stepText(step: ReportStep, page: Page): void {
  const indent = step.agent === null ? "    " : "      ";
  switch (step.kind) {
    case "call":
      page.line(callText(step, page, indent));
      return;
    case "remark":
      page.line(`${indent}${page.dim(fitToWidth(step.text, page.width - indent.length))}`);
      return;
    case "said":
      page.line(`${indent}${fitToWidth(step.text.trim(), page.width - indent.length)}`);
  }
}

function callText(call: CallReport, page: Page, indent: string): string {
  const { end } = call;
  const denied = end?.kind === "denied";
  const time = denied || end === null ? "" : `  ${formatDuration(end.ms)}${peakWords(end)}`;
  const words = denied ? [verdictWords(call)] : [verdictWords(call), endWords(call)];
  const room =
    page.width - indent.length - words.reduce((sum, { text }) => sum + text.length + 2, time.length);
  const what = fitToWidth(`${call.tool} ${targetOf(call.args)}`.trim(), Math.max(24, room));
  return `${indent}${what}  ${words.map((word) => page.coloured(word)).join("  ")}${page.dim(time)}`;
}

const TONE_COLOURS = { good: "green", bad: "red", held: "yellow", plain: "dim" } as const satisfies Record<
  Tone,
  unknown
>;

/** Collects lines. Text added through `wrapped`, `dim` or `coloured` cannot act on a terminal. */
class Page {
  readonly #stream: Output;
  readonly width: number;
  text = "";

  constructor(stream: Output) {
    this.#stream = stream;
    this.width = widthOfStream(stream);
  }

  line(text: string): void {
    this.text += `${text}\n`;
  }

  heading(text: string): void {
    this.line(`\n${styleText("bold", text, { stream: this.#stream })}`);
  }

  wrapped(text: string, indent = "  "): void {
    for (const part of text.split("\n"))
      for (const line of wrapped(part, this.width - indent.length)) this.line(indent + line);
  }

  dim(text: string): string {
    return styleText("dim", visibleLine(text), { stream: this.#stream });
  }

  mark(name: Parameters<typeof mark>[0]): string {
    return mark(name, this.#stream);
  }

  /** Several facts in one line. */
  facts(texts: readonly string[]): string {
    return this.dim(texts.join(this.mark("between")));
  }

  coloured({ tone, text }: Worded): string {
    return styleText(TONE_COLOURS[tone], visibleLine(text), { stream: this.#stream });
  }
}

/** What even a valid chain does not prove. */
export const NOT_PROVEN = [
  "that nobody who can write both the audit and the session database made a new chain of different lines",
  "that no entire session was removed",
  "that the file was on the disk before a power failure: nothing waits for that",
] as const;

export function auditVerdict(verdict: AuditVerdict, stream: Output): string {
  const { file, lines, broken, notes } = verdict;
  const count = plural(lines, "line");
  const head =
    broken === null
      ? styleText("green", `unbroken: ${count}, each as it was written`, { stream })
      : styleText("red", `broken at line ${broken.line} of ${lines}: ${visibleLine(broken.why)}`, { stream });
  const rows = [
    head,
    visibleLine(file),
    ...notes.map((note) => `note: ${visibleLine(note)}`),
    styleText("dim", "not proven:", { stream }),
    ...NOT_PROVEN.map((each) => styleText("dim", `  ${each}`, { stream })),
  ];
  return `${rows.join("\n")}\n`;
}

interface CallEnd {
  readonly kind: string;
  readonly exit_code: number | null;
}

interface ShownRerun {
  readonly command: string;
  readonly outcome: "same" | "differs" | "not run";
  readonly then: CallEnd | null;
  readonly now: CallEnd | null;
  readonly difference: {
    readonly line: number;
    readonly then: string | undefined;
    readonly now: string | undefined;
  } | null;
  readonly reason: string;
}

const OUTCOME_COLOURS = { same: "green", differs: "red", "not run": "yellow" } as const;

/** A command that was run again, and how its result differs. */
export function rerunLines(rerun: ShownRerun, stream: Output): string {
  const { command, outcome, then, now, difference, reason } = rerun;
  const width = widthOfStream(stream);
  const lines = [
    `${styleText(OUTCOME_COLOURS[outcome], outcome.padEnd(8), { stream })} ${fitToWidth(command, width - 9)}`,
  ];
  if (reason !== "") lines.push(`    ${visibleLine(reason)}`);
  if (outcome === "differs" && callEndWords(then) !== callEndWords(now))
    lines.push(`    then ${callEndWords(then)}, now ${callEndWords(now)}`);
  if (difference !== null)
    lines.push(
      `    line ${difference.line} then: ${fitToWidth(difference.then ?? "(no such line)", width - 24)}`,
      `    line ${difference.line} now:  ${fitToWidth(difference.now ?? "(no such line)", width - 24)}`,
    );
  return `${lines.join("\n")}\n`;
}

interface ShownEnd {
  readonly request: number;
  readonly outcome: "same" | "differs";
  readonly then: { readonly status: string; readonly exit_code: number } | null;
  readonly now: { readonly status: string; readonly exit_code: number } | null;
  readonly reason: string;
}

/** How the end of a replayed request compares with its original. */
export function replayedEnd({ request, outcome, then, now, reason }: ShownEnd, stream: Output): string {
  const describe = (end: ShownEnd["then"]): string =>
    end === null ? "no end" : `${end.status} (${end.exit_code})`;
  const ends = outcome === "same" ? describe(now) : `then ${describe(then)}, now ${describe(now)}`;
  const why = reason === "" ? "" : `    ${visibleLine(reason)}\n`;
  return `${styleText(OUTCOME_COLOURS[outcome], outcome.padEnd(8), { stream })} end of request ${request}: ${ends}\n${why}`;
}

const callEndWords = (ended: CallEnd | null): string =>
  ended === null ? "nothing" : `${ended.kind}${ended.exit_code === null ? "" : ` (exit ${ended.exit_code})`}`;

interface ShownManifest {
  readonly harness: string | null;
  readonly policy: string | null;
  readonly model: { readonly provider: string; readonly name: string; readonly digest: string | null };
  readonly parts: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

/** The facts about a bundle, shown before its session. */
export function bundleLines(manifest: ShownManifest, sha256: string, stream: Output): string {
  const { harness, policy, model, parts } = manifest;
  const by = model.digest === null ? "" : ` (${visibleLine(model.digest)})`;
  const lines = [
    styleText("bold", `bundle ${sha256}`, { stream }),
    `harness ${visibleLine(harness ?? "unknown")}, policy ${visibleLine(policy ?? "unknown")}, model ${visibleLine(model.provider)} ${visibleLine(model.name)}${by}`,
    ...parts.map(
      ({ name, bytes, sha256: hash }) =>
        `  ${visibleLine(name)}  ${bytes} bytes  ${visibleLine(hash.slice(0, 12))}  unchanged`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

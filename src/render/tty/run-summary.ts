/** The end of a run in lines, and of each candidate when several are tried. */
import { isPlainEnding } from "../../core/errors.ts";
import type { AgentEvent, CandidateReport, Denial, RunStatus } from "../../core/events.ts";
import { countsOf, UNSEEN } from "../../core/ports.ts";
import { installedWords } from "../../core/run-record.ts";
import { visibleLine, visibleWhole } from "../../core/visible.ts";
import { formatDuration, plural } from "../../core/wording.ts";
import { costWords, countWords, recordedWords } from "../report-form.ts";
import { targetOf } from "./call-lines.ts";
import { fitToWidth, mark, widthOfStream, wrapped } from "./columns.ts";
import { type Clock, LiveStatus, seconds, type Status } from "./live-lines.ts";
import { type Output, styleText } from "./output.ts";
import { startedWords } from "./run-lines.ts";

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;

interface SummaryContext {
  /** Duration of the whole run. */
  readonly ms: number;
  /** Only refusals, and the outcome unless it is good and has nothing to tell. */
  readonly quiet: boolean;
  /**
   * Where the changes are. here: in the workspace. waiting: in a layer over it, until they are applied. kept: no
   * candidate was applied, and the candidates' sessions have the changes. gone: the workspace does not outlive the run,
   * so nothing more can be done in it.
   */
  readonly changes: "here" | "waiting" | "kept" | "gone";
  /** The user has chosen no model server and model, so the default ones may not exist. */
  readonly isUnchosen?: boolean;
}

const LABEL = 10;
const MAX_PATHS = 12;

/** The last lines of a run: what changed, what was refused, what it cost, how it ended, what to type next. */
export function runSummary(event: Finished, about: SummaryContext, stream: Output): string {
  const { ms, quiet, changes } = about;
  const width = widthOfStream(stream) - LABEL;
  const refused = event.denials.flatMap((denial) => refusedRows(denial, width));
  const { statement, next } = splitNext(event.reason);
  const status = statusRows({ ...event, reason: statement }, width, stream);
  const looks = handoffRows(event, { width, quiet, stream });
  const moved = movedRows(event);
  const tried = changes === "kept" ? candidateRows(event.attempts ?? [], width) : [];
  const commits = commitRows(event, width);
  const blocks: readonly (readonly [string, readonly string[]])[] = quiet
    ? [
        ["moved out", moved],
        ["look at", looks],
        ["refused", refused],
        ["tried", tried],
        ["status", event.exit_code === 0 && isPlainEnding(event.reason) ? [] : status],
        ["next", next === "" ? [] : [next]],
      ]
    : [
        ["changed", changedRows(event, width, stream)],
        ["moved out", moved],
        ["commits", commits],
        ["installed", installedRows(event, width)],
        ["look at", looks],
        ["refused", refused],
        ["tried", tried],
        ["recorded", recordedRows(event)],
        ["cost", costRows(event, ms).flatMap((row) => wrapped(row, width))],
        ["status", status],
        ["next", [...new Set([next, ...nextRows(event, about)])].flatMap((each) => wrapped(each, width))],
      ];
  const text = blocks.map(([label, rows]) => block(label, rows, stream)).join("");
  return text === "" ? "" : `\n${text}`;
}

const block = (label: string, rows: readonly string[], stream: Output): string =>
  rows
    .map((row, at) => {
      const head = at === 0 ? styleText("bold", label, { stream }) : "";
      return `${head}${" ".repeat(LABEL - (at === 0 ? label.length : 0))}${row}\n`;
    })
    .join("");

function changedRows({ changes, tool_calls }: Finished, width: number, stream: Output): readonly string[] {
  if (changes === null) return [tool_calls === 0 ? "nothing" : "unknown: the box was lost or never asked"];
  const { added, modified, deleted, ignored, incomplete } = changes;
  const paths = (
    [
      ["added", added],
      ["modified", modified],
      ["deleted", deleted],
    ] as const
  ).flatMap(([name, each]) => each.map((path) => `${mark(name, stream)} ${path}`));
  const counts = countsOf(changes);
  const all = counts.added + counts.modified + counts.deleted;
  const more = all - Math.min(paths.length, MAX_PATHS);
  return [
    ...wrapped(all === 0 ? "no file" : countsInWords(counts), width),
    ...paths.slice(0, MAX_PATHS).map((path) => fitToWidth(path, width)),
    ...(more > 0 ? [`${more} more: harness diff`] : []),
    ...(ignored > 0 ? [`and ${plural(ignored, "ignored file")}`] : []),
    ...(incomplete === true ? wrapped(UNSEEN, width) : []),
  ];
}

const countsInWords = (counts: ReturnType<typeof countsOf>): string =>
  Object.entries(counts)
    .flatMap(([word, count]) => (count === 0 ? [] : [`${count} ${word}`]))
    .join(", ");

/** Changed paths to check before anything is run there; quiet: only those that the host acts on by itself. */
function handoffRows(
  { handoff, handoff_left_out: left }: Finished,
  { width, quiet, stream }: { readonly width: number; readonly quiet: boolean; readonly stream: Output },
): readonly string[] {
  const listed = handoff.filter(({ tier }) => !quiet || tier === "dangerous");
  if (listed.length === 0) return [];
  const others = (left?.dangerous ?? 0) + (quiet ? 0 : (left?.look ?? 0));
  const more = listed.length + others - Math.min(listed.length, MAX_PATHS);
  return [
    ...wrapped("these before you run anything here:", width),
    ...listed
      .slice(0, MAX_PATHS)
      .map(({ path, tier, reason }) =>
        fitToWidth(
          `${mark(tier === "dangerous" ? "warning" : "look", stream)} ${visibleLine(path.toWellFormed())}: ${reason}`,
          width,
        ),
      ),
    ...(more > 0 ? [`${more} more: harness diff`] : []),
  ];
}

/** Shown only if something was installed. */
function installedRows({ installed }: Finished, width: number): readonly string[] {
  if (installed === undefined || installed.new === 0) return [];
  const { packages, new: fresh } = installed;
  const more = fresh - Math.min(packages.length, MAX_PATHS);
  return [
    ...wrapped(installedWords(installed), width),
    ...packages
      .slice(0, MAX_PATHS)
      .map(({ ecosystem, name, version }) =>
        fitToWidth(visibleLine(`${ecosystem} ${name} ${version}`), width),
      ),
    ...(more > 0 ? [`${more} more: harness report`] : []),
  ];
}

const MAX_MOVED = 50;

/**
 * Paths moved out because the host would act on them, each with the command that restores it; never cut, so it can be
 * typed.
 */
export function movedRows({
  quarantined = [],
  quarantined_total = 0,
}: Pick<Finished, "quarantined" | "quarantined_total">): readonly string[] {
  const more = quarantined_total - Math.min(quarantined.length, MAX_MOVED);
  return [
    ...quarantined.slice(0, MAX_MOVED).flatMap(({ from, to, take_back }) => {
      const name = visibleLine(from.toWellFormed());
      if (to === null) return [`${name}: removed, because it was not a file, folder or link`];
      return [name, ...(take_back === "" ? [] : [`  to restore it: ${visibleWhole(take_back)}`])];
    }),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}

/** Commits made for commands of the box; paths to check are listed with the others. */
export function commitRows(
  { commits = [], commits_total = 0, staged = [] }: Pick<Finished, "commits" | "commits_total" | "staged">,
  width: number,
): readonly string[] {
  const more = commits_total - Math.min(commits.length, MAX_PATHS);
  return [
    ...commits.slice(0, MAX_PATHS).map(({ hash, subject, files, protected: obeyed }) => {
      const holds = obeyed.length === 0 ? "" : `, ${obeyed.length} that the host obeys`;
      const line = `${hash.slice(0, 12)} ${plural(files, "file")}${holds}: ${subject}`;
      return fitToWidth(visibleLine(line.toWellFormed()), width);
    }),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(staged.length > 0 ? [`staged: ${plural(staged.length, "path")} that the host obeys`] : []),
  ];
}

/** The proposal of `--record`, and the command that tries it; never cut, so it can be typed. */
const recordedRows = ({ recorded }: Finished): readonly string[] =>
  recorded === undefined
    ? []
    : [...recordedWords(recorded), `harness policy test ${recorded.policy}`].map((row) => visibleWhole(row));

function refusedRows({ tool, target, decision, rule, reason }: Denial, width: number): readonly string[] {
  const who = decision === "deny" ? "denied" : "asked, and refused";
  return [
    fitToWidth(`${tool}  ${target}`, width),
    ...wrapped(`${who}: ${reason} (${rule})`, width - 2).map((line) => `  ${line}`),
  ];
}

function costRows({ turns, tool_calls, usage }: Finished, ms: number): readonly string[] {
  const { prompt_tokens, completion_tokens, cached_tokens, cost } = usage;
  const cached = cached_tokens === null ? "" : ` (${countWords(cached_tokens)} cached)`;
  const tokens =
    prompt_tokens === null && completion_tokens === null
      ? "tokens unknown"
      : `${countWords(prompt_tokens)} tokens in${cached}, ${countWords(completion_tokens)} out`;
  return [
    `${plural(turns, "turn")}, ${plural(tool_calls, "tool call")}, ${formatDuration(ms)}`,
    `${tokens}, cost ${costWords(cost, null)}`,
  ];
}

const STATUS_WORDS: Readonly<Record<RunStatus, string>> = {
  done: "done",
  failed: "failed",
  budget: "stopped at a limit",
  refused: "something the task needs was refused",
  model: "the model gave no answer",
  sandbox: "no box was available",
  parked: "parked: a call waits for your approval",
  interrupted: "interrupted",
};

/** Splits a reason into its statement and the next step; the latter is empty if there is none. */
export function splitNext(reason: string): { readonly statement: string; readonly next: string } {
  const at = reason.lastIndexOf(NEXT);
  return at < 0
    ? { statement: reason, next: "" }
    : { statement: reason.slice(0, at), next: visibleLine(reason.slice(at + NEXT.length)) };
}

const NEXT = "; next: ";

function statusRows(
  { status, exit_code, reason }: Finished,
  width: number,
  stream: Output,
): readonly string[] {
  const code = exit_code === 0 ? "" : ` (exit ${exit_code})`;
  const why = reason === "" ? "" : `: ${reason}`;
  const colour = exit_code === 0 ? "green" : status === "parked" ? "yellow" : "red";
  return wrapped(`${STATUS_WORDS[status]}${code}${why}`, width).map((line) =>
    styleText(colour, line, { stream }),
  );
}

const NEXT_COMMANDS = { here: "undo", waiting: "apply" } as const;

function nextRows(
  { status, session, changes }: Finished,
  { changes: where, isUnchosen = false }: SummaryContext,
): readonly string[] {
  const changed =
    changes !== null && changes.added.length + changes.modified.length + changes.deleted.length > 0;
  if (where === "kept") return keptRows(session);
  const first: Partial<Record<RunStatus, string>> = {
    parked: `harness approve ${session}`,
    sandbox: "harness doctor",
    model: isUnchosen ? "harness init" : "harness doctor",
  };
  return [
    first[status] ?? "",
    ...(changed && where !== "gone"
      ? [`harness diff ${session}`, `harness ${NEXT_COMMANDS[where]} ${session}`]
      : []),
    where === "gone" ? `harness run "…"` : `harness run --continue "…"`,
    `harness sessions show ${session}`,
  ].filter((next) => next !== "");
}

/** For the session of the first candidate that passed, or else of the last candidate. */
const keptRows = (session: string): readonly string[] => [
  `harness diff ${session}`,
  `harness apply ${session}`,
  `harness sessions show ${session}`,
];

type CandidateEnd = Pick<Finished, "status" | "exit_code" | "reason" | "session" | "turns" | "verified">;

interface DisplayOptions {
  readonly quiet: boolean;
  /** Number of candidates. */
  readonly count: number;
  readonly clock: Clock;
}

interface RunningCandidate {
  readonly since: number;
  readonly turn: number;
  readonly call: string;
}

/** Shows several candidates: a line for each that has ended and, on a terminal, the activity of the others. */
export class AttemptLines {
  readonly #stream: Output;
  readonly #options: DisplayOptions;
  readonly #live: LiveStatus;
  readonly #running = new Map<number, RunningCandidate>();
  #begun = false;

  constructor(stream: Output, showing: DisplayOptions) {
    this.#stream = stream;
    this.#options = showing;
    const status = (now: number) => this.#status(now);
    this.#live = new LiveStatus(stream, showing.clock, showing.quiet ? undefined : status);
  }

  take(event: AgentEvent): void {
    const { candidate, agent } = event;
    if (candidate === undefined || agent !== undefined) return;
    if (event.type === "run.started") this.#start(event, candidate);
    const going = this.#running.get(candidate);
    if (going === undefined) return;
    if (event.type === "turn.started") this.#running.set(candidate, { ...going, turn: event.turn, call: "" });
    if (event.type === "call.proposed")
      this.#running.set(candidate, { ...going, call: `${event.tool} ${targetOf(event.args)}` });
  }

  ended(candidate: number, green: boolean, ended: CandidateEnd): void {
    const { since = this.#options.clock.now() } = this.#running.get(candidate) ?? {};
    this.#running.delete(candidate);
    if (this.#options.quiet) return;
    const ms = this.#options.clock.now() - since;
    this.#write(this.#lineOf(candidate, { ...ended, green, ms }));
  }

  /** Leaves only finished lines on the terminal. */
  end(): void {
    this.#live.stop();
  }

  #start(event: Extract<AgentEvent, { readonly type: "run.started" }>, candidate: number): void {
    this.#running.set(candidate, { since: this.#options.clock.now(), turn: 0, call: "" });
    if (this.#begun || this.#options.quiet) return;
    this.#begun = true;
    const words = [`${this.#options.count} candidates`, ...startedWords(event)]
      .map(visibleLine)
      .join(mark("between", this.#stream));
    const rows = wrapped(words, widthOfStream(this.#stream));
    this.#write(rows.map((row) => styleText("dim", row, { stream: this.#stream })).join("\n"));
    this.#live.start();
  }

  #lineOf(candidate: number, ended: CandidateEnd & { readonly green: boolean; readonly ms: number }): string {
    const { green, status, turns, ms, session } = ended;
    const [colour, name] = green
      ? (["green", "done"] as const)
      : status === "interrupted"
        ? (["yellow", "stopped"] as const)
        : (["red", "failed"] as const);
    const marked = mark(name, this.#stream);
    const cost = `${plural(turns, "turn")}, ${formatDuration(ms)}`;
    const words = `${candidate} of ${this.#options.count}  ${session}  ${cost}  ${outcomeOf(ended, green)}`;
    const line = fitToWidth(words, widthOfStream(this.#stream) - marked.length - 1);
    return `${styleText(colour, marked, { stream: this.#stream })} ${line}`;
  }

  #write(text: string): void {
    this.#live.write(`${text}\n`);
  }

  #status(now: number): Status | undefined {
    if (this.#running.size === 0) return undefined;
    const each = [...this.#running].map(([nth, { since, turn, call }]) => {
      const doing = this.#running.size === 1 && call !== "" ? `: ${visibleLine(call)}` : "";
      return `${nth} of ${this.#options.count}, turn ${turn}${doing} (${seconds(now - since)})`;
    });
    return { text: each.join(" · "), alarming: false };
  }
}

/** In one line: the result of the check, or how the candidate ended. */
function outcomeOf({ status, exit_code, reason, verified }: CandidateEnd, green: boolean): string {
  const [first = ""] = reason.split("\n", 1);
  if (green) return verified ? `passed ${verified.command}` : "done, without a check";
  if (exit_code === 0)
    return verified ? `done, but failed ${verified.command}` : "done, but nothing was changed";
  return status === "interrupted" ? first : `exit ${exit_code}: ${first}`;
}

const MAX_REASON_LINES = 12;

/** Shown if no candidate was applied: each one with its session, its outcome, and the last lines of the reason. */
export function candidateRows(candidates: readonly CandidateReport[], width: number): readonly string[] {
  return candidates.flatMap(({ session, status, exit_code, reason, verified }, at) => {
    const check = verified === null ? "" : `, ${verified.command}: exit ${verified.exit_code}`;
    const head = fitToWidth(`${at + 1}  ${session}  ${status} (exit ${exit_code}${check})`, width);
    const lines = reason.split("\n").filter((line) => line.trim() !== "");
    return [
      head,
      ...lines.slice(-MAX_REASON_LINES).flatMap((line) => wrapped(line, width - 3).map((row) => `   ${row}`)),
    ];
  });
}

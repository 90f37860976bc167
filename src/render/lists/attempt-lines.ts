import type { AgentEvent, CandidateTold } from "../../core/events.ts";
import { visibleLine } from "../../core/visible.ts";
import { formatDuration, counted } from "../../core/wording.ts";
import { targetOf } from "../tty/call-lines.ts";
import { fitted, widthOfStream, wrapped } from "../tty/columns.ts";
import { mark } from "../tty/line-marks.ts";
import { LiveStatus, type Status, seconds } from "../tty/live-status.ts";
import { type Output, styleText } from "../tty/output.ts";
import type { Clock } from "../tty/paced-writer.ts";
import { startedWords } from "../tty/run-lines.ts";

type Ended = Pick<
  Extract<AgentEvent, { readonly type: "run.finished" }>,
  "status" | "exit_code" | "reason" | "session" | "turns" | "verified"
>;

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

  ended(candidate: number, green: boolean, ended: Ended): void {
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

  #lineOf(candidate: number, ended: Ended & { readonly green: boolean; readonly ms: number }): string {
    const { green, status, turns, ms, session } = ended;
    const [colour, name] = green
      ? (["green", "done"] as const)
      : status === "interrupted"
        ? (["yellow", "stopped"] as const)
        : (["red", "failed"] as const);
    const marked = mark(name, this.#stream);
    const cost = `${counted(turns, "turn")}, ${formatDuration(ms)}`;
    const words = `${candidate} of ${this.#options.count}  ${session}  ${cost}  ${outcomeOf(ended, green)}`;
    const line = fitted(words, widthOfStream(this.#stream) - marked.length - 1);
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
function outcomeOf({ status, exit_code, reason, verified }: Ended, green: boolean): string {
  const [first = ""] = reason.split("\n", 1);
  if (green) return verified ? `passed ${verified.command}` : "done, without a check";
  if (exit_code === 0)
    return verified ? `done, but failed ${verified.command}` : "done, but nothing was changed";
  return status === "interrupted" ? first : `exit ${exit_code}: ${first}`;
}

const MAX_REASON_LINES = 12;

/** Shown if no candidate was applied: each one with its session, its outcome, and the last lines of the reason. */
export function candidateRows(candidates: readonly CandidateTold[], width: number): readonly string[] {
  return candidates.flatMap(({ session, status, exit_code, reason, verified }, at) => {
    const check = verified === null ? "" : `, ${verified.command}: exit ${verified.exit_code}`;
    const head = fitted(`${at + 1}  ${session}  ${status} (exit ${exit_code}${check})`, width);
    const lines = reason.split("\n").filter((line) => line.trim() !== "");
    return [
      head,
      ...lines.slice(-MAX_REASON_LINES).flatMap((line) => wrapped(line, width - 3).map((row) => `   ${row}`)),
    ];
  });
}

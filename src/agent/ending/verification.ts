import type { Mode } from "../../core/decision.ts";
import type { Emit, EventBody } from "../../core/events.ts";
import type { Approver, Box, BoxRecovery, ExecRequest, ExecResult } from "../../core/ports.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import type { Checkpoints } from "../../core/session.ts";
import { type Hooks, NO_FACTS, type ToolResult } from "../../core/tool.ts";
import { visible } from "../../core/visible.ts";
import { plural, formatDuration } from "../../core/wording.ts";
import type { Judge } from "../action-judge.ts";
import type { Limits } from "../limits.ts";
import { excerpt } from "../context/prompt-text.ts";
import { endingOf, KEEP, plainShell, wordsOf } from "../../tools/shell-command.ts";
import { type TamperedCheck, tamperingIn, tamperingText, tamperingReason } from "./tampered-check.ts";
import { byContent, changesIn, isUntouched, withoutCaches } from "./run-changes.ts";

/** The command that proves a change. */
export interface Check {
  readonly command: string;
  /**
   * Who named the check: the user, whose word counts; the project, whose tests they are; or the record of a run, which
   * anybody may have written. Only the user's check is not judged by the policy.
   */
  readonly by: "user" | "project" | "record";
}

/** What a check needs of its run. */
export interface CheckContext {
  readonly mode: Mode;
  readonly judge: () => Promise<Judge>;
  readonly approver: Approver;
  readonly limits: Limits;
  readonly checkpoints: Checkpoints;
  readonly box: () => Promise<Box>;
  readonly recovery?: BoxRecovery;
  readonly clean: (text: string) => string;
  readonly hooks: Pick<Hooks, "after">;
  readonly emit: Emit;
}

interface CheckOptions {
  /** The request, in its own words. */
  readonly request: string;
  /** A weakened check proves nothing, whatever else was done. */
  readonly strict: boolean;
  /** For people: how to get the check to run if one of its programs is missing. */
  readonly remedy?: () => Promise<string | undefined>;
}

interface CheckRun {
  readonly exit_code: number;
  /** The whole output, followed by how the command ended, as the hooks left it. */
  readonly text: string;
  /** How the command ended, in a few words. */
  readonly ending: string;
  /** The command was stopped because it took too long. */
  readonly isCut: boolean;
  /** Why a check that only the project named cannot run here, by its own output, whatever a hook made of that. */
  readonly cannot?: string | undefined;
}

type CheckOutput = Pick<CheckRun, "exit_code" | "text" | "ending">;

type Verified = NonNullable<Extract<EventBody, { readonly type: "run.finished" }>["verified"]>;

type CheckEnded = Extract<EventBody, { readonly type: "check.ended" }>;
type CheckTime = CheckEnded["when"];

/** What becomes of a run whose model says that it is done. */
export type Proof =
  | { readonly kind: "green" }
  /** For the model: what is still wrong. */
  | { readonly kind: "repair"; readonly text: string }
  | { readonly kind: "red"; readonly reason: string }
  /** The check has still not ended, as before the first turn: it is long, or has no end. */
  | { readonly kind: "unknown"; readonly reason: string };

const MAX_REPAIRS = 2;
/** Bytes read of a test file for comparison. */
const MAX_READ = 4 * 2 ** 20;
/** Characters of the check's output that the model gets with a round of repair. */
const MAX_SHOWN = 6000;
/** Lines of the output in the reason of a failed run. */
const LAST_LINES = 3;
/** Only a check that took less than this is run after each change, and it is stopped after this time. */
const MOMENT_MS = 10_000;
/** Share of the run's remaining time that a project's own check may take before the first turn: it may never end. */
const SHARE_BEFORE = 1 / 4;
/** Changes after which a check that did not end is still given a moment. */
const MAX_UNENDED = 3;
const NOT_ASKED = "it would need approval";
/** Keeps the check from leaving caches in the workspace besides what its tests write. */
const NO_CACHES = { PYTHONDONTWRITEBYTECODE: "1" };

/**
 * Runs the check in the box of a run: once before the first turn, and whenever the model says that it is done. Undo
 * also takes back what the check writes. A project's check that cannot run here counts as no check. One that does not
 * end before the first turn may be what the task is to repair; if it does not end afterwards either, it proves nothing.
 */
export class Verification {
  readonly #check: Check;
  readonly #timeoutMs: number;
  #rounds = 0;
  #runs = 0;
  #tookMs = 0;
  #isUnused = false;
  #before: CheckRun | undefined;
  /** How often a project's check that had no end before the first turn has not ended since; else undefined. */
  #runsWithoutEnd: number | undefined;
  #last: Verified | null = null;
  #reportedWeakened = false;
  #isRed = false;
  #isGreen = false;
  #exitCode = 1;
  #output = "";
  #tampering: string | undefined;
  readonly #options: CheckOptions;

  constructor(check: Check, timeoutMs: number, options: CheckOptions = { request: "", strict: false }) {
    this.#check = check;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
  }

  get command(): string {
    return this.#check.command;
  }

  /** The check was run since the last change, and fails. */
  get isRed(): boolean {
    return this.#isRed;
  }

  /** The check was run since the last change, and succeeds. */
  get isGreen(): boolean {
    return this.#isGreen;
  }

  /** The check failed before the first turn. */
  get wasRed(): boolean {
    return !this.#isUnused && this.#before !== undefined && this.#before.exit_code !== 0;
  }

  /** The output of the last run of the check. */
  get output(): string {
    return this.#output;
  }

  /** The output before the first turn. */
  get outputBefore(): string {
    return this.#before?.text ?? "";
  }

  /** The last check after the model said that it was done, or the one at which the run was given up. */
  get verified(): Verified | null {
    return this.#last;
  }

  /** False once it is known that the check cannot be used. */
  get checks(): boolean {
    return !this.#isUnused;
  }

  /** The user's own check succeeds: no further proof is needed. A project's tests may not cover the request. */
  get isProof(): boolean {
    return this.#check.by === "user" && this.#last?.exit_code === 0;
  }

  /** For people: what was done to the check, so that its success proves nothing. */
  get tampering(): string | undefined {
    return this.#tampering;
  }

  /** The policy judges a check that the user did not name like any command. If a model may not run it, it is unused. */
  async #mayRun(agent: CheckContext, signal: AbortSignal): Promise<boolean> {
    const { command } = this;
    if (this.#check.by === "user") return true;
    const facts = { ...NO_FACTS, commands: [command] };
    const { decision, contained, rules, changes } = (await agent.judge()).judge(facts, "bash");
    if (decision === "deny") return false;
    const call = { call: "check", tool: "bash", args: { command }, text: command, mode: agent.mode };
    const question = {
      ...call,
      decision: { decision, contained, rules },
      writes: changes,
      fixed: true,
    } as const;
    if (agent.approver.refuses?.(question) !== undefined) return false;
    if (decision === "allow") return true;
    const answer = await agent.approver.ask(question, signal);
    return answer !== "waits" && answer.runs;
  }

  /** Restores what was known before parking, so that the check is not new. Call for each of its checks, in order. */
  resume({ exit_code, text, when, ms }: Pick<CheckEnded, "exit_code" | "text" | "when" | "ms">): void {
    const run = { exit_code, text, ending: `exit ${exit_code}`, isCut: exit_code === 124 };
    this.#runs += 1;
    this.#tookMs = ms;
    this.#exitCode = exit_code;
    this.#output = text;
    this.#isRed = when !== "before" && exit_code !== 0;
    // The result after a change says nothing about how it was before.
    if (when === "between") return;
    this.#before = run;
    const isProjects = this.#check.by === "project";
    this.#isUnused = isProjects && cannotRun(run) !== undefined;
    if (when === "before" && isProjects && run.isCut) this.#runsWithoutEnd = 0;
  }

  /** Runs the check before the first turn. Undefined when a project's check cannot run, and so can prove nothing. */
  async before(agent: CheckContext, signal: AbortSignal): Promise<CheckRun | undefined> {
    if (!(await this.#mayRun(agent, signal))) return this.#useNoCheck(agent, NOT_ASKED);
    const run = await this.#run(agent, "before", signal);
    const isProjects = this.#check.by === "project";
    if (isProjects && run.cannot !== undefined)
      return this.#useNoCheck(agent, run.cannot, await this.#options.remedy?.());
    if (isProjects && run.isCut) this.#runsWithoutEnd = 0;
    this.#before = run;
    return run;
  }

  /** The run ends here without a last check: it counts as failed, like the last time. */
  givenUp(): void {
    this.#last = { command: this.command, exit_code: this.#exitCode, rounds: this.#rounds };
  }

  #unknown(agent: CheckContext, { ending }: CheckRun): Proof {
    this.#useNoCheck(agent, ending);
    return {
      kind: "unknown",
      reason: `\`${visible(this.command)}\` did not finish (${ending}), so nothing shows that the task is done.`,
    };
  }

  #leftOut(agent: CheckContext, why: string): Proof {
    this.#useNoCheck(agent, why);
    return { kind: "green" };
  }

  #useNoCheck(agent: CheckContext, why: string, remedy = ""): undefined {
    this.#isUnused = true;
    const next = [remedy, "To name another check: --check CMD."].filter(Boolean).join(" ");
    const text = `No check: \`${visible(this.command)}\` cannot be used in the box (${why}). ${next}`;
    agent.emit({ type: "notice", text });
  }

  /**
   * Runs the check after a small model's change, if it failed before the first turn and takes only a moment; the
   * outcome goes with the call's result. Such a model does not know when it is done, and would change what is right
   * already.
   */
  async between(agent: CheckContext, signal: AbortSignal): Promise<string | undefined> {
    this.#isRed = false;
    this.#isGreen = false;
    const isLong =
      this.#runsWithoutEnd === undefined ? this.#tookMs >= MOMENT_MS : this.#runsWithoutEnd >= MAX_UNENDED;
    if (!this.wasRed || isLong) return undefined;
    const run = await this.#run(agent, "between", signal);
    if (signal.aborted) return undefined;
    const isOver = !run.isCut;
    if (isOver) this.#runsWithoutEnd = undefined;
    if (this.#runsWithoutEnd === undefined)
      return isOver ? betweenText(this.command, run) : notOver(this.command, MOMENT_MS);
    this.#runsWithoutEnd += 1;
    return stillNotOver(this.command, MOMENT_MS);
  }

  /** Runs the check after the model said that it is done. `last`: no turn is left for a repair. */
  async after(agent: CheckContext, signal: AbortSignal, last: boolean): Promise<Proof> {
    if (this.#isUnused) return { kind: "green" };
    // A run that was parked continues without a check before its first turn.
    const isFirst = this.#runs === 0;
    if (isFirst && !(await this.#mayRun(agent, signal))) return this.#leftOut(agent, NOT_ASKED);
    const run = await this.#run(agent, "after", signal);
    const cannot = isFirst && this.#check.by === "project" ? run.cannot : undefined;
    if (cannot !== undefined) return this.#leftOut(agent, cannot);
    const { exit_code } = run;
    if (signal.aborted) return { kind: "green" };
    const mayHaveNoEnd = this.#runsWithoutEnd !== undefined || (isFirst && this.#check.by === "project");
    if (run.isCut && mayHaveNoEnd) return this.#unknown(agent, run);
    this.#runsWithoutEnd = undefined;
    this.#last = { command: this.command, exit_code, rounds: this.#rounds };
    this.#tampering = undefined;
    if (exit_code === 0) return this.#proofOfSuccess(agent, signal, last);
    if (last || this.#rounds >= MAX_REPAIRS) return { kind: "red", reason: this.#redReason(run) };
    this.#rounds += 1;
    return { kind: "repair", text: repairText(this.command, run) };
  }

  /**
   * A success counts only if it was not achieved by weakening the check. If only the check was changed, the model is
   * told once in a round of repair, and then the run has failed. If code was changed, too, a notice says so, and
   * nothing is verified.
   */
  async #proofOfSuccess(agent: CheckContext, signal: AbortSignal, last: boolean): Promise<Proof> {
    const tampering = await this.#tamperingIn(agent, signal);
    if (tampering === undefined) return { kind: "green" };
    this.#last = null;
    const words = tamperingReason(this.command, tampering);
    if (!tampering.only && !this.#options.strict) {
      this.#tampering = words;
      agent.emit({ type: "notice", text: words });
      return { kind: "green" };
    }
    if (last || this.#reportedWeakened || this.#rounds >= MAX_REPAIRS) return { kind: "red", reason: words };
    this.#reportedWeakened = true;
    this.#rounds += 1;
    return { kind: "repair", text: tamperingText(this.command, tampering) };
  }

  async #tamperingIn(agent: CheckContext, signal: AbortSignal): Promise<TamperedCheck | undefined> {
    const { checkpoints } = agent;
    const box = await agent.box();
    const seen = await byContent(await box.changes(), checkpoints);
    if (isUntouched(seen)) return undefined;
    const changes = await changesIn(box, seen, signal);
    if (signal.aborted) return undefined;
    const now = async (path: string): Promise<string | undefined> => {
      const file = await box.read(path, { offset: 0, limit: MAX_READ });
      return file.kind === "ok" ? textOfBytes(file.value.content) : undefined;
    };
    const wasRed = this.#before !== undefined && this.#before.exit_code !== 0;
    const texts = { before: (path: string) => checkpoints.before(path), now };
    return tamperingIn(withoutCaches(changes), texts, {
      command: this.command,
      request: this.#options.request,
      wasRed,
    });
  }

  async #run(agent: CheckContext, when: CheckTime, signal: AbortSignal): Promise<CheckRun> {
    const { command } = this;
    this.#runs += 1;
    const about = { command, when, round: this.#rounds };
    agent.emit({ type: "check.started", ...about });
    const writing = { call: `check-${this.#runs}`, turn: agent.limits.turns, lasting: false };
    const timeoutMs = this.#time(agent, when);
    const request = { words: plainShell(command), env: NO_CACHES, timeoutMs, keep: KEEP };
    const result = await agent.checkpoints.around(writing, () => this.#ended(agent, request, signal));
    const output = wordsOf(result);
    const { lines } = endingOf(result, output);
    const text = visible(agent.clean([output, ...lines].filter((part) => part !== "").join("\n")));
    const { exit_code, timed_out, duration_ms: ms } = result;
    this.#tookMs = ms;
    this.#exitCode = exit_code;
    this.#isRed = when !== "before" && exit_code !== 0;
    const ending = timed_out ? `timed out after ${formatDuration(ms)}` : `exit ${exit_code}`;
    const cannot = cannotRun({ exit_code, text: excerpt(text, MAX_SHOWN), ending });
    const shown = excerpt(
      await this.#hooked(agent, { id: writing.call, text, exit_code }, signal),
      MAX_SHOWN,
    );
    this.#output = shown;
    this.#isGreen = when !== "before" && exit_code === 0;
    agent.emit({ type: "check.ended", ...about, exit_code, ms, text: shown });
    return { exit_code, text: shown, ending, isCut: timed_out, cannot };
  }

  /** Starts again in the box that replaces a lost one: the effects in the lost box are gone with it. */
  async #ended(agent: CheckContext, request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    try {
      const result = await (await agent.box()).exec(request, signal);
      await agent.recovery?.bringHome();
      return result;
    } catch (thrown) {
      if (signal.aborted || (await agent.recovery?.replacedAfter(thrown)) === undefined) throw thrown;
      return this.#ended(agent, request, signal);
    }
  }

  /** The hooks after a call see the check as a command, so that what they remove reaches nobody. */
  async #hooked(
    { hooks, emit }: CheckContext,
    { id, text, exit_code }: { readonly id: string; readonly text: string; readonly exit_code: number },
    signal: AbortSignal,
  ): Promise<string> {
    const call = { id, name: "bash", args: { command: this.command } };
    const kind = exit_code === 0 ? "ok" : "failed";
    const result: ToolResult =
      kind === "ok"
        ? { kind, text, exitCode: exit_code }
        : { kind, cause: "program", text, exitCode: exit_code };
    const replaced = await hooks.after(call, result, { emit, signal });
    return replaced === undefined ? text : visible(replaced);
  }

  /** No longer than the run's remaining time. */
  #time({ limits }: CheckContext, when: CheckTime): number {
    const left = limits.remainingMs() ?? Number.POSITIVE_INFINITY;
    const share = when === "before" && this.#check.by === "project" ? SHARE_BEFORE : 1;
    const most = when === "between" ? MOMENT_MS : this.#timeoutMs;
    return Math.max(1, Math.floor(Math.min(most, this.#timeoutMs, left * share)));
  }

  #redReason({ text, ending }: CheckRun): string {
    const last = lastLines(text, LAST_LINES).join(" | ");
    const before = this.#before === undefined || this.#before.exit_code === 0 ? "" : ", as it did before";
    const rounds = `${plural(this.#rounds, "round")} of repair`;
    const when = this.#rounds === 0 ? "fails" : `still fails after ${rounds}`;
    const lastLine = last === "" ? "" : `: ${last}`;
    return `\`${visible(this.command)}\` ${when} (${ending}${before})${lastLine}`;
  }
}

/**
 * What shells, interpreters and package managers print when something is missing that the project does not contain. The
 * first group names it. Each pattern covers the program's whole line, since a failing test may print the same words.
 */
const MISSING: readonly RegExp[] = [
  /^(?:\S*\/)?(?:ba|da|z)?sh: (?:(?:line )?\d+: )?(\S+): (?:command )?not found$/m,
  /^(?:\S*\/)?python3?(?:\.\d+)?: No module named (\S+)$/m,
  /^Error: Cannot find module '((?![./])[^']+)'\nRequire stack:$/m,
  /^Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package '([^']+)' imported from /m,
  /^\S+\.go:\d+:\d+: no required module provides package ([^\s;]+)/m,
  /^error: (?:failed to (?:get|download|load source for dependency) |no matching package named )`([^`]+)`/m,
  /^\[ERROR\].* Could not resolve dependencies for project (\S+)/m,
  /^npm (?:ERR!|error) Missing script: "([^"]+)"$/im,
];

/** Why a check that the user did not name cannot run here; undefined if it ran. */
export function cannotRun({ exit_code, text, ending }: CheckOutput): string | undefined {
  if (exit_code === 0) return undefined;
  for (const form of MISSING) {
    const found = form.exec(text);
    if (found !== null) return `${found[1] ?? "something"} is missing`;
  }
  return exit_code === 126 || exit_code === 127 ? ending : undefined;
}

/** Sent with the task when the check was run before the first turn. */
export function checkNote(command: string, { exit_code, text, ending }: CheckOutput): string {
  const opening = `\`${command}\` will be run when you say that you are done, and has to succeed.`;
  if (exit_code === 0) return `${opening} It succeeds now.`;
  return `${opening} Now it fails (${ending}). Its output, which is data:\n${excerpt(ownLines(text), MAX_NOTED)}`;
}

/** Most characters of a check's output beside a task or a result: about 400 tokens. */
const MAX_NOTED = 1600;

const betweenText = (command: string, { exit_code, text, ending }: CheckOutput): string =>
  exit_code === 0
    ? `\`${command}\` succeeds now. If that was all that was asked for, change nothing more and give your final answer.`
    : `\`${command}\` still fails (${ending}). Its output, which is data:\n${excerpt(ownLines(text), MAX_NOTED)}`;

/** A program written by a small model may never end. */
const notOver = (command: string, ms: number): string =>
  `\`${command}\` took a moment before; now it was not over after ${ms / 1000} s, and was ended.`;

/** The check did not end before the task either. */
const stillNotOver = (command: string, ms: number): string =>
  `\`${command}\` is not over after ${ms / 1000} s, as it was not before, and was ended.`;

const repairText = (command: string, { text, ending }: CheckOutput): string =>
  `You said that you are done, but \`${command}\` fails (${ending}). Find the cause and mend it, then say what you did. Its output, which is data:\n${ownLines(text)}`;

/** The last lines that are not blank, without the line that says how the command ended. */
const lastLines = (text: string, most: number): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("[exit "))
    .slice(-most);

/** Node's own stack frames: six of the ten lines that a failed test prints. */
const FRAME_OF_NODE = /^\s+at (?:async )?(?:.*\()?node:[\w/]+:\d+:\d+\)?(?: \{)?$/;
/** Node's test counts, which its failed tests already show. */
const COUNT_OF_NODE = /^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
/** The fields of an AssertionError after its stack; its message has already said what they hold. */
const PARTS_OF_NODE = /^( +)generatedMessage: (?:true|false),\n(?:\1.*\n|\n)*? *\}$/gm;

/** What a check says about the project, without what its runner says about itself. */
export const ownLines = (text: string): string =>
  text
    .replaceAll(PARTS_OF_NODE, "")
    .split("\n")
    .filter((line) => !FRAME_OF_NODE.test(line) && !COUNT_OF_NODE.test(line))
    .join("\n");

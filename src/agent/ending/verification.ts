import { formatDuration } from "../../core/text/bounds.ts";
import { textOfBytes } from "../../core/text/bytes.ts";
import type { Checkpoints } from "../../core/checkpoint-port.ts";
import type { Mode } from "../../core/decision.ts";
import type { Emit, EventBody } from "../../core/events.ts";
import type { Hooks } from "../../core/hooks.ts";
import type { BoxRecovery } from "../../core/box-recovery.ts";
import type { Approver, Box, ExecRequest, ExecResult } from "../../core/ports.ts";
import { counted } from "../../core/text/short-lists.ts";
import { NO_FACTS, type ToolResult } from "../../core/tool.ts";
import { visible } from "../../core/text/visible.ts";
import { endingOf } from "../../tools/shell/command-ending.ts";
import { plain } from "../../tools/shell/shell-state.ts";
import { KEEP, wordsOf } from "../../tools/shell/command-words.ts";
import type { Judge } from "../action-judge.ts";
import { type Bent, bentBy, bentText, bentWords } from "./bent-check.ts";
import { betweenText, lastLines, notOver, repairText, stillNotOver } from "./check-words.ts";
import type { Limits } from "../limits.ts";
import { byContent, changesIn, isUntouched, withoutCaches } from "./run-changes.ts";
import { excerpt } from "../context/untrusted-text.ts";

/** The command that proves a change. */
export interface Check {
  readonly command: string;
  /**
   * Who named it: the user, whose word it is; the project, whose tests it are; or what was recorded of a run, which may be
   * anybody's. Only the user's is not judged.
   */
  readonly by: "user" | "project" | "record";
}

/** Of a run, what its check needs. */
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

interface Asked {
  /** What was asked for, in its own words. */
  readonly request: string;
  /** A check that is not what it was is none, whatever else was done. */
  readonly strict: boolean;
  /** For people: what would have the check run where a program of it is not there. */
  readonly remedy?: () => Promise<string | undefined>;
}

export interface CheckRun {
  readonly exit_code: number;
  /** All that it said, with how it ended behind it, as the hooks left it. */
  readonly text: string;
  /** How it ended, in a few words. */
  readonly ending: string;
  /** It was ended, as it took too long. */
  readonly isCut: boolean;
  /** Why it cannot be run here, where nobody but the project named it: by its own words, whatever a hook made of them. */
  readonly cannot?: string | undefined;
}

export type Verified = NonNullable<Extract<EventBody, { readonly type: "run.finished" }>["verified"]>;

type CheckEnded = Extract<EventBody, { readonly type: "check.ended" }>;
type CheckTime = CheckEnded["when"];

/** What becomes of a run whose model says that it is done. */
export type Proof =
  | { readonly kind: "green" }
  /** For the model: what is still wrong. */
  | { readonly kind: "repair"; readonly text: string }
  | { readonly kind: "red"; readonly reason: string }
  /** It is no more over than it was before the first turn: long, or without an end. */
  | { readonly kind: "unknown"; readonly reason: string };

const MAX_REPAIRS = 2;
/** Bytes of a file of tests that are compared. */
const MAX_READ = 4 * 2 ** 20;
/** Characters of a check's output that the model gets with a round of repair. */
const MAX_SHOWN = 6000;
/** Lines of it in the reason of a run that failed. */
const LAST_LINES = 3;
/** What is run behind each change took no longer, and is ended where it does now. */
const MOMENT_MS = 10_000;
/** Of the time that a run has, a project's own check takes no more before the first turn: it may have no end. */
const SHARE_BEFORE = 1 / 4;
/** Changes behind which such a check is looked at for a moment. */
const MOST_UNENDED = 3;
const NOT_ASKED = "it would have to be asked for";
/** What it leaves in the workspace beside what its tests write. */
const NO_CACHES = { PYTHONDONTWRITEBYTECODE: "1" };

/**
 * Runs the check in the box of a run: once before its first turn, and whenever its model says that it is done. What it
 * writes is taken back by undo as a call's is. A check that the project names and that cannot run here is none; what has no
 * end before the first turn may be what is to be mended, and is none where it has no end behind it either.
 */
export class Verification {
  readonly #check: Check;
  readonly #timeoutMs: number;
  #rounds = 0;
  #runs = 0;
  #tookMs = 0;
  #isNone = false;
  #before: CheckRun | undefined;
  /** Of a check that the project names, how often it was not over since it was not before the first turn either. */
  #unended: number | undefined;
  #last: Verified | null = null;
  #told = false;
  #isRed = false;
  #isGreen = false;
  #exitCode = 1;
  #said = "";
  #bent: string | undefined;
  readonly #asked: Asked;

  constructor(check: Check, timeoutMs: number, asked: Asked = { request: "", strict: false }) {
    this.#check = check;
    this.#asked = asked;
    this.#timeoutMs = timeoutMs;
  }

  get command(): string {
    return this.#check.command;
  }

  /** It was run since the last change, and fails. */
  get isRed(): boolean {
    return this.#isRed;
  }

  /** It was run since the last change, and succeeds. */
  get isGreen(): boolean {
    return this.#isGreen;
  }

  /** It failed before the first turn. */
  get wasRed(): boolean {
    return !this.#isNone && this.#before !== undefined && this.#before.exit_code !== 0;
  }

  /** What it said when it was run last. */
  get said(): string {
    return this.#said;
  }

  /** What it said before the first turn. */
  get saidBefore(): string {
    return this.#before?.text ?? "";
  }

  /** The last check after the model said that it is done, or the one on which it was given up. */
  get verified(): Verified | null {
    return this.#last;
  }

  /** It is run, as far as is known. */
  get checks(): boolean {
    return !this.#isNone;
  }

  /** It succeeds, and the user named it: nobody else's word is needed. A project's tests may say nothing of what was asked for. */
  get isProof(): boolean {
    return this.#check.by === "user" && this.#last?.exit_code === 0;
  }

  /** Why its success is none: what was done to it, in words for people. */
  get bent(): string | undefined {
    return this.#bent;
  }

  /** The project's own check is judged as any command is; where it would not be run for a model it is none. */
  async #mayRun(agent: CheckContext, signal: AbortSignal): Promise<boolean> {
    const { command } = this;
    if (this.#check.by === "user") return true;
    const facts = { ...NO_FACTS, commands: [command] };
    const { decision, contained, rules, changes } = (await agent.judge()).judge(facts, "bash");
    if (decision === "deny") return false;
    const asked = { call: "check", tool: "bash", args: { command }, text: command, mode: agent.mode };
    const question = {
      ...asked,
      decision: { decision, contained, rules },
      writes: changes,
      fixed: true,
    } as const;
    if (agent.approver.refuses?.(question) !== undefined) return false;
    if (decision === "allow") return true;
    const answer = await agent.approver.ask(question, signal);
    return answer !== "waits" && answer.runs;
  }

  /** What the run was told before it was parked: the check is not looked at as new. Each of its checks, in their order. */
  resume({ exit_code, text, when, ms }: Pick<CheckEnded, "exit_code" | "text" | "when" | "ms">): void {
    const run = { exit_code, text, ending: `exit ${exit_code}`, isCut: exit_code === 124 };
    this.#runs += 1;
    this.#tookMs = ms;
    this.#exitCode = exit_code;
    this.#said = text;
    this.#isRed = when !== "before" && exit_code !== 0;
    // What comes of a change in between is no word on how it was before.
    if (when === "between") return;
    this.#before = run;
    const isProjects = this.#check.by === "project";
    this.#isNone = isProjects && cannotRun(run) !== undefined;
    if (when === "before" && isProjects && run.isCut) this.#unended = 0;
  }

  /** Before the first turn. Undefined where the project's own check cannot be run, so that nothing can be proved by it. */
  async before(agent: CheckContext, signal: AbortSignal): Promise<CheckRun | undefined> {
    if (!(await this.#mayRun(agent, signal))) return this.#none(agent, NOT_ASKED);
    const run = await this.#run(agent, "before", signal);
    const isProjects = this.#check.by === "project";
    if (isProjects && run.cannot !== undefined)
      return this.#none(agent, run.cannot, await this.#asked.remedy?.());
    if (isProjects && run.isCut) this.#unended = 0;
    this.#before = run;
    return run;
  }

  /** The run ends here, without a last look: it fails as it did. */
  givenUp(): void {
    this.#last = { command: this.command, exit_code: this.#exitCode, rounds: this.#rounds };
  }

  #unknown(agent: CheckContext, { ending }: CheckRun): Proof {
    this.#none(agent, ending);
    return {
      kind: "unknown",
      reason: `\`${visible(this.command)}\` is not over (${ending}), so that nothing shows that it is done.`,
    };
  }

  #leftOut(agent: CheckContext, why: string): Proof {
    this.#none(agent, why);
    return { kind: "green" };
  }

  #none(agent: CheckContext, why: string, remedy = ""): undefined {
    this.#isNone = true;
    const next = [remedy, "--check CMD names another."].filter(Boolean).join(" ");
    const text = `No check: \`${visible(this.command)}\` is not run in the box (${why}). ${next}`;
    agent.emit({ type: "notice", text });
  }

  /**
   * Behind a change of a small model, where the check failed before the first turn and takes a moment only: what comes of it
   * is said with the result. Such a model does not know when it is done, and changes what was right already.
   */
  async between(agent: CheckContext, signal: AbortSignal): Promise<string | undefined> {
    this.#isRed = false;
    this.#isGreen = false;
    const isLong = this.#unended === undefined ? this.#tookMs >= MOMENT_MS : this.#unended >= MOST_UNENDED;
    if (!this.wasRed || isLong) return undefined;
    const run = await this.#run(agent, "between", signal);
    if (signal.aborted) return undefined;
    const isOver = !run.isCut;
    if (isOver) this.#unended = undefined;
    if (this.#unended === undefined)
      return isOver ? betweenText(this.command, run) : notOver(this.command, MOMENT_MS);
    this.#unended += 1;
    return stillNotOver(this.command, MOMENT_MS);
  }

  /** After the model has said that it is done. `last`: nothing is left to repair it with. */
  async after(agent: CheckContext, signal: AbortSignal, last: boolean): Promise<Proof> {
    if (this.#isNone) return { kind: "green" };
    // A run that was parked goes on without a look before its first turn.
    const isFirst = this.#runs === 0;
    if (isFirst && !(await this.#mayRun(agent, signal))) return this.#leftOut(agent, NOT_ASKED);
    const run = await this.#run(agent, "after", signal);
    const cannot = isFirst && this.#check.by === "project" ? run.cannot : undefined;
    if (cannot !== undefined) return this.#leftOut(agent, cannot);
    const { exit_code } = run;
    if (signal.aborted) return { kind: "green" };
    const mayHaveNoEnd = this.#unended !== undefined || (isFirst && this.#check.by === "project");
    if (run.isCut && mayHaveNoEnd) return this.#unknown(agent, run);
    this.#unended = undefined;
    this.#last = { command: this.command, exit_code, rounds: this.#rounds };
    this.#bent = undefined;
    if (exit_code === 0) return this.#believed(agent, signal, last);
    if (last || this.#rounds >= MAX_REPAIRS) return { kind: "red", reason: this.#redReason(run) };
    this.#rounds += 1;
    return { kind: "repair", text: repairText(this.command, run) };
  }

  /**
   * A success that was had by what was done to the check is none. Where nothing else was done the model is told so once, in a
   * round of repair, and then the run has failed; beside a change of the code it is said, and nothing is verified.
   */
  async #believed(agent: CheckContext, signal: AbortSignal, last: boolean): Promise<Proof> {
    const bent = await this.#bentIn(agent, signal);
    if (bent === undefined) return { kind: "green" };
    this.#last = null;
    const words = bentWords(this.command, bent);
    if (!bent.only && !this.#asked.strict) {
      this.#bent = words;
      agent.emit({ type: "notice", text: words });
      return { kind: "green" };
    }
    if (last || this.#told || this.#rounds >= MAX_REPAIRS) return { kind: "red", reason: words };
    this.#told = true;
    this.#rounds += 1;
    return { kind: "repair", text: bentText(this.command, bent) };
  }

  async #bentIn(agent: CheckContext, signal: AbortSignal): Promise<Bent | undefined> {
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
    return bentBy(withoutCaches(changes), texts, {
      command: this.command,
      request: this.#asked.request,
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
    const request = { words: plain(command), env: NO_CACHES, timeoutMs, keep: KEEP };
    const result = await agent.checkpoints.around(writing, () => this.#ended(agent, request, signal));
    const said = wordsOf(result);
    const { lines } = endingOf(result, said);
    const text = visible(agent.clean([said, ...lines].filter((part) => part !== "").join("\n")));
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
    this.#said = shown;
    this.#isGreen = when !== "before" && exit_code === 0;
    agent.emit({ type: "check.ended", ...about, exit_code, ms, text: shown });
    return { exit_code, text: shown, ending, isCut: timed_out, cannot };
  }

  /** In a box that takes the place of a lost one it begins anew: what it did in that one went with it. */
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

  /** The hooks behind a call see it as the command that it is: whatever they take out is told to nobody. */
  async #hooked(
    { hooks, emit }: CheckContext,
    { id, text, exit_code }: { readonly id: string; readonly text: string; readonly exit_code: number },
    signal: AbortSignal,
  ): Promise<string> {
    if (signal.aborted) return text;
    const call = { id, name: "bash", args: { command: this.command } };
    const kind = exit_code === 0 ? "ok" : "failed";
    const result: ToolResult =
      kind === "ok"
        ? { kind, text, exitCode: exit_code }
        : { kind, cause: "program", text, exitCode: exit_code };
    const replaced = await hooks.after(call, result, { emit, signal });
    return replaced === undefined ? text : visible(replaced);
  }

  /** No longer than the run may still take. */
  #time({ limits }: CheckContext, when: CheckTime): number {
    const left = limits.remainingMs() ?? Number.POSITIVE_INFINITY;
    const share = when === "before" && this.#check.by === "project" ? SHARE_BEFORE : 1;
    const most = when === "between" ? MOMENT_MS : this.#timeoutMs;
    return Math.max(1, Math.floor(Math.min(most, this.#timeoutMs, left * share)));
  }

  #redReason({ text, ending }: CheckRun): string {
    const last = lastLines(text, LAST_LINES).join(" | ");
    const before = this.#before === undefined || this.#before.exit_code === 0 ? "" : ", as it did before";
    const rounds = `${counted(this.#rounds, "round")} of repair`;
    const when = this.#rounds === 0 ? "fails" : `still fails after ${rounds}`;
    const said = last === "" ? "" : `: ${last}`;
    return `\`${visible(this.command)}\` ${when} (${ending}${before})${said}`;
  }
}

/**
 * What shells, interpreters and package managers say themselves where something is missing that the project does not hold.
 * The first group names it. Each form is the whole line of that program: a failing test may print the same words.
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

/** Why a check that nobody named cannot be run here; undefined where it ran. */
export function cannotRun({ exit_code, text, ending }: Omit<CheckRun, "isCut">): string | undefined {
  if (exit_code === 0) return undefined;
  for (const form of MISSING) {
    const found = form.exec(text);
    if (found !== null) return `${found[1] ?? "something"} is not there`;
  }
  return exit_code === 126 || exit_code === 127 ? ending : undefined;
}

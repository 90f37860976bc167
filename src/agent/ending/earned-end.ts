import { brokenFiles, brokenReason, brokenText, type Parsed } from "./broken-syntax.ts";
import type { Mode } from "../../core/decision.ts";
import { headWithin } from "../../core/text/bytes.ts";
import { visibleLine } from "../../core/text/visible.ts";
import type { Demand } from "../next-reply.ts";
import type { Intent } from "../../core/messages.ts";
import type { EndedCall } from "../../core/session.ts";
import {
  asksOnCondition,
  type NoAnswer,
  noAnswerIn,
  noAnswerNudge,
  noAnswerReason,
  saysNotNeeded,
  saysOnlyDone,
} from "./no-answer.ts";
import type { Verification } from "./verification.ts";

/** What a run has done, and whether that earns the ending that its model claims. Pure. */

/** The shell's words for a command that was never started. */
const NOT_STARTED: ReadonlySet<number> = new Set([126, 127]);

/** Ends of a command that ran, whatever came of it. */
const RAN: ReadonlySet<EndedCall["kind"]> = new Set(["ok", "failed", "timed_out"]);

/** Looks without a change before the model is told to act, where a change was asked for. */
const MANY_LOOKS = 25;
/** Looks in a row of which each gave what the model had seen before. */
const STALE_LOOKS = 4;

export const ACT_NOW =
  "The last calls showed nothing that you had not seen. You know enough: act now, with an edit or a command, or give your final answer.";
export const ACT_SOON =
  "You have looked at much and changed nothing yet. A change was asked for: make it now, or say in your final answer why none is needed.";

/** Nothing is done for a request by a plan, by reading how a thing is done, nor by a task in the background: the calls of that count by themselves. */
export const isIdle = (tool: string, { background, task }: Readonly<Record<string, unknown>>): boolean =>
  tool === "plan" ||
  tool === "skill" ||
  (tool === "task" && (background !== undefined || task !== undefined));

/** By these, files of the workspace are looked at or written, and nothing else is done. */
const OF_FILES: ReadonlySet<string> = new Set(
  "read_file list_dir glob grep show_full semantic_search note notes skill task plan ask_user web_search web_fetch edit_file write_file apply_patch".split(
    " ",
  ),
);

const GIT_LOOKS =
  /\bgit(?: --?[\w.=/-]+)* (?:status|log|diff|show|blame|grep|ls-files|ls-tree|rev-parse|rev-list|describe|shortlog|cat-file)\b/g;
/** What a command may do that is no change of a file in the workspace: folders, owners, processes, places and servers. */
const BESIDE =
  /\bgit\b|\b(?:mkdir|makedirs|rmdir|mkfifo|touch|utime|chown|chgrp|setfacl|setfattr|kill|pkill|killall|nohup|export|install|psql|mysql|sqlite3|redis-cli|mongo\w*|curl|wget|ssh|scp|rsync|docker|podman|kubectl|make|systemctl|service)\b|&\s*$|(?:^|[\s"'=:>])(?:~|\/(?:tmp|home|root|var|etc|opt|usr|srv|mnt|dev\/(?!null)))|\$(?:HOME|TMPDIR|XDG_)/;

/** A run of tests by the words that are usual for it, in any of the commands of a line. Options before them are few: the text is a model's, and read in one pass. */
const RUNS_TESTS =
  /(?:^|[\s;&|(])(?:(?:npm|pnpm|yarn|bun)(?: run)? (?:test|t|check)\b|node (?:\S{1,200} ){0,10}--test\b|deno test|(?:npx |pnpm exec |bunx )?(?:jest|vitest|mocha|ava|tap|pytest|tox|nox|rspec|phpunit|ctest|bats|prove)\b|python3? -m (?:pytest|unittest)\b|(?:cargo|go|dotnet|swift|mix|composer|rake|bundle exec rake) (?:nextest|test)\b|(?:mvn|mvnw|\.\/mvnw|gradle|gradlew|\.\/gradlew)\b[^;&|]{0,300}\b(?:test|verify|check)\b|make (?:\S{1,200} ){0,10}(?:tests?|check)\b)/;

const actsBeside = (tool: string, target: string): boolean =>
  !OF_FILES.has(tool) && (tool !== "bash" || BESIDE.test(target.replaceAll(GIT_LOOKS, "")));

/** A command that ran to its end. */
interface Tried {
  readonly command: string;
  readonly exitCode: number;
}

/** Whose exit code is an answer, and no failure. */
const ANSWERS = /^\s*(?:!|\[|test\b|grep\b|rg\b|diff\b|cmp\b|git (?:diff|grep)\b)/;

/** What was done for one request, its subagents' calls with it. */
export class Deeds {
  #worked: boolean;
  #changed = false;
  #beside = false;
  /** Before the run was parked, in a box that may be gone: what is changed now does not tell of it. */
  readonly changedBefore: boolean;
  readonly #looked = new Set<string>();
  readonly #shown = new Set<string>();
  #redTests: string | undefined;
  #triedSince: Tried | "nothing" = "nothing";
  #stale = 0;
  #looks = 0;
  #told = new Set<string>();

  /** `before`: what was done until the run was parked. */
  constructor(before: readonly EndedCall[] = []) {
    this.#worked = before.some(({ kind, idle }) => kind === "ok" && idle !== true);
    this.changedBefore = before.some(({ changes }) => changes);
  }

  /** Something of the workspace was shown to the model before this request: an answer from it is grounded. */
  shownBefore = false;

  /** Files stand with the task: an answer from them is grounded, too. */
  shownWithTask = false;

  /** The request has no task of its own but the one before it: what was done for that counts. */
  goOn(): void {
    this.#worked ||= this.shownBefore;
  }

  take(call: EndedCall, exitCode: number | undefined, text: string): void {
    const { tool, target, kind, changes, idle } = call;
    if (idle === true) return;
    this.#takeTrial(call, exitCode);
    const ran = exitCode !== undefined && RAN.has(kind) && !NOT_STARTED.has(exitCode);
    if (kind !== "ok" && !ran) return;
    this.#worked = true;
    this.#beside ||= actsBeside(tool, target);
    if (tool === "bash" && exitCode !== undefined && RUNS_TESTS.test(target))
      this.#redTests = exitCode === 0 ? undefined : target;
    // The rest of what a look has found already.
    if (tool === "show_full") return;
    if (changes) {
      this.#changed = true;
      this.#stale = 0;
      this.#looks = 0;
      return;
    }
    if (target !== "") this.#looked.add(target);
    this.#looks += 1;
    this.#stale = this.#shown.has(text) ? this.#stale + 1 : 0;
    this.#shown.add(text);
  }

  /** A command whose program is not there was tried, too. */
  #takeTrial({ tool, target, kind, changes }: EndedCall, exitCode: number | undefined): void {
    if (tool !== "bash") {
      if (changes && kind === "ok") this.#triedSince = "nothing";
    } else if (exitCode !== undefined && RAN.has(kind)) this.#triedSince = { command: target, exitCode };
  }

  /** Whether a call succeeded, or a command ran to its end, whatever it ended with. */
  get worked(): boolean {
    return this.#worked;
  }

  /** Whether an answer about the repository can come from what was seen of it. */
  get isGrounded(): boolean {
    return this.#worked || this.shownBefore || this.shownWithTask;
  }

  /** Whether a call changed something. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Something may have been done that no change of the workspace's files shows. */
  get actedBeside(): boolean {
    return this.#beside;
  }

  /** The last run of tests, where it failed. */
  get redTests(): string | undefined {
    return this.#redTests;
  }

  /** The last command behind the last edit. */
  get triedSince(): Tried | "nothing" {
    return this.#triedSince;
  }

  /** Files and commands, in the order in which they were first looked at. */
  get looked(): readonly string[] {
    return [...this.#looked];
  }

  /** Said to a model that looks and looks, once for each reason until something changes. */
  note(intent: Intent): string | undefined {
    if (this.#stale >= STALE_LOOKS) {
      this.#stale = 0;
      return ACT_NOW;
    }
    if (intent !== "change" || this.#looks < MANY_LOOKS || this.#told.has(ACT_SOON)) return undefined;
    this.#told.add(ACT_SOON);
    return ACT_SOON;
  }
}

const NUDGES: Readonly<Record<"change" | "repo", string>> = {
  change:
    "Nothing was read or changed so far, and nobody is there to answer questions. A change was asked for: call a tool now. Only calls do anything; what stands in the text of a reply is not run.",
  repo: "You looked at nothing of the repository, so this answer is a guess, and nobody is there to answer questions. Call a tool now to look (read_file, grep, list_dir), then answer from what you saw.",
};

const ONLY_LOOKED =
  "You looked, and changed nothing. A change was asked for: make it now with a call. If none is needed, say why in your final answer.";

/** Said where a round of repair was answered by words alone: what was not touched fails as before, and a round would be lost. */
export const REPAIR_NOW =
  "You called nothing, so nothing is repaired, and the check still fails as it did. Call a tool now that mends its cause.";

/** What becomes of an answer by what was done for it. */
export type Earned =
  | { readonly kind: "earned" }
  /** For the model: said once. */
  | { readonly kind: "nudge"; readonly text: string; readonly demand: Demand }
  | { readonly kind: "nothing_done"; readonly reason: string };

const EARNED: Earned = { kind: "earned" };

/** What is wanted of an answer, and who gives it. */
export interface Asked {
  readonly intent: Intent;
  readonly request: string;
  /** Of few parameters: such a model often takes a look for the deed, and words for the answer. */
  readonly isWeak: boolean;
}

/** What an answer lacks: any work, the answer itself, the change that was asked for, or that what was changed was tried. */
export type Lack = "work" | NoAnswer | "change" | "trial" | "success";

/** Where a call was refused the refusal is the cause, which a person can lift, and a nudge would hide it. */
export function lackOf(
  answer: string,
  { intent, request, isWeak }: Asked,
  {
    worked,
    isGrounded,
    changed,
    actedBeside,
  }: Pick<Deeds, "worked" | "isGrounded" | "changed" | "actedBeside">,
  calls: readonly Pick<EndedCall, "refused">[],
): Lack | undefined {
  const isRefused = calls.some(({ refused }) => refused);
  if (intent === "repo") {
    if (isRefused) return undefined;
    if (!isGrounded) return "work";
    return noAnswerIn(answer, request) ?? (isWeak && saysOnlyDone(answer) ? "says done" : undefined);
  }
  if (intent !== "change" || changed) return undefined;
  if (!isRefused && !worked) return "work";
  const none = isRefused || actedBeside ? undefined : noAnswerIn(answer, request);
  return none ?? (isWeak ? "change" : undefined);
}

const LACKS: ReadonlySet<Lack> = new Set(["work", "change", "trial", "success"]);

/** Replies that have to be calls, and of these the first that may be any. */
const MOST_DEMANDS = 6;
const LOOKS_FIRST = 3;

/** What a run without a person demands of an answer before it is its end. A chat, and a subagent, have none. */
export class EndRules {
  asked: Omit<Asked, "intent"> = { request: "", isWeak: false };
  readonly verification: Verification | null;
  readonly #told = new Set<string>();
  #repairFrom: number | undefined;
  #demanded = 0;

  constructor(verification: Verification | null) {
    this.verification = verification;
  }

  /** By the answer and by what was done for it. */
  earned(answer: string, { intent, deeds, ended }: RunSoFar, mayTell: boolean): Earned {
    const asked = { ...this.asked, intent: intent.intent };
    return this.#met(lackOf(answer, asked, deeds, ended), { intent, deeds, ended }, mayTell);
  }

  /** Where nothing checks what a weak model has changed, it has to have tried it itself. */
  tried(run: RunSoFar, mayTell: boolean): Earned {
    const { changed, triedSince } = run.deeds;
    const isChecked = this.verification?.checks === true;
    if (!this.asked.isWeak || run.intent.intent !== "change" || !changed || isChecked) return EARNED;
    if (triedSince === "nothing") return this.#met("trial", run, mayTell);
    const fails = triedSince.exitCode !== 0 && !ANSWERS.test(triedSince.command);
    return this.#met(fails ? "success" : undefined, run, mayTell);
  }

  /** Each kind of lack is told once, where there is a turn left for it; what stays of it decides the end. */
  #met(lack: Lack | undefined, { intent: { intent }, deeds }: RunSoFar, mayTell: boolean): Earned {
    if (lack === undefined) return EARNED;
    const kind = LACKS.has(lack) ? lack : "answer";
    if (mayTell && this.#tell(kind))
      return { kind: "nudge", text: nudgeOf(lack, intent), demand: demandOf(lack, intent) };
    return endWith(lack, intent, deeds);
  }

  /**
   * What a weak model has to do where its replies are held: as long as nothing is changed that was to be changed, to call a
   * tool, and then one that acts, for some replies each; after that it may have its reasons. Left the choice, such a model
   * answers that it is done, or looks at the same again.
   */
  demandOn({ intent, deeds, mode }: RunSoFar & { readonly mode: Mode }): Demand | undefined {
    const waits = intent.intent === "change" && !deeds.changed && !deeds.actedBeside && mode !== "read-only";
    if (!this.asked.isWeak || !waits) return undefined;
    this.#demanded += 1;
    if (this.#demanded <= LOOKS_FIRST) return "call";
    return this.#demanded <= MOST_DEMANDS ? "act" : undefined;
  }

  /** Of a weak model's changes, what cannot be parsed any more, for the model and for people. */
  async brokenIn(
    agent: Parsed & { readonly deeds: Pick<Deeds, "changed"> },
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly reason: string } | undefined> {
    if (!this.asked.isWeak || !agent.deeds.changed) return undefined;
    const broken = await brokenFiles(agent, signal);
    return broken.length === 0 ? undefined : { text: brokenText(broken), reason: brokenReason(broken) };
  }

  /** Whether the model is told of it: once. */
  tellsBroken(): boolean {
    return this.#tell("syntax");
  }

  #tell(kind: string): boolean {
    if (this.#told.has(kind)) return false;
    this.#told.add(kind);
    return true;
  }

  /** The model was told to repair, after so many calls. */
  repairs(calls: number): void {
    this.#repairFrom = calls;
  }

  /** Once a round: whether a weak model answered it without a call. */
  isIdleRepair(calls: number): boolean {
    const isIdle = this.asked.isWeak && this.#repairFrom === calls;
    this.#repairFrom = undefined;
    return isIdle;
  }

  /**
   * Whether the word of a weak model that nothing has to change is no proof: it is believed where the request left that open
   * and the answer says it plainly, or where the user's own check succeeds.
   */
  doubts(answer: string): boolean {
    const { request, isWeak } = this.asked;
    if (!isWeak || this.verification?.isProof === true) return false;
    return !(asksOnCondition(request) && saysNotNeeded(answer));
  }
}

interface RunSoFar {
  readonly intent: { readonly intent: Intent };
  readonly deeds: Deeds;
  readonly ended: readonly EndedCall[];
}

/** What an answer comes to that still lacks it. */
function endWith(lack: Lack, intent: Intent, deeds: Deeds): Earned {
  switch (lack) {
    case "change":
    case "trial":
      return EARNED;
    case "success":
      return { kind: "nothing_done", reason: failedTrial(deeds) };
    case "work":
      return intent === "change" ? { kind: "nothing_done", reason: "nothing was done" } : EARNED;
    default: {
      const what = intent === "change" ? "nothing was changed" : "there is no answer";
      return { kind: "nothing_done", reason: `${what}: ${noAnswerReason(lack)}` };
    }
  }
}

function demandOf(lack: Lack, intent: Intent): Demand {
  if (lack === "trial") return "run";
  return intent === "change" && lack !== "work" ? "act" : "call";
}

const TRY_IT =
  "You changed files and ran nothing since, and nothing else checks them. Run what you changed now, with bash, and look at what it prints; then mend it, or give your final answer.";

const STILL_FAILS =
  "The last command that you ran failed, so you are not done. Mend what it shows and run it again; if the command itself was wrong, run a right one.";
/** Bytes of a command that are named. */
const NAMED = 300;

const failedTrial = ({ triedSince }: Deeds): string =>
  triedSince === "nothing"
    ? "nothing was tried"
    : `the last command that the model ran failed (exit ${triedSince.exitCode}): \`${visibleLine(headWithin(triedSince.command, NAMED))}\``;

function nudgeOf(lack: Lack, intent: Intent): string {
  switch (lack) {
    case "work":
      return NUDGES[intent === "change" ? "change" : "repo"];
    case "change":
      return ONLY_LOOKED;
    case "trial":
      return TRY_IT;
    case "success":
      return STILL_FAILS;
    default:
      return noAnswerNudge(lack);
  }
}

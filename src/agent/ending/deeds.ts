/** What a run has done, judged by its calls, and what its answer lacks for that. Pure. */

import type { Intent } from "../../core/model-provider.ts";
import { headWithin } from "../../core/raw-data.ts";
import type { EndedCall } from "../../core/session.ts";
import { visibleLine } from "../../core/visible.ts";
import type { Demand } from "../next-reply.ts";
import {
  type NoAnswer,
  noAnswerIn,
  noAnswerNudge,
  noAnswerReason,
  saysOnlyDone,
  saysTestsPass,
} from "./answer-words.ts";

/** The shell's exit codes for a command that was never started. */
const NOT_STARTED: ReadonlySet<number> = new Set([126, 127]);

/** Endings of a command that ran, whatever its result. */
const RAN: ReadonlySet<EndedCall["kind"]> = new Set(["ok", "failed", "timed_out"]);

/** Looks without a change before the model is told to act, when a change was requested. */
const MANY_LOOKS = 25;
/** Looks in a row that showed only what the model had seen before. */
const STALE_LOOKS = 4;

export const ACT_NOW =
  "The last calls showed nothing that you had not seen. You know enough: act now, with an edit or a command, or give your final answer.";
export const ACT_SOON =
  "You have looked at much and changed nothing yet. A change was asked for: make it now, or say in your final answer why none is needed.";

/** Calls that do no work: a plan, reading a skill, or a background task, whose own calls count by themselves. */
export const isIdle = (tool: string, { background, task }: Readonly<Record<string, unknown>>): boolean =>
  tool === "plan" ||
  tool === "skill" ||
  (tool === "task" && (background !== undefined || task !== undefined));

/** Tools that only look at files of the workspace or write them. */
const FILE_TOOLS: ReadonlySet<string> = new Set(
  "read_file list_dir glob grep show_full semantic_search note notes skill task plan ask_user web_search web_fetch edit_file write_file apply_patch".split(
    " ",
  ),
);

const GIT_LOOKS =
  /\bgit(?: --?[\w.=/-]+)* (?:status|log|diff|show|blame|grep|ls-files|ls-tree|rev-parse|rev-list|describe|shortlog|cat-file)\b/g;
/** What a command may do besides changing workspace files: folders, owners, processes, other places, servers. */
const OTHER_EFFECTS =
  /\bgit\b|\b(?:mkdir|makedirs|rmdir|mkfifo|touch|utime|chown|chgrp|setfacl|setfattr|kill|pkill|killall|nohup|export|install|psql|mysql|sqlite3|redis-cli|mongo\w*|curl|wget|ssh|scp|rsync|docker|podman|kubectl|make|systemctl|service)\b|&\s*$|(?:^|[\s"'=:>])(?:~|\/(?:tmp|home|root|var|etc|opt|usr|srv|mnt|dev\/(?!null)))|\$(?:HOME|TMPDIR|XDG_)/;

/**
 * A test run by its usual words, in any command of a line. Few options may precede them: the text comes from a model,
 * and is read in one pass.
 */
const RUNS_TESTS =
  /(?:^|[\s;&|(])(?:(?:npm|pnpm|yarn|bun)(?: run)? (?:test|t|check)\b|node (?:\S{1,200} ){0,10}--test\b|deno test|(?:npx |pnpm exec |bunx )?(?:jest|vitest|mocha|ava|tap|pytest|tox|nox|rspec|phpunit|ctest|bats|prove)\b|python3? -m (?:pytest|unittest)\b|(?:cargo|go|dotnet|swift|mix|composer|rake|bundle exec rake) (?:nextest|test)\b|(?:mvn|mvnw|\.\/mvnw|gradle|gradlew|\.\/gradlew)\b[^;&|]{0,300}\b(?:test|verify|check)\b|make (?:\S{1,200} ){0,10}(?:tests?|check)\b)/;

/** Commands in a row that only look at files. */
const ONLY_LOOKS =
  /^(?:\s*(?:cd|ls|ll|cat|head|tail|less|grep|rg|find|fd|tree|pwd|echo|printf|wc|file|stat|which|type|sed -n|git (?:status|log|diff|show|ls-files))\b(?:[^;&|`$<>]|\$(?!\())*(?:&&|;|\|\|?|$))+$/;

/** An interpreter without input, and commands that only set an exit code. */
const DOES_NOTHING =
  /^\s*(?:(?:ba|da|z|k)?sh|python[\d.]*|node|perl|ruby|true|false|:|exit(?: \d+)?|sleep [\d.]+|clear)\s*$/;

/** A command with words about tests, however the project runs them. */
const ABOUT_TESTS =
  /tests?\b|test[_-]|spec|check|verify|prove\b|\b(?:tox|nox|jest|mocha|bats|ava|tap|suite|ci)\b/i;

/** A git command that failed did nothing. */
const actsBeside = (tool: string, target: string, failed: boolean): boolean =>
  !FILE_TOOLS.has(tool) &&
  (tool !== "bash" || OTHER_EFFECTS.test(target.replaceAll(failed ? /\bgit\b/g : GIT_LOOKS, "")));

/** A command that ran to its end. */
export interface EndedCommand {
  readonly command: string;
  readonly exitCode: number;
  /** Its result, as given to the model. */
  readonly text: string;
}

/** What was done for one request, including the calls of its subagents. */
export class Deeds {
  #worked: boolean;
  #changed = false;
  #acted = false;
  #actedElsewhere = false;
  /** Something was changed before the run was parked, in a box that may be gone: current changes do not show it. */
  readonly changedBefore: boolean;
  readonly #looked = new Set<string>();
  readonly #shown = new Set<string>();
  #redTests: string | undefined;
  #greenTests = false;
  #triedSince: EndedCommand | "nothing" = "nothing";
  #ran: EndedCommand | undefined;
  #ranTests: EndedCommand | undefined;
  #stale = 0;
  #looks = 0;
  #shownNotes = new Set<string>();

  /** `before`: the calls up to the point where the run was parked. */
  constructor(before: readonly EndedCall[] = []) {
    this.#worked = before.some(({ kind, idle }) => kind === "ok" && idle !== true);
    this.changedBefore = before.some(({ changes }) => changes);
  }

  /** The model saw something of the workspace before this request: an answer from that is grounded. */
  shownBefore = false;

  /** The task came with files: an answer from those is grounded, too. */
  shownWithTask = false;

  /** The request continues the one before it: what was done for that one counts. */
  goOn(): void {
    this.#worked ||= this.shownBefore;
  }

  take(call: EndedCall, exitCode: number | undefined, text: string): void {
    const { tool, target, kind, changes, idle } = call;
    if (idle === true) return;
    this.#takeTrial(call, exitCode, text);
    const ran = exitCode !== undefined && RAN.has(kind) && !NOT_STARTED.has(exitCode);
    if (kind !== "ok" && !ran) return;
    this.#worked = true;
    this.#takeAct(call, exitCode);
    // Only the rest of a result that counted as a look already.
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

  #takeAct({ tool, target, changes }: EndedCall, exitCode: number | undefined): void {
    const isBeside = actsBeside(tool, target, exitCode !== undefined && exitCode !== 0);
    const isTests = tool === "bash" && RUNS_TESTS.test(target);
    this.#actedElsewhere ||= isBeside;
    this.#acted ||= (changes || isBeside) && !isTests;
    if (!isTests || exitCode === undefined) return;
    this.#redTests = exitCode === 0 ? undefined : target;
    this.#greenTests = exitCode === 0;
  }

  /** A command whose program is missing was tried, too. */
  #takeTrial({ tool, target, kind, changes }: EndedCall, exitCode: number | undefined, text: string): void {
    if (tool !== "bash") {
      if (changes && kind === "ok") this.#triedSince = "nothing";
      // An added tool may run anything.
      if (kind === "ok" && !FILE_TOOLS.has(tool)) this.#ran = { command: tool, exitCode: 0, text };
    } else if (exitCode !== undefined && RAN.has(kind)) {
      this.#triedSince = { command: target, exitCode, text };
      if (ONLY_LOOKS.test(target) || DOES_NOTHING.test(target)) return;
      this.#ran = this.#triedSince;
      if (ABOUT_TESTS.test(target)) this.#ranTests = this.#ran;
    }
  }

  /** Whether a call succeeded, or a command ran to its end with any exit code. */
  get worked(): boolean {
    return this.#worked;
  }

  /** Whether an answer about the repository can be based on what was seen of it. */
  get isGrounded(): boolean {
    return this.#worked || this.shownBefore || this.shownWithTask;
  }

  /** Whether a call changed something. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Whether a call changed something, in files or elsewhere. Test runs do not count: what they leave is not work. */
  get acted(): boolean {
    return this.#acted;
  }

  /** Something may have been done that does not show as a change of the workspace's files. */
  get actedBeside(): boolean {
    return this.#actedElsewhere;
  }

  /** The last test run, if it failed. */
  get redTests(): string | undefined {
    return this.#redTests;
  }

  /** The last test run succeeded. */
  get greenTests(): boolean {
    return this.#greenTests;
  }

  /** The last command since the last edit. */
  get triedSince(): EndedCommand | "nothing" {
    return this.#triedSince;
  }

  /** The last command that did more than look at files; a missing program counts as an outcome, too. */
  get ran(): EndedCommand | undefined {
    return this.#ran;
  }

  /** The last such command with words about tests. */
  get ranTests(): EndedCommand | undefined {
    return this.#ranTests;
  }

  /** Files and commands, in the order in which they were first looked at. */
  get looked(): readonly string[] {
    return [...this.#looked];
  }

  /** For a model that keeps looking: ACT_NOW after STALE_LOOKS stale looks in a row, ACT_SOON once. */
  note(intent: Intent): string | undefined {
    if (this.#stale >= STALE_LOOKS) {
      this.#stale = 0;
      return ACT_NOW;
    }
    if (intent !== "change" || this.#looks < MANY_LOOKS || this.#shownNotes.has(ACT_SOON)) return undefined;
    this.#shownNotes.add(ACT_SOON);
    return ACT_SOON;
  }
}

/** How an answer is judged by what was done for it. */
export type Earned =
  | { readonly kind: "earned" }
  /** For the model: told once. */
  | { readonly kind: "nudge"; readonly text: string; readonly demand: Demand | "words" }
  | { readonly kind: "nothing_done"; readonly reason: string };

export const EARNED: Earned = { kind: "earned" };

/** The request, and the kind of model that answers it. */
export interface RequestFacts {
  readonly intent: Intent;
  readonly request: string;
  /** A model with few parameters: it often mistakes a look for the change, and empty words for an answer. */
  readonly isWeak: boolean;
  /** The request only wants something to be run, and to know the outcome. */
  readonly runs?: boolean;
  /** The request only wants information about the repository. */
  readonly looks?: boolean;
}

/**
 * What an answer lacks: any work, the answer itself, the requested change, a trial of the change, success of that
 * trial, a run when only a run was requested, or a run that confirms what the answer says about tests.
 */
export type Lack = "work" | NoAnswer | "change" | "trial" | "success" | "run" | "green";

/** If a call was refused, the refusal is the cause. A person can lift it, and a nudge would hide it. */
export function missingForRequest(
  answer: string,
  facts: RequestFacts,
  deeds: DeedFacts,
  calls: readonly Pick<EndedCall, "refused">[],
): Lack | undefined {
  const isRefused = calls.some(({ refused }) => refused);
  if (facts.intent === "change" && facts.runs === true) return missingForRun(answer, facts, deeds, isRefused);
  const isLook = facts.intent === "repo" || (facts.intent === "change" && facts.looks === true);
  if (facts.intent === "change" && !isLook) return missingForChange(answer, facts, deeds, isRefused);
  if (!isLook || isRefused) return undefined;
  if (!deeds.isGrounded) return "work";
  const none = noAnswerIn(answer, facts.request);
  return none ?? (facts.isWeak && saysOnlyDone(answer) ? "says done" : undefined);
}

/** The request is about running tests. */
const OF_TESTS = /\b(?:(?:unit |e2e |all )*tests|test suite|test-suite|specs)\b/i;

const NAMES_A_LOOK = /\b(?:ls|cat|head|tail|grep|rg|find|tree|pwd|echo|printf|wc|stat|which|git)\b/;

/** The command that counts as run for a request to run something. */
export function commandForRequest(
  { request, isWeak }: Pick<RequestFacts, "request" | "isWeak">,
  { ran, ranTests, triedSince }: Pick<Deeds, "ran" | "ranTests" | "triedSince">,
): EndedCommand | undefined {
  const look = NAMES_A_LOOK.test(request) && triedSince !== "nothing" ? triedSince : undefined;
  return (isWeak && OF_TESTS.test(request) ? ranTests : ran) ?? look;
}

/** A report that the command failed is an answer, too; a report of success is one only if it succeeded. */
function missingForRun(
  answer: string,
  facts: RequestFacts,
  deeds: DeedFacts,
  isRefused: boolean,
): Lack | undefined {
  const { worked, greenTests } = deeds;
  if (isRefused) return undefined;
  const ran = commandForRequest(facts, deeds);
  if (ran === undefined && (facts.isWeak || !worked)) return "run";
  if (ran?.exitCode !== 0 && !greenTests && saysTestsPass(answer)) return "green";
  return noAnswerIn(answer, facts.request);
}

function missingForChange(
  answer: string,
  { request, isWeak }: RequestFacts,
  { worked, changed, acted, actedBeside }: DeedFacts,
  isRefused: boolean,
): Lack | undefined {
  if (isWeak ? acted : changed) return undefined;
  if (!isRefused && !worked) return "work";
  const none = isRefused || actedBeside ? undefined : noAnswerIn(answer, request);
  return none ?? (isWeak ? "change" : undefined);
}

type DeedFacts = Pick<
  Deeds,
  | "worked"
  | "isGrounded"
  | "changed"
  | "acted"
  | "actedBeside"
  | "ran"
  | "ranTests"
  | "triedSince"
  | "greenTests"
>;

const NUDGES: Readonly<Record<"change" | "repo", string>> = {
  change:
    "Nothing was read or changed so far, and nobody is there to answer questions. A change was asked for: call a tool now. Only calls do anything; what stands in the text of a reply is not run.",
  repo: "You looked at nothing of the repository, so this answer is a guess, and nobody is there to answer questions. Call a tool now to look (read_file, grep, list_dir), then answer from what you saw.",
};

const ONLY_LOOKED =
  "You looked, and changed nothing. A change was asked for: make it now with a call. If none is needed, say why in your final answer.";

/** How the run ends if its answer still lacks this. */
export function endWith(
  lack: Lack,
  { intent, runs, looks }: { readonly intent: Intent; readonly runs: boolean; readonly looks: boolean },
  deeds: Deeds,
): Earned {
  switch (lack) {
    case "change":
    case "trial":
      return EARNED;
    case "success":
      return { kind: "nothing_done", reason: failedTrial(deeds) };
    case "run":
      return { kind: "nothing_done", reason: notRun(deeds) };
    case "green":
      return { kind: "nothing_done", reason: `the answer says that tests pass, but ${failedRun(deeds.ran)}` };
    case "work":
      return intent === "change" ? { kind: "nothing_done", reason: "nothing was done" } : EARNED;
    default: {
      const what = intent === "change" && !runs && !looks ? "nothing was changed" : "there is no answer";
      const failed = runs && deeds.ran?.exitCode !== 0 ? `, and ${failedRun(deeds.ran)}` : "";
      return { kind: "nothing_done", reason: `${what}: ${noAnswerReason(lack)}${failed}` };
    }
  }
}

export function demandOf(lack: Lack, intent: Intent): Demand | "words" {
  if (lack === "green") return "words";
  if (lack === "trial" || lack === "run") return "run";
  return intent === "change" && lack !== "work" ? "act" : "call";
}

export const TRY_IT =
  "You changed files and ran nothing since, and nothing else checks them. Run what you changed now, with bash, and look at what it prints; then mend it, or give your final answer.";

const RUN_IT =
  "Nothing was run so far. Only calls do anything; what stands in the text of a reply is not run. Call bash now with the command that was asked for, then say what it printed and whether it succeeded.";
const NOT_GREEN =
  "Your answer says that tests pass, but the last command that you ran failed. Say what really came of it; that they fail, or cannot be run here, is an answer.";

const STILL_FAILS =
  "The last command that you ran failed, so you are not done. Mend what it shows and run it again; if the command itself was wrong, run a right one.";

/** Most bytes of a command or an output that are quoted. */
const MAX_QUOTED = 300;

/** On one line, between backticks. */
export const quotedText = (text: string): string => `\`${visibleLine(headWithin(text, MAX_QUOTED))}\``;

const notRun = ({ ran, worked }: Deeds): string =>
  ran === undefined ? (worked ? "nothing was run" : "nothing was done") : "no tests were run";

const failedTrial = ({ triedSince }: Deeds): string =>
  triedSince === "nothing" ? "nothing was tried" : failedRun(triedSince);

const failedRun = (ran: EndedCommand | undefined): string =>
  ran === undefined
    ? "nothing was run"
    : `the last command that the model ran failed (exit ${ran.exitCode}): ${quotedText(ran.command)}`;

export function nudgeOf(lack: Lack, intent: Intent): string {
  switch (lack) {
    case "work":
      return NUDGES[intent === "change" ? "change" : "repo"];
    case "change":
      return ONLY_LOOKED;
    case "trial":
      return TRY_IT;
    case "success":
      return STILL_FAILS;
    case "run":
      return RUN_IT;
    case "green":
      return NOT_GREEN;
    default:
      return noAnswerNudge(lack);
  }
}

/** What a run has done, judged by its calls. Pure. */

import { anyOf } from "../../core/text/expression-table.ts";
import type { Intent } from "../../core/model-provider.ts";
import type { EndedCall } from "../../core/session.ts";

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
const OTHER_EFFECTS = anyOf([
  "git",
  // Folders, times and owners.
  "mkdir makedirs rmdir mkfifo touch utime chown chgrp setfacl setfattr",
  // Processes, and what later commands find.
  "kill pkill killall nohup export install make systemctl service",
  // Databases, other machines, containers.
  "psql mysql sqlite3 redis-cli mongo\\w* curl wget ssh scp rsync docker podman kubectl",
  /&\s*$/,
  // Places outside the workspace.
  /(?:^|[\s"'=:>])(?:~|\/(?:tmp|home|root|var|etc|opt|usr|srv|mnt|dev\/(?!null)))/,
  /\$(?:HOME|TMPDIR|XDG_)/,
]);

/**
 * A test run by its usual words, in any command of a line. Few options may precede them: the text comes from a model,
 * and is read in one pass.
 */
const RUNS_TESTS = anyOf(
  [
    // Scripts of a project.
    /(?:npm|pnpm|yarn|bun)(?: run)? (?:test|t|check)\b/,
    // Runtimes and test runners.
    /node (?:\S{1,200} ){0,10}--test\b|deno test/,
    /(?:npx |pnpm exec |bunx )?(?:jest|vitest|mocha|ava|tap|pytest|tox|nox|rspec|phpunit|ctest|bats|prove)\b/,
    /python3? -m (?:pytest|unittest)\b/,
    // Build tools.
    /(?:cargo|go|dotnet|swift|mix|composer|rake|bundle exec rake) (?:nextest|test)\b/,
    /(?:mvn|mvnw|\.\/mvnw|gradle|gradlew|\.\/gradlew)\b[^;&|]{0,300}\b(?:test|verify|check)\b/,
    /make (?:\S{1,200} ){0,10}(?:tests?|check)\b/,
  ],
  { before: "(?:^|[\\s;&|(])" },
);

/** Commands in a row that only look at files. */
const ONLY_LOOKS = anyOf(
  [
    "cd ls ll cat head tail less grep rg find fd tree pwd echo printf wc file stat which type sed_-n",
    /git (?:status|log|diff|show|ls-files)/,
  ],
  { before: "^(?:\\s*", after: "\\b(?:[^;&|`$<>]|\\$(?!\\())*(?:&&|;|\\|\\|?|$))+$" },
);

/** An interpreter without input, and commands that only set an exit code. */
const DOES_NOTHING =
  /^\s*(?:(?:ba|da|z|k)?sh|python[\d.]*|node|perl|ruby|true|false|:|exit(?: \d+)?|sleep [\d.]+|clear)\s*$/;

/** A command with words about tests, however the project runs them. */
const ABOUT_TESTS =
  /tests?\b|test[_-]|spec|check|verify|prove\b|\b(?:tox|nox|jest|mocha|bats|ava|tap|suite|ci)\b/i;

/** A git command that failed did nothing. */
const hasOtherEffect = (tool: string, target: string, failed: boolean): boolean =>
  !FILE_TOOLS.has(tool) &&
  (tool !== "bash" || OTHER_EFFECTS.test(target.replaceAll(failed ? /\bgit\b/g : GIT_LOOKS, "")));

/** A command that ran to its end. */
export interface EndedCommand {
  readonly command: string;
  readonly exitCode: number;
  /** Its result, as given to the model. */
  readonly text: string;
}

/**
 * What one call did. Test runs are set apart: what they leave is not work. A call that changed files may have had other
 * effects, too; a call that did neither was a look.
 */
type Deed = "look" | "change" | "other effect" | "change by tests" | "other effect of tests";

function deedsOf({ tool, target, changes }: EndedCall, exitCode: number | undefined): readonly Deed[] {
  const byTests = runsTests(tool, target);
  const deeds: Deed[] = [];
  if (changes) deeds.push(byTests ? "change by tests" : "change");
  if (hasOtherEffect(tool, target, exitCode !== undefined && exitCode !== 0))
    deeds.push(byTests ? "other effect of tests" : "other effect");
  return deeds.length === 0 ? ["look"] : deeds;
}

const runsTests = (tool: string, target: string): boolean => tool === "bash" && RUNS_TESTS.test(target);

/** Where the model saw something of the workspace before its first call for this request. */
type SeenBefore = "earlier request" | "files with the task";

/** What was done for one request, including the calls of its subagents. */
export class Deeds {
  readonly #deeds = new Set<Deed>();
  readonly #seenBefore = new Set<SeenBefore>();
  /** Something was changed before the run was parked, in a box that may be gone: current changes do not show it. */
  readonly changedBefore: boolean;
  readonly #looked = new Set<string>();
  readonly #shown = new Set<string>();
  #lastTests: EndedCommand | undefined;
  #triedSince: EndedCommand | "nothing" = "nothing";
  #ran: EndedCommand | undefined;
  #ranTests: EndedCommand | undefined;
  #stale = 0;
  #looks = 0;
  #wasTold = false;

  /** `before`: the calls up to the point where the run was parked. */
  constructor(before: readonly EndedCall[] = []) {
    if (before.some(({ kind, idle }) => kind === "ok" && idle !== true)) this.#deeds.add("look");
    this.changedBefore = before.some(({ changes }) => changes);
  }

  /** The model saw something of the workspace before its first call: an answer from that is grounded. */
  saw(where: SeenBefore): void {
    this.#seenBefore.add(where);
  }

  /** The request continues the one before it: what was done for that one counts. */
  goOn(): void {
    if (this.shownBefore) this.#deeds.add("look");
  }

  take(call: EndedCall, exitCode: number | undefined, text: string): void {
    const { tool, target, kind, changes, idle } = call;
    if (idle === true) return;
    this.#takeTrial(call, exitCode, text);
    const ran = exitCode !== undefined && RAN.has(kind) && !NOT_STARTED.has(exitCode);
    if (kind !== "ok" && !ran) return;
    for (const deed of deedsOf(call, exitCode)) this.#deeds.add(deed);
    if (exitCode !== undefined && runsTests(tool, target))
      this.#lastTests = { command: target, exitCode, text };
    // Only the rest of a result that counted as a look already.
    if (tool === "show_full") return;
    if (changes) {
      this.#stale = 0;
      this.#looks = 0;
      return;
    }
    if (target !== "") this.#looked.add(target);
    this.#looks += 1;
    this.#stale = this.#shown.has(text) ? this.#stale + 1 : 0;
    this.#shown.add(text);
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
    return this.#deeds.size > 0;
  }

  /** Whether the conversation showed something of the workspace before this request. */
  get shownBefore(): boolean {
    return this.#seenBefore.has("earlier request");
  }

  /** Whether an answer about the repository can be based on what was seen of it. */
  get isGrounded(): boolean {
    return this.worked || this.#seenBefore.size > 0;
  }

  /** Whether a call changed files. */
  get changed(): boolean {
    return this.#did("change", "change by tests");
  }

  /** Whether a call did work, in files or elsewhere. */
  get acted(): boolean {
    return this.#did("change", "other effect");
  }

  /** Something may have been done that does not show as a change of the workspace's files. */
  get actedBeside(): boolean {
    return this.#did("other effect", "other effect of tests");
  }

  #did(...deeds: readonly Deed[]): boolean {
    return deeds.some((deed) => this.#deeds.has(deed));
  }

  /** The last test run. */
  get lastTests(): EndedCommand | undefined {
    return this.#lastTests;
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
    if (intent !== "change" || this.#looks < MANY_LOOKS || this.#wasTold) return undefined;
    this.#wasTold = true;
    return ACT_SOON;
  }
}

/** How the loop and its run end: which replies are final answers, and which of several endings counts. */

import { EXIT, type ExitCode, ONLY_LOOKED, PLAIN_ENDING, type Signal } from "../../core/errors.ts";
import type { Denial, RunStatus } from "../../core/events.ts";
import type { FailureKind, JsonSchema, Message, TextEdges } from "../../core/model-provider.ts";
import type { Question } from "../../core/ports.ts";
import { headWithin } from "../../core/raw-data.ts";
import type { EndedCall, Parked, ParkedChild } from "../../core/session.ts";
import { visibleLine } from "../../core/visible.ts";
import { firstOf } from "../../core/wording.ts";
import { NOTICE } from "../context/history.ts";
import type { EndedCommand } from "./deeds.ts";
import { quotedText } from "./missing-work.ts";

/** How the loop ended. */
export type Ending =
  | { readonly how: "answered" }
  /** Its calls came from a client outside, which has left: there was no task. */
  | { readonly how: "served" }
  | { readonly how: "limit"; readonly which: string; readonly text: string }
  /** The guard gave up on calls that the model kept repeating. */
  | { readonly how: "repeated" }
  | {
      readonly how: "model_failed";
      readonly kind: Exclude<FailureKind, "cancelled" | "too_long">;
      readonly reason: string;
    }
  /** Too many replies in a row had no call that could be read. */
  | { readonly how: "model_broken"; readonly reason: string }
  | { readonly how: "sandbox_lost"; readonly reason: string }
  /** A command touched a canary. */
  | { readonly how: "touched"; readonly reason: string }
  /** The conversation does not fit the window, even compacted. */
  | { readonly how: "too_long"; readonly reason: string }
  | { readonly how: "cancelled"; readonly signal: Signal }
  /** The answer could not be made to fit the output schema. */
  | { readonly how: "misfit"; readonly reason: string }
  /** A change was requested, and no call did anything for it. */
  | { readonly how: "nothing_done"; readonly reason: string }
  /** The required check fails. */
  | { readonly how: "unverified"; readonly reason: string }
  | { readonly how: "parked"; readonly reason: string };

/** What is known about an answered run besides its calls. */
export interface RunFacts {
  readonly strict: boolean;
  /** Null when the request is not a question about the repository. */
  readonly grounded?: boolean | null;
  /** The check that succeeded. */
  readonly verifiedBy?: string | undefined;
  /** Why the successful check proves nothing. */
  readonly tampering?: string | undefined;
  /** A change was requested and no file is changed: what was looked at instead. */
  readonly onlyLooked?: readonly string[] | undefined;
  /** The answer says that something was changed, and nothing was. */
  readonly claims?: boolean;
  /** The run only looked, and only a weak model's word says that nothing has to change. */
  readonly doubted?: boolean;
  /** The answer says that tests pass, and no check confirms it. This is their last run, which failed. */
  readonly redTests?: string | undefined;
  /** A person reads the answer, no call was made for it, and it says what was done. */
  readonly unbacked?: boolean;
  /** Only a run of something was requested: the last such run. */
  readonly ran?: EndedCommand | undefined;
}

export interface RunOutcome {
  readonly status: RunStatus;
  readonly exit_code: ExitCode;
  readonly reason: string;
}

/** For "reader-left", too, nobody is left to read, so it ends like a closed terminal. */
const SIGNALS: Readonly<Record<Signal, readonly [ExitCode, string]>> = {
  SIGINT: [EXIT.interrupted, "Interrupted."],
  SIGTERM: [EXIT.terminated, "Terminated (SIGTERM)."],
  SIGHUP: [EXIT.hangup, "The terminal was closed (SIGHUP)."],
  "reader-left": [EXIT.hangup, "The reader of the output closed it."],
  overtaken: [EXIT.interrupted, "Another candidate finished first, so this one was stopped."],
};

/**
 * Which ending counts when several apply. The first of these does:
 * 1. cancelled: the sender of the signal expects its code;
 * 2. the model or the box failed, a canary was touched, the run is parked, or it had no task: the run did not come to
 *    its end, so it is unknown what it would have made of its refusals;
 * 3. any refusal with `strict`: that is what `strict` asks for;
 * 4. a limit, or a full window: cut short, as in 2. The same for the guard, unless the repeated calls were refused
 *    ones: then the refusal is the cause;
 * 5. a standing refusal: no later call succeeded that changes something or has the same target. It comes before an
 *    answer that does not fit its schema, fails its check or was given without doing anything, because a person can
 *    lift the refusal;
 * 6. otherwise one of those failures, or done. A change that a weak model calls unneeded, without proof, is not done.
 *    With `strict`, neither is an answer about the repository without a look, nor one that claims a change when nothing
 *    changed, or passing tests whose last run failed.
 * Refusals are listed by `denialsOf` in any case.
 */
export function outcomeOf(ending: Ending, calls: readonly EndedCall[], proved: RunFacts): RunOutcome {
  const { strict } = proved;
  const broken = outcomeOfInterruption(ending);
  if (broken !== undefined) return broken;
  const refusal = strict ? calls.findLast(({ refused }) => refused) : standingRefusal(calls);
  if (strict && refusal !== undefined) return refusedBy(refusal);
  const cut = cutShort(ending, calls);
  if (cut !== undefined) return cut;
  if (refusal !== undefined) return refusedBy(refusal);
  const failed = failedBy(ending) ?? doubtedBy(proved) ?? (strict ? unproved(proved) : undefined);
  if (failed !== undefined) return { status: "failed", exit_code: EXIT.failed, reason: failed };
  return { status: "done", exit_code: EXIT.done, reason: doneBecause(proved) };
}

/** What `strict` does not accept as an end. */
function unproved({ grounded, claims, redTests }: RunFacts): string | undefined {
  if (grounded === false) return `${PLAIN_ENDING} without looking at the repository.`;
  if (claims === true) return `${CLAIMED}.`;
  return redTests === undefined ? undefined : `The model's answer says that tests pass, ${redRun(redTests)}.`;
}

const redRun = (command: string): string => `but their last run failed: ${quotedText(command)}`;

const CLAIMED = "The model changed nothing, although its answer says that it did";

function failedBy(ending: Ending): string | undefined {
  const { how } = ending;
  return how === "nothing_done" || how === "misfit" || how === "unverified" ? ending.reason : undefined;
}

function doubtedBy({ doubted, claims, onlyLooked = [] }: RunFacts): string | undefined {
  if (doubted !== true) return undefined;
  if (claims === true) return `${CLAIMED}.`;
  return `The model changed nothing. It looked at ${listPlaces(onlyLooked)}; a change was requested, and a small model's word that none is needed is not proof (--check CMD provides one).`;
}

function doneBecause({
  grounded,
  verifiedBy,
  tampering,
  onlyLooked,
  claims,
  redTests,
  ran,
  unbacked,
}: RunFacts): string {
  const proof = verifiedBy === undefined ? tampering : `verified by \`${verifiedBy}\``;
  const red = redTests === undefined ? "" : `; it says that tests pass, ${redRun(redTests)}`;
  const verified = `${proof === undefined ? "" : `; ${proof}`}${red}`;
  if (onlyLooked !== undefined) {
    const what = claims === true ? `${CLAIMED}. It looked at ` : ONLY_LOOKED;
    return `${what}${listPlaces(onlyLooked)}${verified}.`;
  }
  if (unbacked === true) return `${PLAIN_ENDING} but made no calls: nothing backs what it says was done.`;
  if (grounded === false) return `${PLAIN_ENDING} without looking at the repository.`;
  const ended =
    ran === undefined || ran.exitCode === 0 ? "" : `; ${quotedText(ran.command)} exited with ${ran.exitCode}`;
  return `${PLAIN_ENDING}${ended}${verified}.`;
}

const MAX_LISTED = 5;

const listPlaces = (looked: readonly string[]): string =>
  firstOf(looked, MAX_LISTED, visibleLine) || "the workspace";

/** All refusals in order, whatever the model says about them, and whether or not it got around them. */
export function denialsOf(calls: readonly EndedCall[]): readonly Denial[] {
  return calls
    .filter(({ refused }) => refused)
    .map(({ call, tool, target, decision, rule, reason }) => ({
      call,
      tool,
      target,
      decision,
      rule,
      reason,
    }));
}

function outcomeOfInterruption(ending: Ending): RunOutcome | undefined {
  switch (ending.how) {
    case "cancelled": {
      const [exit_code, reason] = SIGNALS[ending.signal];
      return { status: "interrupted", exit_code, reason };
    }
    case "model_failed":
    case "model_broken":
      return { status: "model", exit_code: EXIT.model, reason: ending.reason };
    case "sandbox_lost":
      return { status: "sandbox", exit_code: EXIT.sandbox, reason: ending.reason };
    case "touched":
      return { status: "failed", exit_code: EXIT.failed, reason: ending.reason };
    case "parked":
      return { status: "parked", exit_code: EXIT.parked, reason: ending.reason };
    case "served":
      return { status: "done", exit_code: EXIT.done, reason: "The client disconnected." };
    default:
      return undefined;
  }
}

function cutShort(ending: Ending, calls: readonly EndedCall[]): RunOutcome | undefined {
  switch (ending.how) {
    case "limit":
      return { status: "budget", exit_code: EXIT.budget, reason: ending.text };
    case "too_long":
      return { status: "failed", exit_code: EXIT.failed, reason: ending.reason };
    case "repeated": {
      const refusal = repeatedRefusal(calls);
      return refusal === undefined
        ? { status: "budget", exit_code: EXIT.budget, reason: "The model kept repeating the same calls." }
        : refusedBy(refusal);
    }
    default:
      return undefined;
  }
}

/** The refusal among the last calls, as many as a cycle can have; calls that were broken up never ran. */
function repeatedRefusal(calls: readonly EndedCall[]): EndedCall | undefined {
  const last = calls.filter(({ kind }) => kind !== "invalid").slice(-4);
  return last.some(({ changes }) => changes) ? undefined : last.findLast(({ refused }) => refused);
}

/** The last refusal, unless the run got around it. */
export function standingRefusal(calls: readonly EndedCall[]): EndedCall | undefined {
  const at = calls.findLastIndex(({ refused }) => refused);
  const refusal = calls[at];
  if (refusal === undefined) return undefined;
  const around = calls
    .slice(at + 1)
    .some(
      ({ kind, changes, target }) =>
        kind === "ok" && (changes || (target !== "" && target === refusal.target)),
    );
  return around ? undefined : refusal;
}

function refusedBy({ tool, target, reason }: EndedCall): RunOutcome {
  const what = target === "" ? tool : `${tool} ${target}`;
  return { status: "refused", exit_code: EXIT.refused, reason: `Refused: ${what} (${reason})` };
}

export type LoopEnd =
  | { readonly how: "answered"; readonly text: string }
  | { readonly how: "cancelled" }
  | { readonly how: "parked"; readonly reason: string; readonly waiting: Waiting }
  | Exclude<Ending, { readonly how: "answered" | "cancelled" | "parked" | "served" }>;

/** What waits when a loop stops at a call that needs a person. */
export type Waiting = Pick<Parked, "question" | "malformed" | "children">;

/** Thrown by a call that cannot go on without a person; also passes through the tool that started a subagent. */
export class WaitsForPerson extends Error {
  override readonly name = "WaitsForPerson";
  readonly question: Question;
  /** The subagent in which the question came up. */
  readonly child: ParkedChild | undefined;

  constructor(question: Question, child?: ParkedChild) {
    super("it waits for a person");
    this.question = question;
    this.child = child;
  }
}

/** For the model, with the first results after the question. */
export const NEW_BOX =
  "A person was asked about this, which took time. The box is a new one: background jobs and /tmp are gone, and files may have changed.";

/** The same, when the box was kept meanwhile. */
export const SAME_BOX =
  "A person was asked about this, which took time. The box has waited: background jobs and /tmp are as they were, but files of the workspace may have changed.";

/** Most bytes; the whole text is shown with the question. */
const MAX_QUESTION = 300;

/** For people: what waits, and why. */
export function waitsFor({ tool, text, decision: { rules } }: Question): string {
  const [rule] = rules;
  const why = rule === undefined ? "" : ` (${rule.reason})`;
  const head = headWithin(text, MAX_QUESTION);
  return `${[tool, head === text ? text : `${head}…`].filter(Boolean).join(": ")}${why}`;
}

/** A reply, or part of one that the server cut. */
interface AnswerPart {
  readonly text: string;
  readonly edges?: TextEdges | undefined;
}

/** Decides what happens with a reply that calls nothing. */
export interface AnswerGate {
  /** The format for the next reply. */
  readonly format: () => JsonSchema | undefined;
  /** Returns the end, or a message that asks for more. `isRepetitive`: the reply was cut because it repeated itself. */
  take(
    part: AnswerPart,
    cut: boolean,
    isRepetitive?: boolean,
  ): LoopEnd | Extract<Message, { readonly role: "user" }>;
  /** The model called something: its earlier text is not the beginning of its answer. */
  called(): void;
}

/** Most parts of a reply that the server cuts at its length limit; after one more cut it is not an answer. */
const MAX_PARTS = 3;

const neverFinished = (times: number): LoopEnd => ({
  how: "model_broken",
  reason: `The model's answer was cut off at its length limit ${times} times in a row and never finished.`,
});

/** Handles replies that repeat themselves. They are not continued: that would only repeat them further. */
class RepeatedReplies {
  #inARow = 0;

  over(): void {
    this.#inARow = 0;
  }

  take(): ReturnType<AnswerGate["take"]> {
    this.#inARow += 1;
    if (this.#inARow >= MAX_PARTS)
      return {
        how: "model_broken",
        reason: `The model repeated itself endlessly in ${this.#inARow} replies in a row.`,
      };
    return {
      role: "user",
      text: `${NOTICE}You said the same over and over, so your reply was ended, and nothing of it counts. Begin anew: make one call, or give your answer in a few sentences.`,
    };
  }
}

/** Parts continue one another exactly, but some models begin every reply with the same white space. */
function joinParts(parts: readonly AnswerPart[]): string {
  const habit = parts[0]?.edges?.before;
  const joined = parts.map(({ text, edges }, at) => {
    const before = at === 0 || edges?.before === habit ? "" : (edges?.before ?? "");
    return before + text + (at === parts.length - 1 ? "" : (edges?.after ?? ""));
  });
  return joined.join("");
}

export class PlainAnswer implements AnswerGate {
  readonly #parts: AnswerPart[] = [];
  readonly #rounds = new RepeatedReplies();

  format(): undefined {
    return undefined;
  }

  called(): void {
    this.#parts.length = 0;
    this.#rounds.over();
  }

  take(part: AnswerPart, cut: boolean, isRepetitive = false): ReturnType<AnswerGate["take"]> {
    if (isRepetitive) {
      this.#parts.length = 0;
      return this.#rounds.take();
    }
    this.#rounds.over();
    this.#parts.push(part);
    if (!cut) return { how: "answered", text: joinParts(this.#parts.splice(0)) };
    if (this.#parts.length >= MAX_PARTS) return neverFinished(this.#parts.length);
    return {
      role: "user",
      text: `${NOTICE}Your reply was cut at its length limit. Go on exactly where it stopped.`,
    };
  }
}

/** Checks a text against a schema: returns its JSON, or what is wrong. */
export type CheckAnswer = (
  text: string,
) => { readonly json: string } | { readonly issues: readonly string[] };

const MAX_REPAIRS = 3;

/** The answer has to be JSON that fits a schema; the model is told what is wrong, a few times. */
export class FittedAnswer implements AnswerGate {
  #repairs = 0;
  readonly #rounds = new RepeatedReplies();
  readonly #schema: JsonSchema;
  readonly #check: CheckAnswer;

  constructor(schema: JsonSchema, check: CheckAnswer) {
    this.#schema = schema;
    this.#check = check;
  }

  format(): JsonSchema | undefined {
    // Before the first answer, a format would keep the model from calling tools.
    return this.#repairs === 0 ? undefined : this.#schema;
  }

  called(): void {
    this.#rounds.over();
  }

  take({ text }: AnswerPart, cut: boolean, isRepetitive = false): ReturnType<AnswerGate["take"]> {
    if (isRepetitive) return this.#rounds.take();
    this.#rounds.over();
    // A cut-off number is still a valid number.
    const checked = cut ? { issues: ["it was cut at its length limit"] } : this.#check(text);
    if ("json" in checked) return { how: "answered", text: checked.json };
    const issues = checked.issues.join("; ");
    if (cut && this.#repairs >= MAX_REPAIRS) return neverFinished(this.#repairs + 1);
    if (this.#repairs >= MAX_REPAIRS)
      return { how: "misfit", reason: `the answer does not fit the output schema: ${issues}` };
    this.#repairs += 1;
    return {
      role: "user",
      text: `${NOTICE}The final answer must be JSON alone that fits this schema:\n${JSON.stringify(this.#schema)}\nWrong with yours: ${issues}\nAnswer again with nothing but the JSON.`,
    };
  }
}

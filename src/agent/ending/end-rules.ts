/** Why a run may not end with its answer yet. Pure, except for the files that are read, the check, and a question. */

import type { Intent } from "../../core/model-provider.ts";
import type { EndedCall } from "../../core/session.ts";
import type { Demand, ShownFile } from "../next-reply.ts";
import { asksOnCondition, saysNotNeeded } from "./answer-words.ts";
import { brokenFiles, brokenReason, brokenText, type YamlError } from "./broken-syntax.ts";
import type { Deeds } from "./deeds.ts";
import { type AskAnew, ExpectedOutput } from "./expected-output.ts";
import { missingForRequest, type Objection, objectionTo, type RequestFacts, TRY_IT } from "./missing-work.ts";
import { notAsNamed, renamingOf, thingsNotAsNamed, untouchedOf } from "./named-in-request.ts";
import type { LoopEnd } from "./outcome.ts";
import type { CheckContext, Verification } from "./verification.ts";
import { WeakModelDemands } from "./weak-model-demands.ts";

/** The run whose answer is judged. */
export interface JudgedRun extends CheckContext {
  readonly intent: { readonly intent: Intent };
  readonly deeds: Deeds;
  readonly ended: readonly EndedCall[];
}

interface JudgeOptions {
  /** A turn is left. */
  readonly mayTell: boolean;
  /** Asks the model in a new conversation. */
  readonly ask: AskAnew;
  readonly signal: AbortSignal;
}

export type EndVerdict =
  | { readonly kind: "earned" }
  | { readonly kind: "told"; readonly text: string; readonly demand: Demand | "words" }
  | { readonly kind: "ends"; readonly end: LoopEnd };

/** One answer under judgement. Each rule reads what it needs of it. */
interface Answer extends JudgeOptions {
  readonly text: string;
  readonly run: JudgedRun;
  readonly rules: EndRules;
  readonly facts: RequestFacts;
  /** Changed files that do not parse; examined once. */
  readonly broken: () => Promise<Broken | undefined>;
}

interface EndRule {
  readonly name: string;
  /** How the run ends when the model is told no more. */
  readonly how: "nothing_done" | "unverified";
  readonly objection: (answer: Answer) => Objection | undefined | Promise<Objection | undefined>;
}

/**
 * What an answer has to stand up to, in this order. The model is told the first objection that it was not told yet;
 * without a turn for that, the run ends for the reason of the objection, if it has one, and else the next rule is asked.
 */
const RULES: readonly EndRule[] = [
  { name: "something was done, and answered", how: "nothing_done", objection: lacking },
  { name: "a round of repair had a call", how: "unverified", objection: idleRepair },
  { name: "what the request names is so", how: "nothing_done", objection: namedOtherwise },
  { name: "changed files parse", how: "unverified", objection: unparsed },
  { name: "changes were tried", how: "nothing_done", objection: untried },
  { name: "the trial succeeded", how: "nothing_done", objection: failedTrial },
  { name: "it printed what the model expects", how: "nothing_done", objection: unexpectedOutput },
  { name: "the check succeeds", how: "unverified", objection: failedCheck },
  { name: "a check or a parser proves changes", how: "unverified", objection: unproven },
];

/** What a run without a person demands of an answer before it may end. A chat and a subagent have no such rules. */
export class EndRules {
  facts: Omit<RequestFacts, "intent"> = { request: "", isWeak: false };
  candidate: number | undefined;
  filesBefore: readonly ShownFile[] = [];
  readonly verification: Verification | null;
  readonly yamlError: YamlError | undefined;
  readonly expectedOutput = new ExpectedOutput();
  readonly demands = new WeakModelDemands(this);
  readonly #told = new Set<string>();
  /** The number of calls at which the model was told to repair. */
  #repairFrom: number | undefined;

  constructor(verification: Verification | null, yamlError?: YamlError) {
    this.verification = verification;
    this.yamlError = yamlError;
  }

  async judge(text: string, run: JudgedRun, options: JudgeOptions): Promise<EndVerdict> {
    const answer = this.#answer(text, run, options);
    for (const { how, objection } of RULES) {
      const { told, reason } = (await objection(answer)) ?? {};
      if (options.signal.aborted) return { kind: "ends", end: { how: "cancelled" } };
      if (told !== undefined && options.mayTell && this.#tellOnce(told.once))
        return { kind: "told", text: told.text(), demand: told.demand };
      if (reason !== undefined) return { kind: "ends", end: { how, reason } };
    }
    return { kind: "earned" };
  }

  #answer(text: string, run: JudgedRun, options: JudgeOptions): Answer {
    let broken: Promise<Broken | undefined> | undefined;
    const facts = { ...this.facts, intent: run.intent.intent };
    const read = (): Promise<Broken | undefined> => (broken ??= brokenIn(run, this, options.signal));
    return { ...options, text, run, rules: this, facts, broken: read };
  }

  #tellOnce(once: string | undefined): boolean {
    if (once === undefined) return true;
    if (this.#told.has(once)) return false;
    this.#told.add(once);
    return true;
  }

  /** The model is told to repair, after this many calls. */
  repairs(calls: number): void {
    this.#repairFrom = calls;
  }

  /** Whether a weak model answered a round of repair without a call; true once a round. */
  isIdleRepair(calls: number): boolean {
    const isIdle = this.facts.isWeak && this.#repairFrom === calls;
    this.#repairFrom = undefined;
    return isIdle;
  }

  /**
   * Whether a weak model's word that nothing has to change is not enough. It is believed when the request left that
   * open and the answer says so plainly, or when the user's own check succeeds.
   */
  doubts(answer: string): boolean {
    const { request, isWeak } = this.facts;
    if (!isWeak || this.verification?.isProof === true) return false;
    return !(asksOnCondition(request) && saysNotNeeded(answer));
  }
}

function lacking({ text, facts, run: { deeds, ended } }: Answer): Objection | undefined {
  const lack = missingForRequest(text, facts, deeds, ended);
  return lack && objectionTo(lack, facts, deeds);
}

/** The check would only fail again, and the round be lost. */
const REPAIR_NOW =
  "You called nothing, so nothing is repaired, and the check still fails as it did. Call a tool now that mends its cause.";

function idleRepair({ rules, run, mayTell }: Answer): Objection | undefined {
  if (!mayTell || !rules.isIdleRepair(run.ended.length)) return undefined;
  return { told: { text: () => REPAIR_NOW, demand: "edit" } };
}

/** What the request states by name and is not so: about files, and for a weak model about their contents, too. */
async function namedOtherwise({ facts, run }: Answer): Promise<Objection | undefined> {
  const { changed, acted } = run.deeds;
  const { request, isWeak } = facts;
  if (facts.intent !== "change" || run.mode === "read-only") return undefined;
  // The claim that nothing needs to be done is believed, and reported as such.
  if (!isWeak && !changed && !acted) return undefined;
  const files = await notAsNamed(request, run.box);
  const things = isWeak
    ? [...(await thingsNotAsNamed(request, run.box)), ...(await untouchedOf(request, run.box))]
    : [];
  if (files === undefined && things.length === 0) return undefined;
  const wrong = [...(files === undefined ? [] : [files]), ...things].join(", ");
  const hint = files === undefined ? renamingOf(request) : "bash has rm and mv";
  return {
    told: { text: () => namedText(wrong, hint), demand: "act", once: "named files" },
    reason: `what was asked for is not done: ${wrong}`,
  };
}

/** A small model takes a hint for an instruction: `rm` is only mentioned for files. */
const namedText = (wrong: string, hint: string | undefined): string =>
  `It is not done: ${wrong}. Do it now with a call${hint === undefined ? "" : ` (${hint})`}, or say in your final answer why it cannot be.`;

/** In words for the model and for people. */
interface Broken {
  readonly text: string;
  readonly reason: string;
}

/** A weak model's changes that no longer parse. */
async function brokenIn(run: JudgedRun, rules: EndRules, signal: AbortSignal): Promise<Broken | undefined> {
  if (!rules.facts.isWeak || !run.deeds.changed) return undefined;
  const broken = await brokenFiles({ ...run, yamlError: rules.yamlError }, signal);
  return broken.length === 0 ? undefined : { text: brokenText(broken), reason: brokenReason(broken) };
}

/** What becomes of it is decided after the check. */
async function unparsed({ broken }: Answer): Promise<Objection | undefined> {
  const found = await broken();
  return found && { told: { text: () => found.text, demand: "call", once: "syntax" } };
}

/** When nothing checks a weak model's changes, the model has to try them itself, and to see what it expects. */
const hasToTry = ({ facts, run, rules: { verification } }: Answer): boolean =>
  facts.isWeak && facts.intent === "change" && run.deeds.changed && verification?.checks !== true;

/** A model that was told is let off, unless its last trial did not print what it expects. */
function untried(answer: Answer): Objection | undefined {
  const { facts, run, rules } = answer;
  if (!hasToTry(answer) || run.deeds.triedSince !== "nothing") return undefined;
  const { reason } = rules.expectedOutput;
  if (reason === undefined) return objectionTo("trial", facts, run.deeds);
  return { told: { text: () => TRY_IT, demand: "run", once: "another trial" }, reason };
}

/** Commands whose exit code is an answer, not a failure. */
const ANSWERS = /^\s*(?:!|\[|test\b|grep\b|rg\b|diff\b|cmp\b|git (?:diff|grep)\b)/;

function failedTrial(answer: Answer): Objection | undefined {
  const { triedSince } = answer.run.deeds;
  if (!hasToTry(answer) || triedSince === "nothing") return undefined;
  const isFailure = triedSince.exitCode !== 0 && !ANSWERS.test(triedSince.command);
  return isFailure ? objectionTo("success", answer.facts, answer.run.deeds) : undefined;
}

async function unexpectedOutput(answer: Answer): Promise<Objection | undefined> {
  const { facts, run, rules, ask } = answer;
  const { triedSince } = run.deeds;
  if (!hasToTry(answer) || triedSince === "nothing" || triedSince.exitCode !== 0) return undefined;
  const { expectedOutput, filesBefore: files } = rules;
  if (await expectedOutput.fits(triedSince, { request: facts.request, files }, ask)) return undefined;
  return {
    told: { text: () => expectedOutput.tell(), demand: "edit", once: "expectation" },
    reason: expectedOutput.reason,
  };
}

async function failedCheck({ facts, run, rules, signal, mayTell }: Answer): Promise<Objection | undefined> {
  const proof = await rules.verification?.after(run, signal, !mayTell);
  switch (proof?.kind) {
    case "repair":
      rules.repairs(run.ended.length);
      return { told: { text: () => proof.text, demand: "words" } };
    case "red":
      return { reason: proof.reason };
    case "unknown":
      return facts.isWeak ? { reason: proof.reason } : undefined;
    default:
      return undefined;
  }
}

/** A successful check outweighs a parser's error. */
async function unproven({ rules: { verification }, broken }: Answer): Promise<Objection | undefined> {
  const isProven = (verification?.verified ?? null) !== null;
  return isProven ? undefined : await broken();
}

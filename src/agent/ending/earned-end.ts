import { brokenFiles, brokenReason, brokenText, type Parsed, type YamlError } from "./broken-syntax.ts";
import type { Mode } from "../../core/decision.ts";
import { headWithin } from "../../core/text/bytes.ts";
import { visibleLine } from "../../core/text/visible.ts";
import { type Demand, ownText, type ShownFile } from "../next-reply.ts";
import type { Intent } from "../../core/messages.ts";
import type { EndedCall } from "../../core/session.ts";
import { asksOnCondition, saysNotNeeded } from "./no-answer.ts";
import {
  type Asked,
  demandOf,
  type Earned,
  EARNED,
  endWith,
  type Lack,
  lackOf,
  NAMED,
  nudgeOf,
  ranFor,
  TRY_IT,
} from "./answer-lack.ts";
import type { Deeds } from "./deeds.ts";
import {
  type AskAnew,
  expectedOf,
  isAsExpected,
  isComparable,
  printedIn,
  type Unexpected,
  unexpectedReason,
  unexpectedText,
} from "./expected-output.ts";
import { notAsNamed, untouchedOf } from "./named-files.ts";
import { renamingOf, thingsNotAsNamed } from "./named-things.ts";
import type { Verification } from "./verification.ts";

/** Whether what was done earns the ending that the model claims. Pure, but for files that are parsed. */

/** Whose exit code is an answer, and no failure. */
const ANSWERS = /^\s*(?:!|\[|test\b|grep\b|rg\b|diff\b|cmp\b|git (?:diff|grep)\b)/;

/** Said where a round of repair was answered by words alone: what was not touched fails as before, and a round would be lost. */
export const REPAIR_NOW =
  "You called nothing, so nothing is repaired, and the check still fails as it did. Call a tool now that mends its cause.";

/** What has to succeed, and what it said. */
export interface FailingCheck {
  readonly command: string;
  readonly said: string;
  /** How often a file was given up: another one is asked for then. */
  readonly vain: number;
  /** What the same request is asked at above the usual temperature, where it brought nothing new or is begun anew. */
  readonly rise: number;
  /** The file is one that the model wrote and then copied: where it says first what is wrong, it writes another. */
  readonly mends: boolean;
  /** What it said of that, where it wrote no file behind it: it is asked for the file then. */
  readonly finding?: string | undefined;
  /** Asked by the task and the files alone: nothing of what the check says, which a small model takes for the whole of its task. */
  readonly byTask: boolean;
  /** The files as they were before the task, where it is begun anew from these. */
  readonly anew?: readonly ShownFile[] | undefined;
}

const LACKS: ReadonlySet<Lack> = new Set(["work", "change", "trial", "success", "run", "green"]);

/** Replies that have to be calls, and of these the first that may be any. */
const MOST_DEMANDS = 6;
const LOOKS_FIRST = 3;
/** Replies that have to be calls because the check behind the last change failed. */
const MOST_MENDS = 8;

/** Replies in a row that left the files as the check had failed on before. */
const MOST_FRUITLESS = 3;

/**
 * Whole files of a candidate from the same beginning: a small model rather writes another file right than that it finds what
 * is wrong in its own. What is begun anew is asked for more freely each time.
 */
const MOST_OF_A_START = 3;
/** Added to the temperature where the likeliest file is the one that is there, and with each new beginning. */
const RISE_AGAIN = 0.5;
const RISE_ANEW = 0.3;

/** What a run without a person demands of an answer before it is its end. A chat, and a subagent, have none. */
export class EndRules {
  asked: Omit<Asked, "intent"> = { request: "", isWeak: false };
  /** Which of several candidates it is, from 1 on: where one goes round in circles another is of more use than its next reply. */
  candidate: number | undefined;
  /** As they were before the task, where they were shown with it. */
  filesBefore: readonly ShownFile[] = [];
  readonly verification: Verification | null;
  readonly #yamlError: YamlError | undefined;
  readonly #told = new Set<string>();
  #repairFrom: number | undefined;
  #demanded = 0;
  #mends = 0;
  /** The files as far as they stand before the model, each time that the check failed on them. */
  readonly #failedOn = new Set<string>();
  #fruitless = 0;
  #rewritings = 0;
  #inVain = 0;
  #vain = 0;
  #starts = 0;
  #ofStart = 0;
  #wrote = false;
  /** The last file was asked for with what is wrong in it. */
  #mending = false;
  #finding: string | undefined;
  /** What the last trial printed, where that was not as it expects. */
  #wrong: Unexpected | undefined;
  readonly #expected = new Map<string, Promise<string | undefined>>();

  constructor(verification: Verification | null, yamlError?: YamlError) {
    this.verification = verification;
    this.#yamlError = yamlError;
  }

  /** By the answer and by what was done for it. */
  earned(answer: string, { intent, deeds, ended }: RunSoFar, mayTell: boolean): Earned {
    const asked = { ...this.asked, intent: intent.intent };
    return this.#met(lackOf(answer, asked, deeds, ended), { intent, deeds, ended }, mayTell);
  }

  /** Where nothing checks what a weak model has changed, it has to have tried it itself, and to have seen what it expects. */
  async tried(run: RunSoFar, mayTell: boolean, ask: AskAnew): Promise<Earned> {
    const { changed, triedSince } = run.deeds;
    const isChecked = this.verification?.checks === true;
    if (!this.asked.isWeak || run.intent.intent !== "change" || !changed || isChecked) return EARNED;
    if (triedSince === "nothing") return this.#untried(run, mayTell);
    const { exitCode, command, text } = triedSince;
    if (exitCode !== 0) return this.#met(ANSWERS.test(command) ? undefined : "success", run, mayTell);
    this.#wrong = await this.#unexpected(command, printedIn(text), ask);
    if (this.#wrong === undefined) return EARNED;
    return mayTell && this.#tell("expectation")
      ? { kind: "nudge", text: unexpectedText(this.#wrong), demand: "edit" }
      : { kind: "nothing_done", reason: unexpectedReason(this.#wrong) };
  }

  /** It is let off, having been told, but where the last that it tried was not as it expects. */
  #untried(run: RunSoFar, mayTell: boolean): Earned {
    if (this.#wrong === undefined) return this.#met("trial", run, mayTell);
    return mayTell && this.#tell("another trial")
      ? { kind: "nudge", text: TRY_IT, demand: "run" }
      : { kind: "nothing_done", reason: unexpectedReason(this.#wrong) };
  }

  /** Asked once for each command. */
  async #unexpected(command: string, printed: string, ask: AskAnew): Promise<Unexpected | undefined> {
    if (!isComparable(printed)) return undefined;
    const about = { request: this.asked.request, files: this.filesBefore };
    const asked = this.#expected.get(command) ?? expectedOf(ask, about, command);
    this.#expected.set(command, asked);
    const expected = await asked;
    return expected === undefined || isAsExpected(expected, printed)
      ? undefined
      : { command, expected, printed };
  }

  /** Each kind of lack is told once, where there is a turn left for it; what stays of it decides the end. */
  #met(lack: Lack | undefined, { intent: { intent }, deeds }: RunSoFar, mayTell: boolean): Earned {
    if (lack === undefined) return EARNED;
    const kind = LACKS.has(lack) ? lack : "answer";
    if (mayTell && this.#tell(kind))
      return { kind: "nudge", text: nudgeOf(lack, intent), demand: demandOf(lack, intent) };
    return endWith(lack, { intent, runs: this.asked.runs === true }, deeds);
  }

  /**
   * What a weak model has to do where its replies are held: as long as nothing is changed that was to be changed, to call a
   * tool, and then one that acts, for some replies each; after that it may have its reasons. Where the check behind its last
   * change failed it has to mend that. Left the choice, such a model answers that it is done, or looks at the same again.
   */
  demandOn({ intent, deeds, mode }: RunSoFar & { readonly mode: Mode }): Demand | undefined {
    const { isWeak, looks } = this.asked;
    if (!isWeak || looks === true || intent.intent !== "change" || mode === "read-only") return undefined;
    if (this.asked.runs === true) return this.#run(deeds);
    if (deeds.acted) return this.#mend(deeds);
    this.#demanded += 1;
    if (this.#demanded <= LOOKS_FIRST) return "call";
    return this.#demanded <= MOST_DEMANDS ? "act" : undefined;
  }

  #run(deeds: Deeds): Demand | undefined {
    if (ranFor(this.asked, deeds) !== undefined || this.#demanded >= LOOKS_FIRST) return undefined;
    this.#demanded += 1;
    return "run";
  }

  #mend(deeds: Deeds): Demand | undefined {
    if (!this.#fails(deeds) || this.#mends >= MOST_MENDS) return undefined;
    this.#mends += 1;
    return "call";
  }

  /** The check was run since the last change, by us or by the model, and failed. */
  #fails({ triedSince }: Deeds): boolean {
    const check = this.verification;
    const sawRed =
      triedSince !== "nothing" && triedSince.command === check?.command && triedSince.exitCode !== 0;
    return check?.isRed === true || sawRed;
  }

  /** Before each reply: whether the one before it left the files as the check had failed on already; of a candidate, why it ends. */
  circled(deeds: Deeds, files: readonly ShownFile[]): string | undefined {
    if (!this.asked.isWeak || files.length === 0 || !this.#fails(deeds)) return undefined;
    const state = JSON.stringify(files);
    this.#fruitless = this.#failedOn.has(state) ? this.#fruitless + 1 : 0;
    this.#failedOn.add(state);
    if (!this.#isCandidate) return undefined;
    const command = visibleLine(headWithin(this.verification?.command ?? "", NAMED));
    if (this.#fruitless >= MOST_FRUITLESS)
      return `\`${command}\` still fails, and ${MOST_FRUITLESS} replies in a row left the files as it had failed on before.`;
    return this.#rewritings < MOST_MENDS
      ? undefined
      : `\`${command}\` still fails, and whole files were asked for ${MOST_MENDS} times.`;
  }

  /**
   * The check that fails where the next request of a weak model is for a whole file: of a candidate each is, of another run
   * those behind a reply that changed nothing.
   */
  rewrites({ intent, deeds, mode }: RunSoFar & { readonly mode: Mode }): FailingCheck | undefined {
    const { verification, asked } = this;
    const mayWrite = asked.isWeak && intent.intent === "change" && mode !== "read-only";
    if (verification === null || !mayWrite || this.#rewritings >= MOST_MENDS) return undefined;
    const isDue = this.#isCandidate || this.#fruitless > 0;
    if (!isDue || !(deeds.acted ? this.#fails(deeds) : verification.wasRed)) return undefined;
    return this.#another(verification);
  }

  #another(verification: Verification): FailingCheck | undefined {
    const finding = this.#finding;
    this.#finding = undefined;
    this.#mending = false;
    if (finding !== undefined) return this.#failing(verification, { rise: 0, mends: true, finding });
    const isVain = this.#inVain > 1;
    const isAgain = this.#inVain === 1;
    if (isVain) {
      this.#inVain = 0;
      this.#vain += 1;
      if (!this.#isCandidate) return undefined;
    }
    if (this.#isCandidate && (isVain || this.#ofStart >= MOST_OF_A_START)) {
      this.#starts += 1;
      this.#ofStart = 0;
      this.#wrote = false;
    }
    const mends = this.#isCandidate && this.#wrote && isAgain;
    const rise = (isAgain ? RISE_AGAIN : 0) + this.#starts * RISE_ANEW;
    this.#mending = mends;
    return this.#failing(verification, { rise, mends });
  }

  #failing(
    { command, said, saidBefore }: Verification,
    how: Pick<FailingCheck, "rise" | "mends" | "finding">,
  ): FailingCheck {
    const about = { command, vain: this.#vain, byTask: !this.#wrote && this.#beginsByTask(), ...how };
    if (this.#starts === 0 || this.#wrote) return { ...about, said };
    const anew = this.filesBefore.map(({ path, text }) => ({ path, text: ownText(text) }));
    return { ...about, said: saidBefore, anew };
  }

  /** The two ways to ask bring other files of the same model: beginnings take turns, and so do the first ones of candidates. */
  #beginsByTask(): boolean {
    return this.candidate !== undefined && (this.candidate + this.#starts) % 2 === 0;
  }

  /** What came of it: a file that is another than it was, or nothing. Behind two of these a candidate begins anew, and of another run the usual request has its turn. */
  rewrote(isNew: boolean, finding?: string): void {
    if (!isNew && this.#mending) this.#finding = finding;
    // These have a bound of their own, within which a new beginning has to have its turns.
    if (this.#isCandidate) this.#fruitless = 0;
    this.#ofStart += 1;
    this.#rewritings += 1;
    this.#inVain = isNew ? 0 : this.#inVain + 1;
    if (isNew) this.#wrote = true;
  }

  /** The check that succeeds behind a file that was written so: nothing is left but the answer, which is asked for once. */
  closes(): string | undefined {
    const { verification } = this;
    if (verification?.isGreen !== true || !this.#isCandidate || this.#rewritings === 0) return undefined;
    return this.#tell("closing") ? verification.command : undefined;
  }

  /** Of a weak model's changes, what cannot be parsed any more, for the model and for people. */
  async brokenIn(
    agent: Parsed & { readonly deeds: Pick<Deeds, "changed"> },
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly reason: string } | undefined> {
    if (!this.asked.isWeak || !agent.deeds.changed) return undefined;
    const broken = await brokenFiles({ ...agent, yamlError: this.#yamlError }, signal);
    return broken.length === 0 ? undefined : { text: brokenText(broken), reason: brokenReason(broken) };
  }

  /** What the request says by name and is not so: of files, and of a weak model's work of what stands in them. */
  async notAsNamed(
    agent: RunSoFar & Pick<Parsed, "box"> & { readonly mode: Mode },
    mayTell: boolean,
  ): Promise<Earned> {
    const { changed, acted } = agent.deeds;
    if (agent.intent.intent !== "change" || agent.mode === "read-only") return EARNED;
    // That there is nothing to do is believed, and told as what it is.
    if (!this.asked.isWeak && !changed && !acted) return EARNED;
    const { request, isWeak } = this.asked;
    const files = await notAsNamed(request, agent.box);
    const things = isWeak
      ? [...(await thingsNotAsNamed(request, agent.box)), ...(await untouchedOf(request, agent.box))]
      : [];
    if (files === undefined && things.length === 0) return EARNED;
    const wrong = [...(files === undefined ? [] : [files]), ...things].join(", ");
    return mayTell && this.#tell("named files")
      ? {
          kind: "nudge",
          text: namedText(wrong, files === undefined ? renamingOf(request) : FILES_HINT),
          demand: "act",
        }
      : { kind: "nothing_done", reason: `what was asked for is not done: ${wrong}` };
  }

  /** Whether the model is told of it: once. */
  tellsBroken(): boolean {
    return this.#tell("syntax");
  }

  get #isCandidate(): boolean {
    return this.candidate !== undefined;
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

const FILES_HINT = "bash has rm and mv";

/** A hint is taken for what is to be done: rm is named for nothing but files. */
const namedText = (wrong: string, hint: string | undefined): string =>
  `It is not done: ${wrong}. Do it now with a call${hint === undefined ? "" : ` (${hint})`}, or say in your final answer why it cannot be.`;

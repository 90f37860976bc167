/** Whether the work earns the ending that the model claims. Pure, except for the files that are read and parsed. */

import type { Mode } from "../../core/decision.ts";
import type { Intent, Message } from "../../core/model-provider.ts";
import { headWithin } from "../../core/raw-data.ts";
import type { EndedCall } from "../../core/session.ts";
import { type Demand, ownText, type ShownFile } from "../next-reply.ts";
import { asksOnCondition, saysNotNeeded } from "./answer-words.ts";
import { brokenFiles, brokenReason, brokenText, type ParseContext, type YamlError } from "./broken-syntax.ts";
import {
  type Deeds,
  demandOf,
  type Earned,
  EARNED,
  endWith,
  type Lack,
  missingForRequest,
  nudgeOf,
  quotedText,
  commandForRequest,
  type RequestFacts,
  TRY_IT,
} from "./deeds.ts";
import { notAsNamed, renamingOf, thingsNotAsNamed, untouchedOf } from "./named-in-request.ts";
import type { Verification } from "./verification.ts";
import { type FailingCheck, WholeFiles } from "./whole-files.ts";

/** Commands whose exit code is an answer, not a failure. */
const ANSWERS = /^\s*(?:!|\[|test\b|grep\b|rg\b|diff\b|cmp\b|git (?:diff|grep)\b)/;

/** Told when a round of repair was answered without a call: the check would only fail again, and the round be lost. */
export const REPAIR_NOW =
  "You called nothing, so nothing is repaired, and the check still fails as it did. Call a tool now that mends its cause.";

const LACKS: ReadonlySet<Lack> = new Set(["work", "change", "trial", "success", "run", "green"]);

/** Most replies that have to be calls; of these, the first LOOKS_FIRST may call any tool. */
const MAX_DEMANDS = 6;
const LOOKS_FIRST = 3;
/** Most replies that have to be calls because the check failed after the last change. */
const MAX_MENDS = 8;

/** Most replies in a row that left the files in a state on which the check had already failed. */
const MAX_FRUITLESS = 3;

/** What a run without a person demands of an answer before it may end. A chat and a subagent have no such rules. */
export class EndRules {
  facts: Omit<RequestFacts, "intent"> = { request: "", isWeak: false };
  /** Number of this candidate, from 1 on. When it goes in circles, another one is of more use than its next reply. */
  candidate: number | undefined;
  /** The files before the task, if they were shown with it. */
  filesBefore: readonly ShownFile[] = [];
  readonly verification: Verification | null;
  readonly #yamlError: YamlError | undefined;
  readonly #reportedKinds = new Set<string>();
  #repairFrom: number | undefined;
  #demanded = 0;
  #repairDemands = 0;
  /** The files that the model has before it, recorded each time that the check failed on them. */
  readonly #failedOn = new Set<string>();
  #fruitless = 0;
  readonly #wholeFiles = new WholeFiles();
  /** The last trial's output, if it was not what the model expects. */
  #unexpectedOutput: Unexpected | undefined;
  /** The command whose expected output the model was told. */
  #toldCommand: string | undefined;
  readonly #expected = new Map<string, Promise<string | undefined>>();

  constructor(verification: Verification | null, yamlError?: YamlError) {
    this.verification = verification;
    this.#yamlError = yamlError;
  }

  /** Judges by the answer and by what was done for it. */
  earned(answer: string, { intent, deeds, ended }: RunSoFar, mayTell: boolean): Earned {
    const facts = { ...this.facts, intent: intent.intent };
    return this.#verdictOn(missingForRequest(answer, facts, deeds, ended), { intent, deeds, ended }, mayTell);
  }

  /** When nothing checks a weak model's changes, the model has to try them itself, and to see what it expects. */
  async tried(run: RunSoFar, mayTell: boolean, ask: AskAnew): Promise<Earned> {
    const { changed, triedSince } = run.deeds;
    const isChecked = this.verification?.checks === true;
    if (!this.facts.isWeak || run.intent.intent !== "change" || !changed || isChecked) return EARNED;
    if (triedSince === "nothing") return this.#verdictUntried(run, mayTell);
    const { exitCode, command, text } = triedSince;
    if (exitCode !== 0) return this.#verdictOn(ANSWERS.test(command) ? undefined : "success", run, mayTell);
    this.#unexpectedOutput = await this.#checkOutput(command, printedIn(text), ask);
    if (this.#unexpectedOutput === undefined) return EARNED;
    if (!mayTell || !this.#tellOnce("expectation"))
      return { kind: "nothing_done", reason: unexpectedReason(this.#unexpectedOutput) };
    this.#toldCommand = command;
    return { kind: "nudge", text: unexpectedText(this.#unexpectedOutput), demand: "edit" };
  }

  /** A model that was told is let off, unless its last trial did not print what it expects. */
  #verdictUntried(run: RunSoFar, mayTell: boolean): Earned {
    if (this.#unexpectedOutput === undefined) return this.#verdictOn("trial", run, mayTell);
    return mayTell && this.#tellOnce("another trial")
      ? { kind: "nudge", text: TRY_IT, demand: "run" }
      : { kind: "nothing_done", reason: unexpectedReason(this.#unexpectedOutput) };
  }

  /** Asked once for each command. */
  async #checkOutput(command: string, printed: string, ask: AskAnew): Promise<Unexpected | undefined> {
    if (!isComparable(printed)) return undefined;
    const about = { request: this.facts.request, files: this.filesBefore };
    const expectation = this.#expected.get(command) ?? expectedOf(ask, about, command);
    this.#expected.set(command, expectation);
    const expected = await expectation;
    // A model that has read the text may print it besides what it printed before.
    const fits = this.#toldCommand === command ? isSameText : isAsExpected;
    return expected === undefined || fits(expected, printed) ? undefined : { command, expected, printed };
  }

  /** Each kind of lack is told once, if there is a turn left for it; what is still lacking then decides the end. */
  #verdictOn(lack: Lack | undefined, { intent: { intent }, deeds }: RunSoFar, mayTell: boolean): Earned {
    if (lack === undefined) return EARNED;
    const kind = LACKS.has(lack) ? lack : "answer";
    const { runs = false, looks = false } = this.facts;
    // A model that was only asked to look is never told that a change was asked for.
    const wanted = looks ? "repo" : intent;
    if (mayTell && this.#tellOnce(kind))
      return { kind: "nudge", text: nudgeOf(lack, wanted), demand: demandOf(lack, wanted) };
    return endWith(lack, { intent, runs, looks }, deeds);
  }

  /**
   * What a weak model has to do when its replies are constrained. While a requested change is missing, it has to call a
   * tool, and then a tool that acts, for some replies each; after that it may have its reasons. When the check failed
   * after its last change, it has to repair that. Left the choice, such a model answers that it is done, or looks at
   * the same things again.
   */
  demandOn({ intent, deeds, mode }: RunSoFar & { readonly mode: Mode }): Demand | undefined {
    const { isWeak, looks } = this.facts;
    if (!isWeak || looks === true || intent.intent !== "change" || mode === "read-only") return undefined;
    if (this.facts.runs === true) return this.#runDemand(deeds);
    if (deeds.acted) return this.#repairDemand(deeds);
    this.#demanded += 1;
    if (this.#demanded <= LOOKS_FIRST) return "call";
    return this.#demanded <= MAX_DEMANDS ? "act" : undefined;
  }

  #runDemand(deeds: Deeds): Demand | undefined {
    if (commandForRequest(this.facts, deeds) !== undefined || this.#demanded >= LOOKS_FIRST) return undefined;
    this.#demanded += 1;
    return "run";
  }

  #repairDemand(deeds: Deeds): Demand | undefined {
    if (!this.#fails(deeds) || this.#repairDemands >= MAX_MENDS) return undefined;
    this.#repairDemands += 1;
    return "call";
  }

  /** The check failed when it was run since the last change, by the harness or by the model. */
  #fails({ triedSince }: Deeds): boolean {
    const check = this.verification;
    const sawRed =
      triedSince !== "nothing" && triedSince.command === check?.command && triedSince.exitCode !== 0;
    return check?.isRed === true || sawRed;
  }

  /**
   * Call before each reply. Records whether the last reply left the files as the check had already failed on; for a
   * candidate, returns why it ends.
   */
  circled(deeds: Deeds, files: readonly ShownFile[]): string | undefined {
    if (!this.facts.isWeak || files.length === 0 || !this.#fails(deeds)) return undefined;
    const state = JSON.stringify(files);
    this.#fruitless = this.#failedOn.has(state) ? this.#fruitless + 1 : 0;
    this.#failedOn.add(state);
    if (!this.#isCandidate) return undefined;
    const command = quotedText(this.verification?.command ?? "");
    if (this.#fruitless >= MAX_FRUITLESS)
      return `${command} still fails, and ${MAX_FRUITLESS} replies in a row left the files in a state on which it had already failed.`;
    return this.#wholeFiles.count < MAX_MENDS
      ? undefined
      : `${command} still fails after the model was asked for whole files ${MAX_MENDS} times.`;
  }

  /**
   * The failing check, when the next request to a weak model is for a whole file. For a candidate that is every
   * request; for another run, those after a reply that changed nothing.
   */
  rewrites({ intent, deeds, mode }: RunSoFar & { readonly mode: Mode }): FailingCheck | undefined {
    const { verification, facts } = this;
    const mayWrite = facts.isWeak && intent.intent === "change" && mode !== "read-only";
    if (verification === null || !mayWrite || this.#wholeFiles.count >= MAX_MENDS) return undefined;
    const isDue = this.#isCandidate || this.#fruitless > 0;
    if (!isDue || !(deeds.acted ? this.#fails(deeds) : verification.wasRed)) return undefined;
    return this.#wholeFiles.next(verification, this);
  }

  /**
   * Records the result: a different file, or nothing. After two failures a candidate begins anew, and another run gets
   * its usual request again.
   */
  rewrote(isNew: boolean, finding?: string): void {
    // Whole files have their own limit, within which a new beginning needs its turns.
    if (this.#isCandidate) this.#fruitless = 0;
    this.#wholeFiles.take(isNew, finding);
  }

  /** The check that succeeds after such a file was written: only the answer is left, which is requested once. */
  closes(): string | undefined {
    const { verification } = this;
    if (verification?.isGreen !== true || !this.#isCandidate || this.#wholeFiles.count === 0)
      return undefined;
    return this.#tellOnce("closing") ? verification.command : undefined;
  }

  /** A weak model's changes that no longer parse, in words for the model and for people. */
  async brokenIn(
    agent: ParseContext & { readonly deeds: Pick<Deeds, "changed"> },
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly reason: string } | undefined> {
    if (!this.facts.isWeak || !agent.deeds.changed) return undefined;
    const broken = await brokenFiles({ ...agent, yamlError: this.#yamlError }, signal);
    return broken.length === 0 ? undefined : { text: brokenText(broken), reason: brokenReason(broken) };
  }

  /** What the request states by name and is not so: about files, and for a weak model about their contents, too. */
  async notAsNamed(
    agent: RunSoFar & Pick<ParseContext, "box"> & { readonly mode: Mode },
    mayTell: boolean,
  ): Promise<Earned> {
    const { changed, acted } = agent.deeds;
    if (agent.intent.intent !== "change" || agent.mode === "read-only") return EARNED;
    // The claim that nothing needs to be done is believed, and reported as such.
    if (!this.facts.isWeak && !changed && !acted) return EARNED;
    const { request, isWeak } = this.facts;
    const files = await notAsNamed(request, agent.box);
    const things = isWeak
      ? [...(await thingsNotAsNamed(request, agent.box)), ...(await untouchedOf(request, agent.box))]
      : [];
    if (files === undefined && things.length === 0) return EARNED;
    const wrong = [...(files === undefined ? [] : [files]), ...things].join(", ");
    return mayTell && this.#tellOnce("named files")
      ? {
          kind: "nudge",
          text: namedText(wrong, files === undefined ? renamingOf(request) : FILES_HINT),
          demand: "act",
        }
      : { kind: "nothing_done", reason: `what was asked for is not done: ${wrong}` };
  }

  /** Whether the model is told about it: once. */
  tellsBroken(): boolean {
    return this.#tellOnce("syntax");
  }

  get #isCandidate(): boolean {
    return this.candidate !== undefined;
  }

  #tellOnce(kind: string): boolean {
    if (this.#reportedKinds.has(kind)) return false;
    this.#reportedKinds.add(kind);
    return true;
  }

  /** The model was told to repair, after this many calls. */
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

interface RunSoFar {
  readonly intent: { readonly intent: Intent };
  readonly deeds: Deeds;
  readonly ended: readonly EndedCall[];
}

const FILES_HINT = "bash has rm and mv";

/** A small model takes a hint for an instruction: `rm` is only mentioned for files. */
const namedText = (wrong: string, hint: string | undefined): string =>
  `It is not done: ${wrong}. Do it now with a call${hint === undefined ? "" : ` (${hint})`}, or say in your final answer why it cannot be.`;

/*
 * What a command prints when the task is done, according to the model itself. A small model mostly calls an output
 * right when shown it, but often knows better than its own program when asked without it. So when nothing else proves
 * its work, it is asked in a new conversation, twice and in two ways, without anything it did or saw. The answer counts
 * only if both replies agree.
 */

/** Most bytes of an output that is compared: a command that prints more does not answer one question. */
const MAX_PRINTED = 400;
const MAX_LINES = 12;
const MAX_FILES = 2000;

/** An expectation, and the actual output. */
interface Unexpected {
  readonly command: string;
  readonly expected: string;
  readonly printed: string;
}

/** Small enough to compare, and not empty. */
const isComparable = (text: string): boolean =>
  letters(text) !== "" && Buffer.byteLength(text) <= MAX_PRINTED && text.split("\n").length <= MAX_LINES;

/** A small model is careless with blanks and signs, but not with capitals. */
const letters = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, "");

/** The text of a reply that should be nothing but a text. */
const withoutFence = (reply: string): string =>
  /^\s*```[^\n]*\n(.*?)\n?```\s*$/s.exec(reply)?.[1] ?? reply.trim().replace(/^`([^`]*)`$/, "$1");

/** Words for silence, which are not output. */
const NOTHING = /^\W*(?:no output|nothing|none|empty)\b.{0,80}$/i;

/** The text in which all replies to the same question agree. */
export function commonReply(replies: readonly string[]): string | undefined {
  const [first = "", ...others] = replies.map(withoutFence);
  const isOne = others.length > 0 && others.every((other) => letters(other) === letters(first));
  return isOne && isComparable(first) && !NOTHING.test(first) ? first : undefined;
}

/** More may be printed than was expected. */
export const isAsExpected = (expected: string, printed: string): boolean =>
  letters(printed).includes(letters(expected));

const isSameText = (expected: string, printed: string): boolean => letters(printed) === letters(expected);

/**
 * Lines that harness adds to a command's output in its result. Listed one by one, because a program prints bracketed
 * lines of its own, such as lists.
 */
const NOTE =
  /^\[(?:stderr|advice: .*|no connection: .*|and \d+ more hosts were refused|protected, not written: .*|moved out of the workspace, .*|\d+ process(?:es)? that it left running .*|folder and exported variables stay .*|\S+ is not kept for later calls: .*|the timeout was cut to .*|the hook .* replaced the arguments: .*|… .* …)\]$/;

export const printedIn = (result: string): string =>
  result
    .split("\n")
    .filter((line) => !NOTE.test(line))
    .join("\n")
    .trim();

const QUESTION =
  "When the task is done, somebody types this command:\n$ COMMAND\n\nWhat exactly does it print then? Answer with the printed text alone.";

/** The beginning that tells these questions from any other conversation about the task. */
export const questionOpening = (request: string): string => `The task: ${request}\n\n`;

/** The same question in other words, for when there are no files to vary it: repeating one proves nothing. */
const AGAIN =
  "It is done, and on the terminal stands:\n$ COMMAND\n\nWhich lines stand below it? Answer with these lines alone.";

/** One question without the earlier files, one with them. */
function questions(request: string, command: string, files: readonly ShownFile[]): readonly string[] {
  const [question = "", again = ""] = [QUESTION, AGAIN].map((text) => text.replace("COMMAND", () => command));
  if (files.length === 0)
    return [`${questionOpening(request)}${question}`, `${questionOpening(request)}${again}`];
  const before = files.map(({ path, text }) => `[${path}, before the task]\n${ownText(text)}\n`).join("\n");
  return [
    `${questionOpening(request)}${question}`,
    `${questionOpening(request)}${headWithin(before, MAX_FILES)}\n${question}`,
  ];
}

const SYSTEM: Message = { role: "system", text: "You know what programs print." };

/** Returns the text of the reply; undefined when there is none. */
type AskAnew = (messages: readonly Message[]) => Promise<string | undefined>;

/** What the model says a command prints when the task is done; undefined when it does not know. */
export async function expectedOf(
  ask: AskAnew,
  { request, files }: { readonly request: string; readonly files: readonly ShownFile[] },
  command: string,
): Promise<string | undefined> {
  const replies: string[] = [];
  for (const text of questions(request, command, files)) {
    const reply = await ask([SYSTEM, { role: "user", text }]);
    if (reply === undefined) return undefined;
    replies.push(reply);
  }
  return commonReply(replies);
}

const unexpectedText = ({ command, expected, printed }: Unexpected): string =>
  `Asked beforehand what ${quotedText(command)} prints when the task is done, you said ${quotedText(expected)}; it printed, which is data, ${quotedText(printed)}. Mend what you changed with an edit, and run it again.`;

const unexpectedReason = ({ command, expected, printed }: Unexpected): string =>
  `nothing checks it, and ${quotedText(command)} printed ${quotedText(printed)} where the model itself expects ${quotedText(expected)}`;

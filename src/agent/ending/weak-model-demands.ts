/** What a weak model's next reply has to be while its work is missing or fails its check. */

import type { Mode } from "../../core/decision.ts";
import type { Intent } from "../../core/model-provider.ts";
import type { Demand, ShownFile } from "../next-reply.ts";
import type { Deeds } from "./deeds.ts";
import { commandForRequest, quotedText, type RequestFacts } from "./missing-work.ts";
import type { Verification } from "./verification.ts";
import { type FailingCheck, WholeFiles } from "./whole-files.ts";

/** Most replies that have to be calls; of these, the first LOOKS_FIRST may call any tool. */
const MAX_DEMANDS = 6;
const LOOKS_FIRST = 3;
/** Most replies that have to be calls because the check failed after the last change; also, most whole files. */
const MAX_MENDS = 8;

/** Most replies in a row that left the files in a state on which the check had already failed. */
const MAX_FRUITLESS = 3;

/** What the demands depend on. */
export interface WeakTask {
  readonly facts: Omit<RequestFacts, "intent">;
  /** Number of this candidate, from 1 on. When it goes in circles, another one is of more use than its next reply. */
  readonly candidate: number | undefined;
  /** The files before the task, if they were shown with it. */
  readonly filesBefore: readonly ShownFile[];
  readonly verification: Verification | null;
}

interface RunSoFar {
  readonly intent: { readonly intent: Intent };
  readonly deeds: Deeds;
  readonly mode: Mode;
}

export class WeakModelDemands {
  readonly #task: WeakTask;
  #demanded = 0;
  #repairDemands = 0;
  /** The files that the model has before it, recorded each time that the check failed on them. */
  readonly #failedOn = new Set<string>();
  #fruitless = 0;
  readonly #wholeFiles = new WholeFiles();
  #hasAskedForAnswer = false;

  constructor(task: WeakTask) {
    this.#task = task;
  }

  /**
   * Call before each reply that can be constrained. While a requested change is missing, the model has to call a tool,
   * and then a tool that acts, for some replies each; after that it may have its reasons. When the check failed after
   * its last change, it has to repair that. Left the choice, such a model answers that it is done, or looks at the same
   * things again.
   */
  next(run: RunSoFar): Demand | undefined {
    const { only } = this.#task.facts;
    if (only === "look" || !this.#mayChange(run)) return undefined;
    if (only === "run") return this.#runDemand(run.deeds);
    if (run.deeds.acted) return this.#repairDemand(run.deeds);
    this.#demanded += 1;
    if (this.#demanded <= LOOKS_FIRST) return "call";
    return this.#demanded <= MAX_DEMANDS ? "act" : undefined;
  }

  #mayChange({ intent, mode }: RunSoFar): boolean {
    return this.#task.facts.isWeak && intent.intent === "change" && mode !== "read-only";
  }

  #runDemand(deeds: Deeds): Demand | undefined {
    const hasRun = commandForRequest(this.#task.facts, deeds) !== undefined;
    if (hasRun || this.#demanded >= LOOKS_FIRST) return undefined;
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
    const check = this.#task.verification;
    const sawRed =
      triedSince !== "nothing" && triedSince.command === check?.command && triedSince.exitCode !== 0;
    return check?.isRed === true || sawRed;
  }

  /**
   * Call before each reply. Records whether the last reply left the files as the check had already failed on; for a
   * candidate, returns why it ends.
   */
  reasonToGiveUp(deeds: Deeds, files: readonly ShownFile[]): string | undefined {
    const { facts, verification } = this.#task;
    if (!facts.isWeak || files.length === 0 || !this.#fails(deeds)) return undefined;
    const state = JSON.stringify(files);
    this.#fruitless = this.#failedOn.has(state) ? this.#fruitless + 1 : 0;
    this.#failedOn.add(state);
    if (!this.#isCandidate) return undefined;
    const command = quotedText(verification?.command ?? "");
    if (this.#fruitless >= MAX_FRUITLESS)
      return `${command} still fails, and ${MAX_FRUITLESS} replies in a row left the files in a state on which it had already failed.`;
    return this.#wholeFiles.count < MAX_MENDS
      ? undefined
      : `${command} still fails after the model was asked for whole files ${MAX_MENDS} times.`;
  }

  /**
   * The failing check, when the next request is for a whole file. For a candidate that is every request; for another
   * run, those after a reply that changed nothing.
   */
  wholeFile(run: RunSoFar): FailingCheck | undefined {
    const { verification } = this.#task;
    if (verification === null || !this.#mayChange(run) || this.#wholeFiles.count >= MAX_MENDS)
      return undefined;
    const isDue = this.#isCandidate || this.#fruitless > 0;
    if (!isDue || !(run.deeds.acted ? this.#fails(run.deeds) : verification.wasRed)) return undefined;
    return this.#wholeFiles.next(verification, this.#task);
  }

  /**
   * Records the reply to it: a different file, or nothing. After two failures a candidate begins anew, and another run
   * gets its usual request again.
   */
  tookWholeFile(isNew: boolean, finding?: string): void {
    // Whole files have their own limit, within which a new beginning needs its turns.
    if (this.#isCandidate) this.#fruitless = 0;
    this.#wholeFiles.take(isNew, finding);
  }

  /** The check that succeeds after such a file was written: only the answer is left, which is requested once. */
  checkBeforeAnswer(): string | undefined {
    const { verification } = this.#task;
    const isLeft = verification?.isGreen === true && this.#isCandidate && this.#wholeFiles.count > 0;
    if (!isLeft || this.#hasAskedForAnswer) return undefined;
    this.#hasAskedForAnswer = true;
    return verification.command;
  }

  get #isCandidate(): boolean {
    return this.#task.candidate !== undefined;
  }
}

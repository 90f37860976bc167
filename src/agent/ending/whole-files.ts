/** Which whole file a weak model is asked for while a check fails, and what is learnt from its replies. */

import { ownText, type ShownFile } from "../next-reply.ts";
import type { Verification } from "./verification.ts";

/** The check that has to succeed, and its output. */
export interface FailingCheck {
  readonly command: string;
  readonly output: string;
  /** How often a file was given up; each time, another file is requested next. */
  readonly vain: number;
  /** Added to the usual temperature when the last request brought nothing new, or when the files are begun anew. */
  readonly rise: number;
  /** The model wrote the file and then copied it. When it first says what is wrong, it writes a different one. */
  readonly mends: boolean;
  /** What the model said was wrong without writing a file after it; the file is requested next. */
  readonly finding?: string | undefined;
  /** Asks with the task and files alone, without the check's output, which a small model takes for its whole task. */
  readonly byTask: boolean;
  /** The files as they were before the task, if the work begins anew from them. */
  readonly anew?: readonly ShownFile[] | undefined;
}

/**
 * Most whole files of a candidate from the same beginning: a small model is more likely to write another file that is
 * right than to find the error in its own. Each new beginning is requested at a higher temperature.
 */
const MAX_FILES_PER_START = 3;
/** Added to the temperature when the likeliest file is the existing one, and with each new beginning. */
const RISE_AGAIN = 0.5;
const RISE_ANEW = 0.3;

/** For what the files are requested. */
interface Start {
  /** Number of the candidate, from 1 on; undefined for any other run. */
  readonly candidate: number | undefined;
  readonly filesBefore: readonly ShownFile[];
}

export class WholeFiles {
  #count = 0;
  #failedInARow = 0;
  #givenUp = 0;
  #starts = 0;
  #filesOfStart = 0;
  #wrote = false;
  /** The last file was requested together with what is wrong in it. */
  #mending = false;
  #finding: string | undefined;

  /** How many were requested. */
  get count(): number {
    return this.#count;
  }

  next(verification: Verification, start: Start): FailingCheck | undefined {
    const isCandidate = start.candidate !== undefined;
    const finding = this.#finding;
    this.#finding = undefined;
    this.#mending = false;
    if (finding !== undefined) return this.#failing(verification, start, { rise: 0, mends: true, finding });
    const isVain = this.#failedInARow > 1;
    const isAgain = this.#failedInARow === 1;
    if (isVain) {
      this.#failedInARow = 0;
      this.#givenUp += 1;
      if (!isCandidate) return undefined;
    }
    if (isCandidate && (isVain || this.#filesOfStart >= MAX_FILES_PER_START)) {
      this.#starts += 1;
      this.#filesOfStart = 0;
      this.#wrote = false;
    }
    const mends = isCandidate && this.#wrote && isAgain;
    const rise = (isAgain ? RISE_AGAIN : 0) + this.#starts * RISE_ANEW;
    this.#mending = mends;
    return this.#failing(verification, start, { rise, mends });
  }

  #failing(
    { command, output, outputBefore }: Verification,
    { candidate, filesBefore }: Start,
    how: Pick<FailingCheck, "rise" | "mends" | "finding">,
  ): FailingCheck {
    const byTask = !this.#wrote && this.#beginsByTask(candidate);
    const about = { command, vain: this.#givenUp, byTask, ...how };
    if (this.#starts === 0 || this.#wrote) return { ...about, output };
    const anew = filesBefore.map(({ path, text }) => ({ path, text: ownText(text) }));
    return { ...about, output: outputBefore, anew };
  }

  /**
   * The two ways to ask make the same model write different files. Beginnings alternate between them, and so do the
   * first beginnings of candidates.
   */
  #beginsByTask(candidate: number | undefined): boolean {
    return candidate !== undefined && (candidate + this.#starts) % 2 === 0;
  }

  /** Records the reply: a different file, or nothing and perhaps what the model says is wrong. */
  take(isNew: boolean, finding?: string): void {
    if (!isNew && this.#mending) this.#finding = finding;
    this.#filesOfStart += 1;
    this.#count += 1;
    this.#failedInARow = isNew ? 0 : this.#failedInARow + 1;
    if (isNew) this.#wrote = true;
  }
}

import { HarnessError } from "../../core/errors.ts";
import { LiveLine, stepLine, type StepLine } from "../../render/tty/progress.ts";
import { describeFailure } from "../failure.ts";
import type { StepResult } from "./context.ts";
import { stderr } from "../../render/tty/output.ts";

/** Prints each step as one line with its time; a failed step is printed too, and ends the set-up. */
export class Steps {
  readonly #quiet: boolean;
  readonly #signal: AbortSignal;
  readonly line: LiveLine;
  /** Every step that did not fail, in order. */
  readonly taken: StepLine[] = [];

  constructor(quiet: boolean, signal: AbortSignal) {
    this.#quiet = quiet;
    this.#signal = signal;
    this.line = new LiveLine(stderr, quiet);
  }

  async run<T>(name: string, work: () => Promise<T>, say: (value: T) => StepResult): Promise<T> {
    const start = performance.now();
    this.line.show(`  … ${name}`);
    try {
      const value = await work();
      this.#signal.throwIfAborted();
      this.#print(name, say(value), start);
      return value;
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
      const { message, remedy } = describeFailure(thrown, []);
      this.#print(name, { state: "fail", detail: message, remedy, short: message }, start);
      throw new HarnessError(thrown.exit, "", "", thrown);
    }
  }

  #print(name: string, result: StepResult, start: number): void {
    this.line.clear();
    this.taken.push({ name, ...result });
    if (this.#quiet && result.state !== "fail") return;
    stderr.write(stepLine({ name, ...result }, performance.now() - start, stderr));
  }
}

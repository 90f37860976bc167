import type { Usage } from "../core/messages.ts";
import { NO_USAGE, sumUsage } from "../models/accounting/usage.ts";

/** What all requests of a run have used, those of its subagents too. */
export class Spent {
  readonly #before: Usage;
  #usage = NO_USAGE;

  /** `before`: until the run was parked. */
  constructor(before = NO_USAGE) {
    this.#before = before;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** With what was used before. */
  get whole(): Usage {
    return sumUsage(this.#before, this.#usage);
  }

  add(more: Usage): void {
    this.#usage = sumUsage(this.#usage, more);
  }
}

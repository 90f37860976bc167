import type { Usage } from "../core/messages.ts";
import { NO_USAGE, sumUsage } from "../models/accounting/usage.ts";

/** What all requests of a run have used, those of its subagents too. */
export class Spent {
  #usage = NO_USAGE;

  get usage(): Usage {
    return this.#usage;
  }

  add(more: Usage): void {
    this.#usage = sumUsage(this.#usage, more);
  }
}

import type { ModelFailure } from "../core/provider.ts";

/** Milliseconds before each further attempt: time for a server to be started again. */
const WAITS: readonly number[] = [500, 2000, 5000];

/**
 * How long one request of the loop puts up with a server that breaks off within a reply, of which something was shown, or
 * that is away and was there before. What cannot pass is not asked again, and what was not shown the provider has
 * tried often enough.
 */
export class Patience {
  #failures = 0;
  #wasThere: boolean;

  constructor(wasThere: boolean) {
    this.#wasThere = wasThere;
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  after({ kind }: Pick<ModelFailure, "kind">, shown: boolean): number | undefined {
    this.#wasThere ||= shown;
    const passes = kind === "garbled" ? shown : kind === "unreachable" && this.#wasThere;
    this.#failures += 1;
    return passes ? WAITS[this.#failures - 1] : undefined;
  }
}

import type { CallForm, ModelRequest } from "../core/model-provider.ts";

/** What is known of a model before it is asked. */
export interface KnownOf {
  readonly calls?: CallForm;
  readonly thinking?: boolean;
}

/** After so many replies in a row without a call that can be run, replies are held. */
const MISSES = 2;

/** Which models' replies are held to a schema, as long as the program runs. */
export class Holding {
  readonly #misses = new Map<string, number>();
  readonly #refused = new Set<string>();
  readonly #held = new Set<string>();

  /** Whether this reply is to be held, where the server can. */
  wants({ model, hold }: ModelRequest, known: KnownOf): boolean {
    return hold !== undefined && (hold.now === true || known.calls === "held" || this.#held.has(model));
  }

  /** Held whenever it can be, and not for this once alone. */
  stays({ model }: ModelRequest, known: KnownOf): boolean {
    return known.calls === "held" || this.#held.has(model);
  }

  /** The server refused the schema; beside native tools some refuse what they take without. */
  refused(model: string, native: boolean): void {
    this.#refused.add(key(model, native));
  }

  refuses(model: string, native: boolean): boolean {
    return this.#refused.has(key(model, native));
  }

  /**
   * Counts a reply; true when it is the one after which replies are held. A good one that was held for once says nothing of
   * those that are not.
   */
  replied(model: string, missed: boolean, wasHeld: boolean): boolean {
    const before = this.#misses.get(model) ?? 0;
    const misses = missed ? before + 1 : wasHeld ? before : 0;
    this.#misses.set(model, misses);
    if (misses < MISSES || this.#held.has(model)) return false;
    this.#held.add(model);
    return true;
  }
}

const key = (model: string, native: boolean): string => `${native ? "native" : "text"} ${model}`;

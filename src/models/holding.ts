import type { CallForm, ModelRequest } from "../core/model-provider.ts";

/** What is known about a model before the first request. */
export interface KnownModel {
  readonly calls?: CallForm;
  readonly thinking?: boolean;
}

/** After this many replies in a row without a call that can be run, replies are held. */
const MISSES = 2;

/** Remembers, for the life of the program, which models' replies are held to a schema. */
export class Holding {
  readonly #misses = new Map<string, number>();
  readonly #refused = new Set<string>();
  readonly #held = new Set<string>();

  /** Whether to hold this reply, if the server can. */
  wants({ model, hold }: ModelRequest, known: KnownModel): boolean {
    return hold !== undefined && (hold.now === true || known.calls === "held" || this.#held.has(model));
  }

  /** Whether every reply is held, not just this one. */
  stays({ model }: ModelRequest, known: KnownModel): boolean {
    return known.calls === "held" || this.#held.has(model);
  }

  /** Records that the server refused the schema. Some servers refuse a schema only in combination with native tools. */
  refused(model: string, native: boolean): void {
    this.#refused.add(key(model, native));
  }

  refuses(model: string, native: boolean): boolean {
    return this.#refused.has(key(model, native));
  }

  /**
   * Counts a reply; returns true if replies are held from now on. A good reply that was held only once says nothing
   * about replies that are not held.
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

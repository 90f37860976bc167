import type { SessionRecord } from "../core/session.ts";
import type { SeenFiles } from "../tools/desk.ts";

interface Sight {
  /** The record count at which it was known. */
  readonly at: number;
  readonly path: string;
  readonly hash: string | null;
}

/** Which files the model knows. It goes back with the history: what is no longer in it is no longer known. */
export class SeenState implements SeenFiles {
  #sights: Sight[] = [];
  #hashes = new Map<string, string>();
  readonly #count: () => number;
  readonly #record: (record: SessionRecord) => void;

  constructor(count: () => number, record: (record: SessionRecord) => void) {
    this.#count = count;
    this.#record = record;
  }

  static from(
    records: readonly SessionRecord[],
    count: () => number,
    record: (record: SessionRecord) => void,
  ): SeenState {
    const state = new SeenState(count, record);
    let at = 0;
    for (const each of records) {
      if (each.kind === "message") at += 1;
      else if (each.kind === "seen") state.#take({ at, path: each.path, hash: each.hash });
      else if (each.kind === "rolled_back") state.rollBack((at = Math.min(at, each.to)));
      else if (each.kind === "cleared") state.rollBack((at = 0) - 1);
    }
    return state;
  }

  /** For somebody who is to know the same files. */
  records(): readonly SessionRecord[] {
    return [...this.#hashes].map(([path, hash]) => ({ kind: "seen", path, hash }));
  }

  hashOf(path: string): string | undefined {
    return this.#hashes.get(path);
  }

  saw(path: string, hash: string): void {
    if (this.#hashes.get(path) !== hash) this.#note(path, hash);
  }

  forget(path: string): void {
    if (this.#hashes.has(path)) this.#note(path, null);
  }

  /** What was seen behind this count is forgotten. */
  rollBack(to: number): void {
    const kept = this.#sights.filter(({ at }) => at <= to);
    if (kept.length === this.#sights.length) return;
    this.#sights = [];
    this.#hashes = new Map();
    for (const sight of kept) this.#take(sight);
  }

  clear(): void {
    this.rollBack(-1);
  }

  #note(path: string, hash: string | null): void {
    this.#record({ kind: "seen", path, hash });
    this.#take({ at: this.#count(), path, hash });
  }

  #take(sight: Sight): void {
    this.#sights.push(sight);
    if (sight.hash === null) this.#hashes.delete(sight.path);
    else this.#hashes.set(sight.path, sight.hash);
  }
}

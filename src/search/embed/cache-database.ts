import type { DatabaseSync } from "node:sqlite";
import { reasonOf } from "../../core/errors.ts";
import { openCacheFile, setCacheAside, troubleOf } from "./cache-file.ts";

/** A database that nothing depends on: what goes wrong with it is said once, and then it is done without. */
export class CacheDatabase implements Disposable {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  #sqlite: DatabaseSync | undefined;
  #writes = true;

  constructor(folder: string, warn: (text: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
    try {
      this.#sqlite = openCacheFile(folder);
    } catch (thrown) {
      this.#giveUp(thrown);
    }
  }

  read<T>(work: (sqlite: DatabaseSync) => T, otherwise: T): T {
    if (this.#sqlite === undefined) return otherwise;
    try {
      return work(this.#sqlite);
    } catch (thrown) {
      if (troubleOf(thrown) !== "busy") this.#giveUp(thrown);
      return otherwise;
    }
  }

  /** All of it or nothing. */
  write(work: (sqlite: DatabaseSync) => void): void {
    if (!this.#writes) return;
    this.read((sqlite) => {
      try {
        sqlite.exec("BEGIN IMMEDIATE");
        work(sqlite);
        sqlite.exec("COMMIT");
      } catch (thrown) {
        if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
        if (troubleOf(thrown) !== "other") throw thrown;
        // What cannot be written can still be read.
        this.#writes = false;
        this.#warn(`vectors are not kept for later: ${this.#folder} cannot be written (${reasonOf(thrown)})`);
      }
    }, undefined);
  }

  [Symbol.dispose](): void {
    if (this.#sqlite?.isOpen === true) this.#sqlite.close();
    this.#sqlite = undefined;
  }

  #giveUp(thrown: unknown): void {
    this[Symbol.dispose]();
    if (troubleOf(thrown) !== "damaged") {
      this.#warn(`vectors are not kept for later: ${this.#folder} cannot be used (${reasonOf(thrown)})`);
      return;
    }
    try {
      const place = setCacheAside(this.#folder);
      this.#sqlite = openCacheFile(this.#folder);
      this.#warn(`the cache of vectors was damaged; it is now ${place}, and a new one is begun`);
    } catch (again) {
      this.#warn(
        `the cache of vectors in ${this.#folder} is damaged (${reasonOf(again)}); going on without it`,
      );
    }
  }
}

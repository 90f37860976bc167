import { diskTroubleOf } from "../../core/disk-trouble.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { setAside } from "../set-aside.ts";
import { cacheFileIn, openCacheFile } from "./cache-file.ts";

/** A database that nothing depends on: what goes wrong with it is said once, and then it is done without. */
export class CacheDatabase implements Disposable {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  #connection: Connection | undefined;
  #writes = true;

  constructor(folder: string, warn: (text: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
    try {
      this.#connection = openCacheFile(folder);
    } catch (thrown) {
      this.#giveUp(thrown);
    }
  }

  read<T>(work: (connection: Connection) => T, otherwise: T): T {
    if (this.#connection === undefined) return otherwise;
    try {
      return work(this.#connection);
    } catch (thrown) {
      if (diskTroubleOf(thrown) !== "busy") this.#giveUp(thrown);
      return otherwise;
    }
  }

  /** All of it or nothing. */
  write(work: (connection: Connection) => void): void {
    if (!this.#writes) return;
    this.read((connection) => {
      try {
        connection.atomically(() => work(connection));
      } catch (thrown) {
        const trouble = diskTroubleOf(thrown);
        if (trouble === "busy" || trouble === "damaged") throw thrown;
        // What cannot be written can still be read.
        this.#writes = false;
        this.#warn(`vectors are not kept for later: ${this.#folder} cannot be written (${reasonOf(thrown)})`);
      }
    }, undefined);
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }

  #giveUp(thrown: unknown): void {
    this[Symbol.dispose]();
    if (diskTroubleOf(thrown) !== "damaged") {
      this.#warn(`vectors are not kept for later: ${this.#folder} cannot be used (${reasonOf(thrown)})`);
      return;
    }
    try {
      const place = setAside(cacheFileIn(this.#folder));
      this.#connection = openCacheFile(this.#folder);
      this.#warn(`the cache of vectors was damaged; it is now ${place}, and a new one is begun`);
    } catch (again) {
      this.#warn(
        `the cache of vectors in ${this.#folder} is damaged (${reasonOf(again)}); going on without it`,
      );
    }
  }
}

import { fork, spawn } from "node:child_process";
import { once } from "node:events";

/**
 * How long programs of the host take, started by a small Node process: a start takes longer the more memory the process
 * has that starts it, and the bench grows. This file is also that process.
 */
export class HostSpawner implements Disposable {
  readonly #process = fork(import.meta.filename, { stdio: ["ignore", "inherit", "inherit", "ipc"] });

  /** Milliseconds from the start of this program to its end. One at a time. */
  async run(words: readonly string[]): Promise<number> {
    const ended = new AbortController();
    const end = (): void => ended.abort(new Error(`${words.join(" ")} could not be started on the host`));
    this.#process.once("exit", end);
    try {
      this.#process.send(words);
      const [ms] = (await once(this.#process, "message", { signal: ended.signal })) as [number];
      return ms;
    } finally {
      this.#process.off("exit", end);
    }
  }

  [Symbol.dispose](): void {
    if (this.#process.connected) this.#process.disconnect();
  }
}

if (import.meta.main)
  process.on("message", ([program = "", ...words]: readonly string[]) => {
    const start = performance.now();
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    child.once("close", () => process.send?.(performance.now() - start));
  });

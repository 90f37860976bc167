import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { CutFile } from "../search-store.ts";

/** Cuts files, in this thread or in others. */
export interface Cutting extends AsyncDisposable {
  cut(path: string, bytes: Buffer): Promise<CutFile>;
}

export interface CutQuestion {
  readonly id: number;
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface CutAnswer {
  readonly id: number;
  readonly cut: CutFile;
}

/** For fewer files, threads do not pay for their start. */
const MIN_FILES_FOR_THREADS = 48;
const MAX_THREADS = 4;

/** Threads for this many files. `program` is the worker file; the next update reuses the threads in `kept`. */
export function cuttingFor(files: number, program: URL, kept?: Cutting): Cutting {
  if (files < MIN_FILES_FOR_THREADS) return kept === undefined ? new CuttingHere() : borrowedCutting(kept);
  return new CuttingThreads(Math.min(Math.max(availableParallelism() - 1, 1), MAX_THREADS), program);
}

const borrowedCutting = (kept: Cutting): Cutting => ({
  cut: (path, bytes) => kept.cut(path, bytes),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

/** The cutter is loaded for the first file: loading a grammar takes longer than cutting a few files. */
export class CuttingHere implements Cutting {
  #cutter: Promise<Cutting["cut"] & Partial<Disposable>> | undefined;

  async cut(path: string, bytes: Buffer): Promise<CutFile> {
    this.#cutter ??= import("./cut-file.ts").then(({ Cutter }) => {
      const cutter = new Cutter();
      return Object.assign((...file: Parameters<Cutting["cut"]>) => cutter.cut(...file), {
        [Symbol.dispose]: () => cutter[Symbol.dispose](),
      });
    });
    const cut = await this.#cutter;
    return cut(path, bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.#cutter?.catch(() => undefined))?.[Symbol.dispose]?.();
  }
}

interface PendingCut {
  readonly done: (cut: CutFile) => void;
  readonly failed: (reason: HarnessError) => void;
}

class CuttingThreads implements Cutting {
  readonly #threads: readonly Worker[];
  readonly #pending = new Map<number, PendingCut>();
  #next = 0;
  #lost: HarnessError | undefined;

  constructor(count: number, program: URL) {
    this.#threads = Array.from({ length: count }, () => this.#start(program));
  }

  cut(path: string, bytes: Buffer): Promise<CutFile> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const id = this.#next;
    this.#next += 1;
    const { promise, resolve, reject } = Promise.withResolvers<CutFile>();
    this.#pending.set(id, { done: resolve, failed: reject });
    this.#threads[id % this.#threads.length]?.postMessage({ id, path, bytes } satisfies CutQuestion);
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #start(program: URL): Worker {
    const thread = new Worker(program);
    thread.on("message", ({ id, cut }: CutAnswer) => {
      this.#pending.get(id)?.done(cut);
      this.#pending.delete(id);
    });
    thread.on("error", (thrown) => this.#lose(reasonOf(thrown)));
    thread.on("exit", (code) => this.#lose(`it exited with code ${code}`));
    return thread;
  }

  /** Rejects all pending requests, so that none waits for ever. */
  #lose(why: string): void {
    this.#lost ??= new HarnessError(
      EXIT.failed,
      `a worker thread that splits files into chunks died: ${why}`,
      "run the same command again; it continues where this one stopped",
    );
    for (const { failed } of this.#pending.values()) failed(this.#lost);
    this.#pending.clear();
  }
}

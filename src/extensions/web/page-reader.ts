import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { reasonOf } from "../../core/errors.ts";
import type { Readable } from "./readable-text.ts";

export interface PageQuestion {
  readonly html: string;
  readonly url: string;
}

/** Turns untrusted HTML into text; rejects with the reason if that is impossible. */
export type ReadHtml = (question: PageQuestion, signal: AbortSignal) => Promise<Readable>;

const WITHIN_MS = 10_000;
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 };

/**
 * Reads the page in its own thread, `program`, which ends with the page: this bounds the time and memory that a page
 * can use.
 */
export const htmlReader =
  (program: URL, withinMs = WITHIN_MS): ReadHtml =>
  async (question, signal) => {
    const thread = new Worker(program, {
      workerData: question,
      resourceLimits: MEMORY,
      env: {},
      stdin: false,
    });
    const late = AbortSignal.timeout(withinMs);
    try {
      const [answer] = (await once(thread, "message", { signal: AbortSignal.any([signal, late]) })) as [
        Readable,
      ];
      return answer;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const why = late.aborted ? `it took more than ${withinMs / 1000} s` : reasonOf(thrown);
      throw new Error(`the page cannot be read: ${why}`, { cause: thrown });
    } finally {
      await thread.terminate();
    }
  };

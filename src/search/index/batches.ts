import { inTime } from "../in-time.ts";
import type { UpdateParts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Prepared } from "./prepared.ts";

/** Files of one transaction of the store, and bytes of them. */
const BATCH_FILES = 200;
const BATCH_BYTES = 2 << 20;

/** Writes one batch while the next is read and cut: no more than two are held. */
export class Batches implements AsyncDisposable {
  readonly #parts: UpdateParts;
  readonly #plan: Plan;
  readonly #signal: AbortSignal;
  #batch: Promise<Prepared>[] = [];
  #bytes = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #cut = 0;

  constructor(parts: UpdateParts, plan: Plan, signal: AbortSignal) {
    this.#parts = parts;
    this.#plan = plan;
    this.#signal = signal;
  }

  async take(prepared: Promise<Prepared>, bytes: number): Promise<void> {
    // Heard when its batch is written.
    prepared.catch(() => undefined);
    this.#batch.push(prepared);
    this.#bytes += bytes;
    if (this.#batch.length >= BATCH_FILES || this.#bytes >= BATCH_BYTES) await this.#next();
  }

  /** How many files were written. */
  async end(): Promise<number> {
    await this.#next();
    await this.#writing;
    return this.#cut;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.catch(() => undefined);
  }

  async #next(): Promise<void> {
    await this.#writing;
    const batch = this.#batch;
    [this.#batch, this.#bytes] = [[], 0];
    this.#writing = this.#write(batch);
    this.#writing.catch(() => undefined);
  }

  async #write(batch: readonly Promise<Prepared>[]): Promise<void> {
    this.#cut += await written(this.#parts, { batch, plan: this.#plan }, this.#signal);
  }
}

interface Batch {
  readonly batch: readonly Promise<Prepared>[];
  readonly plan: Plan;
}

/** First the store, then the catalog: what is only in the store is found again, what is only said would be missed. */
async function written(
  { catalog, store }: UpdateParts,
  { batch, plan }: Batch,
  signal: AbortSignal,
): Promise<number> {
  const files = await inTime(() => Promise.all(batch), signal);
  const emptied = files.filter(
    ({ path, row }) => row.chunks === 0 && (plan.known.get(path)?.chunks ?? 0) > 0,
  );
  if (emptied.length > 0)
    await store.remove(
      emptied.map(({ path }) => path),
      signal,
    );
  const stored = files.flatMap((file) => (file.stored === undefined ? [] : [file.stored]));
  if (stored.length > 0) await store.put(stored, signal);
  catalog.record(new Map(files.map(({ path, row }) => [path, row])));
  return stored.length + emptied.length;
}

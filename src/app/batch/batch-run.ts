import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { availableParallelism } from "node:os";
import { createHash } from "node:crypto";
import { EXIT, HarnessError, Interrupted } from "../../core/errors.ts";
import type { Usage } from "../../core/model-provider.ts";
import { isInside } from "../../core/file-names.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";
import { type BatchEnd, type RowResult, type RowSummary, summaryOf } from "../../render/batch-results.ts";
import { CODES } from "../interruption.ts";
import { openBatchFolder } from "./batch-folder.ts";
import type { BatchRow } from "./batch-rows.ts";
import { type RowPlan, runRow } from "./row-run.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { formatSize } from "../../core/wording.ts";
import type { Host } from "../host.ts";
import { isLocalModel } from "../model-access.ts";
import { makeFolder } from "../../platform/folders.ts";

/** Limits for all rows together; when one is spent, no further row begins. */
export interface BatchBudget {
  readonly ms?: number;
  readonly tokens?: number;
  readonly cost?: number;
}

export interface BatchRequest extends Omit<RowPlan, "alone" | "begun" | "ended"> {
  readonly rows: readonly BatchRow[];
  /** Continue with what the folder already has. */
  readonly resume: boolean;
  readonly jobs: number;
  readonly budget: BatchBudget;
  readonly onResult: (result: RowResult, ended: number) => void;
}

/**
 * Runs the rows that have no result in the folder yet. Each run is a process of its own, as a user would start it. Rows
 * of the same folder, or of nested folders, run one after the other in the order of the file; all others side by side.
 */
export async function runBatch(request: BatchRequest, signal: AbortSignal): Promise<BatchEnd> {
  if (request.inPlace) await refuseOutInside(request);
  await using folder = await openBatchFolder(request.folder, request.resume);
  const { rows, warn } = request;
  const ended = rows.flatMap(({ id }) => folder.earlier.get(id) ?? []);
  if (folder.leftovers > 0)
    warn(`${folder.leftovers} runs of the earlier batch were still running and have been ended`);
  if (request.resume) warn(`${ended.length} of ${rows.length} rows have ended already`);
  const queue = new RowQueue(await placeRows(rows.filter(({ id }) => !folder.earlier.has(id))));
  const spent = new Spending(request.budget, ended, warn);
  const failed = new AbortController();
  const stopped = AbortSignal.any([signal, failed.signal]);
  const plan: RowPlan = { ...request, alone: serialQueue(), begun: folder.begun, ended: folder.ended };
  const run = async ({ row }: PlacedRow): Promise<void> => {
    const result = await runRow(row, plan, stopped);
    await folder.add(result);
    const summary = summaryOf(result);
    ended.push(summary);
    spent.count(summary);
    request.onResult(result, ended.length);
  };
  const running = new Set<Promise<void>>();
  for (;;) {
    while (running.size < request.jobs && !stopped.aborted && spent.which() === undefined) {
      const next = queue.take();
      if (next === undefined) break;
      const work = run(next)
        .catch((thrown: unknown) => {
          if (!stopped.aborted) failed.abort(thrown);
        })
        .finally(() => {
          queue.free(next);
          running.delete(work);
        });
      running.add(work);
    }
    if (running.size === 0) break;
    await Promise.race(running);
  }
  if (failed.signal.aborted) throw failed.signal.reason;
  const left = rows.length - ended.length;
  return {
    rows: rows.length,
    ended,
    usage: ended.reduce((sum: Usage, { usage }) => (usage === null ? sum : sumUsage(sum, usage)), NO_USAGE),
    spent: left > 0 ? spent.which() : undefined,
    signal: signal.aborted ? codeOf(signal) : undefined,
  };
}

/**
 * Refuses an --out inside a folder that a row writes in place: the results would count as the row's changes, and the
 * row could edit them.
 */
async function refuseOutInside({ rows, folder }: BatchRequest): Promise<void> {
  const out = await realOf(folder);
  for (const { row, place } of await placeRows(rows)) {
    if (place === undefined || !isInside(place, out)) continue;
    throw new HarnessError(
      EXIT.usage,
      `the results would be saved in ${out}, inside the folder that row ${row.row} changes in place: ${place}`,
      "choose an --out elsewhere, or leave it out to save them in the state directory",
    );
  }
}

/** Also resolves a path that does not exist yet. */
async function realOf(file: string): Promise<string> {
  const parent = path.dirname(file);
  return realpath(file).catch(async () =>
    parent === file ? file : path.join(await realOf(parent), path.basename(file)),
  );
}

export function codeOf({ reason }: AbortSignal): number {
  const name = reason instanceof Interrupted ? reason.signal : "SIGINT";
  return name === "reader-left" || name === "overtaken" ? CODES.SIGHUP : CODES[name];
}

interface PlacedRow {
  readonly row: BatchRow;
  /** The folder that the row works on; undefined for a clone, which no other row shares. */
  readonly place: string | undefined;
}

const placeRows = (rows: readonly BatchRow[]): Promise<readonly PlacedRow[]> =>
  Promise.all(
    rows.map(async (row) => {
      if (row.kind === "repo") return { row, place: undefined };
      const named = path.resolve(row.target);
      return { row, place: await realpath(named).catch(() => named) };
    }),
  );

/** Waiting rows, in order. A row is not handed out while another one works on its folder. */
class RowQueue {
  readonly #waiting: PlacedRow[];
  readonly #busy = new Set<string>();

  constructor(rows: readonly PlacedRow[]) {
    this.#waiting = [...rows];
  }

  /** The next row that can begin. */
  take(): PlacedRow | undefined {
    const at = this.#waiting.findIndex(({ place }) => place === undefined || !this.#isBusy(place));
    if (at === -1) return undefined;
    const [next] = this.#waiting.splice(at, 1);
    if (next?.place !== undefined) this.#busy.add(next.place);
    return next;
  }

  free({ place }: PlacedRow): void {
    if (place !== undefined) this.#busy.delete(place);
  }

  #isBusy(place: string): boolean {
    for (const busy of this.#busy) if (isInside(busy, place) || isInside(place, busy)) return true;
    return false;
  }
}

/** What is spent of the whole budget: the time of this command, and what all finished rows took. */
export class Spending {
  readonly #budget: BatchBudget;
  readonly #warn: (text: string) => void;
  readonly #started = performance.now();
  readonly #untold = new Set<"tokens" | "cost">();
  #tokens = 0;
  #cost = 0;

  constructor(budget: BatchBudget, ended: readonly RowSummary[], warn: (text: string) => void) {
    this.#budget = budget;
    this.#warn = warn;
    for (const each of ended) this.count(each);
  }

  count({ row, usage }: RowSummary): void {
    if (usage === null) return;
    const { prompt_tokens, completion_tokens, cost } = usage;
    this.#tokens += (prompt_tokens ?? 0) + (completion_tokens ?? 0);
    this.#cost += cost ?? 0;
    if (prompt_tokens === null || completion_tokens === null) this.#tellUntold("tokens", row);
    if (cost === null) this.#tellUntold("cost", row);
  }

  /** The limit that is spent; `passed` is how long the whole batch has been running. */
  which(passed = performance.now() - this.#started): string | undefined {
    const { ms, tokens, cost } = this.#budget;
    if (ms !== undefined && passed >= ms) return "--max-time";
    if (tokens !== undefined && this.#tokens >= tokens) return "--max-tokens";
    if (cost !== undefined && this.#cost >= cost) return "--max-cost";
    return undefined;
  }

  #tellUntold(what: "tokens" | "cost", row: number): void {
    if (this.#budget[what] === undefined || this.#untold.has(what)) return;
    this.#untold.add(what);
    this.#warn(
      `the ${what} of row ${row} ${what === "cost" ? "is" : "are"} unknown: --max-${what} counts only the other rows`,
    );
  }
}

/** Runs the given pieces of work one after the other. */
function serialQueue(): RowPlan["alone"] {
  let last: Promise<unknown> = Promise.resolve();
  return async (work) => {
    const before = last;
    const mine = (async () => {
      await before.catch(() => undefined);
      return work();
    })();
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** Flags of `harness run` that apply to every row. */
const PASSED = [
  "mode",
  "model",
  "provider",
  "base-url",
  "engine",
  "isolation",
  "image",
  "env",
  "allow-domain",
  "secret",
  "canaries",
  "memory",
  "cpus",
  "pids",
  "runtime",
  "timeout",
  "max-turns",
  "on-ask",
  "attempts",
] as const;

/**
 * Command-line words, keyed by flag. Rows with a folder work in a layer by default, so each starts with the folder as
 * it is. No run is parked: once its clone is gone, nobody could resume it.
 */
export function wordsOfFlags(
  flags: Readonly<Record<string, unknown>>,
  { isolation, on_ask, attempts }: Pick<Settings, "isolation" | "on_ask" | "attempts">,
): { readonly words: ReadonlyMap<string, readonly string[]>; readonly inPlace: boolean } {
  const words = new Map<string, readonly string[]>();
  for (const name of PASSED) {
    const value = flags[name];
    if (value === true) words.set(`--${name}`, [`--${name}`]);
    else if (Array.isArray(value))
      words.set(
        `--${name}`,
        value.map((each) => `--${name}=${each}`),
      );
    else if (typeof value === "string") words.set(`--${name}`, [`--${name}=${value}`]);
  }
  if (flags["isolation"] === undefined)
    words.set("--isolation", [`--isolation=${isolation === "copy" ? "copy" : "overlay"}`]);
  if (on_ask === "park") words.set("--on-ask", ["--on-ask=contained"]);
  return { words, inPlace: flags["isolation"] === "bind" || attempts > 1 };
}

export function jobsFor(host: Host, settings: Settings, wanted: number): JobsBound {
  const servesModel = settings.provider !== "scripted" && isLocalModel(host, settings);
  const { memory, cpus } = settings;
  return boundJobs(wanted, { memory, cpus, servesModel }, thisMachine());
}

/**
 * The default folder of a batch, used when none is named: in the state folder, keyed by the source of the rows, new
 * each time. With `resume`, the most recent one.
 */
export async function ownBatchFolder(host: Host, source: string, resume: boolean): Promise<string> {
  const name = path
    .basename(source)
    .replaceAll(/[^\w.-]+/g, "_")
    .slice(0, 40);
  const key = createHash("sha256").update(source).digest("hex").slice(0, 12);
  const root = path.join(host.places.state, "batches", `${name}-${key}`);
  makeFolder(root);
  const numbers = (await readdir(root)).filter((each) => /^\d{1,9}$/.test(each)).map(Number);
  const last = Math.max(0, ...numbers);
  return path.join(root, String(resume ? Math.max(1, last) : last + 1));
}

interface Machine {
  /** In bytes. Respects the limit of this process's control group. */
  readonly memory: number;
  readonly processors: number;
}

export const thisMachine = (): Machine => ({
  memory: process.availableMemory(),
  processors: availableParallelism(),
});

interface BoundBy {
  /** Memory of one box, in bytes. */
  readonly memory: number;
  /** CPUs of one box; null: all of the machine's. */
  readonly cpus: number | null;
  /** The model is served on this machine, so its server counts as one more run. */
  readonly servesModel: boolean;
}

interface JobsBound {
  readonly jobs: number;
  /** Why there are fewer jobs than requested. */
  readonly why?: string;
}

/** Each run is a process of ours in addition to its box. */
const RUN_BYTES = 200 * 2 ** 20;
/** A run spends most of its time waiting for the model. */
const RUNS_A_PROCESSOR = 2;

/**
 * How many runs go side by side. The full memory that their boxes may take must be available, whatever they use. At
 * least one.
 */
export function boundJobs(wanted: number, by: BoundBy, machine: Machine): JobsBound {
  const server = by.servesModel ? 1 : 0;
  const fitting = Math.floor(machine.memory / (by.memory + RUN_BYTES)) - server;
  const computing = Math.floor((RUNS_A_PROCESSOR * machine.processors) / Math.max(1, by.cpus ?? 1)) - server;
  const jobs = Math.max(1, Math.min(wanted, fitting, computing));
  if (jobs === wanted) return { jobs };
  const beside = by.servesModel ? ", counting the model server on this machine as one run" : "";
  const why =
    fitting <= computing
      ? `${formatSize(machine.memory)} of memory is free, and a box may take ${formatSize(by.memory)}`
      : `there ${machine.processors === 1 ? "is 1 processor" : `are ${machine.processors} processors`}, for ${RUNS_A_PROCESSOR} runs each`;
  return { jobs, why: `--jobs ${wanted} is lowered to ${jobs}: ${why}${beside}` };
}

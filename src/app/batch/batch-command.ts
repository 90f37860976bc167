import { availableParallelism } from "node:os";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { formatSize } from "../../core/text/bounds.ts";
import type { Host } from "../host.ts";
import { isLocalModel } from "../model-terms.ts";
import { makeFolder } from "../../platform/folders.ts";

/** What a batch is started with, apart from its rows. */

/** Flags of `harness run` that hold for every row. */
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
 * As words, by flag. Rows of folders work in a layer unless said otherwise: each begins with the folder as it is. Nobody
 * goes on with what a clone that is gone by then has parked.
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
 * Where a batch is kept that names no folder: below the state, by what its rows came from, each time a new one. One that
 * goes on is the last.
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

/** What a machine has to spare. */
interface Machine {
  /** In bytes, within a limit of this process's control group, too. */
  readonly memory: number;
  readonly processors: number;
}

export const thisMachine = (): Machine => ({
  memory: process.availableMemory(),
  processors: availableParallelism(),
});

interface BoundBy {
  /** Of one box, in bytes. */
  readonly memory: number;
  /** Of one box; null: all there are. */
  readonly cpus: number | null;
  /** The model is served on this machine: it counts as one more run. */
  readonly servesModel: boolean;
}

interface JobsBound {
  readonly jobs: number;
  /** Why there are fewer than were wanted. */
  readonly why?: string;
}

/** Beside its box a run is a process of ours. */
const RUN_BYTES = 200 * 2 ** 20;
/** A run waits for its model most of the time. */
const RUNS_A_PROCESSOR = 2;

/** How many runs are side by side: what their boxes may take has to be there, whatever they do take. One always is. */
export function boundJobs(wanted: number, by: BoundBy, machine: Machine): JobsBound {
  const server = by.servesModel ? 1 : 0;
  const fitting = Math.floor(machine.memory / (by.memory + RUN_BYTES)) - server;
  const computing = Math.floor((RUNS_A_PROCESSOR * machine.processors) / Math.max(1, by.cpus ?? 1)) - server;
  const jobs = Math.max(1, Math.min(wanted, fitting, computing));
  if (jobs === wanted) return { jobs };
  const beside = by.servesModel ? ", the model server on this machine counted as one" : "";
  const why =
    fitting <= computing
      ? `${formatSize(machine.memory)} of memory are free, and a box may take ${formatSize(by.memory)}`
      : `there ${machine.processors === 1 ? "is 1 processor" : `are ${machine.processors} processors`}, for ${RUNS_A_PROCESSOR} runs each`;
  return { jobs, why: `--jobs ${wanted} is lowered to ${jobs}: ${why}${beside}` };
}

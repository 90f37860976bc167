import { availableParallelism } from "node:os";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { formatSize } from "../../core/wording.ts";
import type { Host } from "../host.ts";
import { isLocalModel } from "../model-terms.ts";
import { makeFolder } from "../../platform/folders.ts";

/** Everything a batch is started with, except its rows. */

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

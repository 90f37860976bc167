import { availableParallelism } from "node:os";
import { formatSize } from "../../core/text/bounds.ts";

/** What a machine has to spare. */
export interface Machine {
  /** In bytes, within a limit of this process's control group, too. */
  readonly memory: number;
  readonly processors: number;
}

export const thisMachine = (): Machine => ({
  memory: process.availableMemory(),
  processors: availableParallelism(),
});

export interface BoundBy {
  /** Of one box, in bytes. */
  readonly memory: number;
  /** Of one box; null: all there are. */
  readonly cpus: number | null;
  /** The model is served on this machine: it counts as one more run. */
  readonly servesModel: boolean;
}

export interface JobsBound {
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

import * as z from "zod";
import { CAUSES } from "../core/errors.ts";
import type { ExecResult, Job, KeptOutput, OldJob } from "../core/ports.ts";
import type { CommandState, StartedCommand } from "./box-command.ts";

/** A named job of a parked box: everything received from it and, if it has ended, its result. */

const bytes = z.base64();
const stream = z.strictObject({ head: bytes, tail: bytes });
const streamCounts = z.strictObject({ total: z.number(), lost: z.number() });

const blockedConnection = z.strictObject({
  host: z.string(),
  port: z.number(),
  method: z.string().nullable(),
  rule: z.string(),
  reason: z.string(),
  times: z.number(),
});

const result = z.strictObject({
  exit_code: z.number(),
  cause: z.enum(CAUSES).nullable(),
  reason: z.string(),
  duration_ms: z.number(),
  timed_out: z.boolean(),
  killed: z.boolean(),
  leftovers: z.number(),
  blocked: z.array(z.string()),
  blocked_connections: z.array(blockedConnection).readonly().exactOptional(),
  quarantined: z.array(z.strictObject({ from: z.string(), to: z.string().nullable(), takeBack: z.string() })),
  peak: z.strictObject({ memory_bytes: z.number(), pids: z.number() }),
  stdout: streamCounts,
  stderr: streamCounts,
});

export const keptJob = z.strictObject({
  name: z.string(),
  /** Note by the caller that started the job. */
  noted: z.string(),
  folder: z.string(),
  /** The job's number in the runner's protocol. */
  call: z.int(),
  /** How long the job has run. */
  ms: z.number(),
  why: z.enum(["cancelled", "disk", "input"]).nullable(),
  stdout: stream,
  stderr: stream,
  errors: bytes,
  result: result.nullable(),
});

export type KeptJob = z.infer<typeof keptJob>;

interface StoredJob {
  readonly folder: string;
  readonly started: Pick<StartedCommand, "past">;
  /** Resolves once `result` is set. */
  ended: Promise<unknown>;
  noted: string;
  result: ExecResult | null;
}

export interface BegunJob {
  readonly folder: string;
  readonly started: Pick<StartedCommand, "past" | "output" | "end" | "resize">;
  readonly result: Promise<ExecResult>;
}

/** The named jobs of a box, ended ones included, and what happens to them when the box is parked. */
export class FinishedJobs {
  readonly #jobs = new Map<string, StoredJob>();

  put(name: string | undefined, { folder, started, result }: BegunJob, noted = ""): Job {
    const shelved: StoredJob = { folder, started, noted, result: null, ended: Promise.resolve() };
    if (name !== undefined) this.#jobs.set(name, shelved);
    // Whoever awaits the result gets its failure, then or later.
    shelved.ended = result.then(
      (ended) => (shelved.result = ended),
      () => undefined,
    );
    return {
      result,
      output: started.output,
      kill: () => started.end("cancelled"),
      resize: started.resize,
      note: (text) => {
        shelved.noted = text;
      },
    };
  }

  /** A job that ended before the box was parked. */
  restore(job: KeptJob): OldJob {
    const past = commandStateOf(job);
    const result = job.result === null ? null : resultOf(job.result, past);
    if (result === null) throw new TypeError(`${job.name} has not ended`);
    const output = (): ReturnType<Job["output"]> => ({
      stdout: Buffer.concat([past.stdout.head, past.stdout.tail]),
      stderr: Buffer.concat([past.stderr.head, past.stderr.tail]),
    });
    const started = { past: () => past, output, end: () => undefined, resize: () => undefined };
    const begun = { folder: job.folder, started, result: Promise.resolve(result) };
    const shelved = this.put(job.name, begun, job.noted);
    return Object.assign(shelved, { noted: job.noted });
  }

  /** Protocol numbers of the jobs that continue. */
  get continuingCalls(): ReadonlySet<number> {
    const going = [...this.#jobs.values()].filter(({ result }) => result === null);
    return new Set(going.map(({ started }) => started.past().call));
  }

  /** Resolves when all others have their results. */
  async settled(going: ReadonlySet<number>): Promise<void> {
    const finished = [...this.#jobs.values()].filter(({ started }) => !going.has(started.past().call));
    await Promise.allSettled(finished.map(({ ended }) => ended));
  }

  kept(): readonly KeptJob[] {
    return [...this.#jobs].map(([name, { folder, started, noted, result }]) => {
      const { call, ms, why = null, stdout, stderr, errors } = started.past();
      return {
        name,
        noted,
        folder,
        call,
        ms,
        why,
        errors: errors.toString("base64"),
        stdout: textsOf(stdout),
        stderr: textsOf(stderr),
        result: result && {
          ...unobserved(result),
          blocked: [...result.blocked],
          quarantined: [...result.quarantined],
          stdout: countOf(result.stdout),
          stderr: countOf(result.stderr),
        },
      };
    });
  }
}

/** Observations of an ended job were already reported, so parking does not keep them. */
function unobserved(ended: ExecResult): Omit<ExecResult, "observed"> {
  const { observed: _, ...result } = ended;
  return result;
}

export function commandStateOf({ call, ms, why, stdout, stderr, errors }: KeptJob): CommandState {
  return {
    call,
    ms,
    why: why ?? undefined,
    stdout: bytesOf(stdout),
    stderr: bytesOf(stderr),
    errors: Buffer.from(errors, "base64"),
  };
}

const resultOf = (ended: NonNullable<KeptJob["result"]>, { stdout, stderr }: CommandState): ExecResult => ({
  ...ended,
  stdout: { ...ended.stdout, ...stdout },
  stderr: { ...ended.stderr, ...stderr },
});

const textsOf = ({ head, tail }: CommandState["stdout"]): KeptJob["stdout"] => ({
  head: head.toString("base64"),
  tail: tail.toString("base64"),
});

const bytesOf = ({ head, tail }: KeptJob["stdout"]): CommandState["stdout"] => ({
  head: Buffer.from(head, "base64"),
  tail: Buffer.from(tail, "base64"),
});

const countOf = ({ total, lost }: KeptOutput): { readonly total: number; readonly lost: number } => ({
  total,
  lost,
});

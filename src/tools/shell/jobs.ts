import { formatDuration } from "../../core/bounds.ts";
import type { Box, ExecRequest, ExecResult, Job } from "../../core/ports.ts";
import type { ToolResult } from "../../core/tool.ts";
import { type Advise, asResult, endingOf } from "./ending.ts";
import { both } from "./words.ts";

/** Bytes of one stream that are kept of a job; what comes later is shown only when it ends, and only its last. */
const KEEP = { head: 2 * 2 ** 20, tail: 2 ** 18 };
const MOST_RUNNING = 8;
/** So that what fails at once is told at once. */
const FIRST_LOOK_MS = 300;

interface JobLook {
  readonly id: string;
  readonly kill: boolean;
  /** How long to wait for its end. */
  readonly waitMs: number;
}

export interface Jobs {
  start(box: Box, command: Omit<ExecRequest, "keep">, signal: AbortSignal): Promise<ToolResult>;
  look(look: JobLook, signal: AbortSignal): Promise<ToolResult>;
}

/** The jobs of one agent. They end with the box. */
export function jobBook(advise: Advise): Jobs {
  const known = new Map<string, Known>();
  return {
    start: async (box, request, signal) => {
      const running = [...known.values()].filter(({ ended }) => ended === undefined);
      if (running.length >= MOST_RUNNING) return tooMany(known);
      const id = `j${known.size + 1}`;
      const job = knownJob(id, box.start({ ...request, keep: KEEP }));
      known.set(id, job);
      await waited(job, FIRST_LOOK_MS, signal);
      if (signal.aborted) job.kill();
      return told(job, advise, `; {"job":"${id}"} shows its new output, {"job":"${id}","kill":true} ends it`);
    },
    look: async ({ id, kill, waitMs }, signal) => {
      const job = known.get(id);
      if (job === undefined) return unknown(id, known);
      if (kill) job.kill();
      if (kill) await job.result;
      else await waited(job, waitMs, signal);
      return told(job, advise);
    },
  };
}

interface Known {
  readonly id: string;
  readonly result: Promise<ExecResult>;
  readonly kill: () => void;
  readonly age: () => string;
  /** What was not shown yet. */
  readonly fresh: () => string;
  /** It said more than is kept of it while it runs. */
  readonly full: () => boolean;
  ended: ExecResult | undefined;
  killed: boolean;
}

function knownJob(id: string, job: Job): Known {
  const begun = performance.now();
  const [out, err] = [new Unread(), new Unread()];
  const known: Known = {
    id,
    result: job.result.then((result) => (known.ended = result)),
    kill: () => {
      known.killed ||= known.ended === undefined;
      job.kill();
    },
    age: () => formatDuration(performance.now() - begun),
    fresh: () => {
      const { stdout, stderr } = job.output();
      return both(out.next(stdout), err.next(stderr));
    },
    full: () => out.seen >= KEEP.head || err.seen >= KEEP.head,
    ended: undefined,
    killed: false,
  };
  // The loss of the box is heard by whoever asks for the job next.
  known.result.catch(() => undefined);
  return known;
}

/** A stream that is read piece by piece, without parting a character. */
class Unread {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  seen = 0;

  next(bytes: Uint8Array): string {
    const fresh = bytes.subarray(this.seen);
    this.seen = bytes.length;
    return this.#decoder.decode(fresh, { stream: true });
  }
}

async function waited({ result }: Known, ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await Promise.race([promise, result]).finally(() => clearTimeout(timer));
}

function told(job: Known, advise: Advise, more = ""): ToolResult {
  const said = job.fresh();
  const { id, ended } = job;
  if (ended === undefined) {
    const full = job.full() ? "; what it says now is shown when it ends" : "";
    return { kind: "ok", text: lines(said, [`[${id} is running, ${job.age()}${full}${more}]`]) };
  }
  const ending = endingOf(ended, said);
  const lost = ended.stdout.lost + ended.stderr.lost;
  const cut = lost === 0 ? [] : [`[${lost} bytes in the middle of its output were not kept]`];
  if (ending.kind === "ok" || job.killed)
    return {
      kind: "ok",
      text: lines(said, [...cut, `[${id} ${job.killed ? "was ended" : "ended: exit 0"}]`]),
    };
  return asResult(ending, lines(said, [...cut, ...advise(ending.advice), `[${id} ended]`, ...ending.lines]));
}

const lines = (said: string, notes: readonly string[]): string =>
  (said === "" ? notes : [said, ...notes]).join("\n");

const stateOf = ({ id, ended }: Known): string => `${id} (${ended === undefined ? "running" : "ended"})`;

function unknown(id: string, known: ReadonlyMap<string, Known>): ToolResult {
  const list = [...known.values()].map(stateOf).join(", ");
  const issue = `no job ${JSON.stringify(id)}; ${list === "" ? "none was started" : `there are ${list}`}`;
  return { kind: "invalid", issues: [issue], text: issue };
}

const tooMany = (known: ReadonlyMap<string, Known>): ToolResult => ({
  kind: "failed",
  cause: "pids",
  text: `${MOST_RUNNING} jobs are running; end one first: ${[...known.values()]
    .filter(({ ended }) => ended === undefined)
    .map(stateOf)
    .join(", ")}`,
});

import { constants } from "node:os";
import * as z from "zod";
import { CAUSES, EXIT, HarnessError } from "../core/errors.ts";
import type { ExecRequest, ExecResult, Job, KeptOutput, OldJob } from "../core/ports.ts";
import { KILL, type Listener, type RunnerClient } from "./runner-client.ts";
import {
  isFolderGone,
  nameOfErrno,
  readSeen,
  type RunnerExit,
  type ExitVerdict,
  verdictOf,
} from "./runner-command.ts";
import { FileRefused, refusedFile } from "./runner-files.ts";

type Ending = "cancelled" | "disk" | "input";

/** How a command ended, before the workspace is searched for its changes. */
export type FinishedCommand = Omit<ExecResult, "blocked" | "quarantined">;

export interface StartedCommand extends Omit<Job, "result" | "kill" | "note"> {
  readonly ended: Promise<FinishedCommand>;
  readonly end: (why: Ending) => void;
  /** The end of its stderr, kept even when `onOutput` consumed the stream. */
  readonly errors: () => string;
  /** The command's state so far. */
  readonly past: () => CommandState;
}

/** State of a command that one process hands to another one that continues it. */
export interface CommandState {
  /** Its number in the runner's protocol. */
  readonly call: number;
  readonly ms: number;
  readonly why: Ending | undefined;
  readonly stdout: { readonly head: Buffer; readonly tail: Buffer };
  readonly stderr: { readonly head: Buffer; readonly tail: Buffer };
  readonly errors: Buffer;
}

interface StartOptions {
  readonly workspace: string;
  /** Set if the command was started before the box was parked; this process follows it from here on. */
  readonly past?: CommandState | undefined;
}

/** Starts one command; `ended` rejects only when the box itself is lost or can no longer be trusted. */
export function startCommand(
  client: RunnerClient,
  request: ExecRequest,
  { workspace, past }: StartOptions,
): StartedCommand {
  const [stdout, stderr] = [new OutputKeeper(past?.stdout), new OutputKeeper(past?.stderr)];
  const errors = new LastBytes(past?.errors);
  const onOutput: Listener["onOutput"] = (stream, part, bytes) => {
    if (stream === "stderr") errors.add(bytes);
    if (request.onOutput !== undefined && part === "head") return request.onOutput(stream, bytes);
    (stream === "stdout" ? stdout : stderr).add(part, bytes);
    return undefined;
  };
  const command = {
    words: request.words,
    folder: request.folder ?? workspace,
    env: request.env ?? {},
    timeoutMs: request.timeoutMs,
    head: request.keep.head,
    tail: request.keep.tail,
    terminal: request.terminal !== undefined,
    exact: request.exactFolder === true,
    keepFile: request.keepFile,
    observe: request.observe && { ...request.observe, trees: [workspace] },
    input: request.input === undefined ? undefined : watched(request.input, () => end("input")),
  };
  const state: { why: Ending | undefined } = { why: past?.why };
  const end = (why: Ending): void => {
    state.why ??= why;
    running.signal(KILL);
  };
  const start = performance.now() - (past?.ms ?? 0);
  const running =
    past === undefined ? client.run(command, { onOutput }) : client.follow(past.call, { onOutput });
  if (request.terminal !== undefined) running.resize(request.terminal.columns, request.terminal.rows);
  return {
    ended: running.ended.then((exit) => ({
      ...resultOf(exit, state.why),
      ...observedOf(exit, request),
      ...keptOf(exit, request),
      stdout: stdout.kept(exit.stdout),
      stderr: stderr.kept(exit.stderr),
      duration_ms: Math.round((performance.now() - start) * 1000) / 1000,
    })),
    errors: () => errors.text,
    past: () => ({
      call: running.call,
      ms: performance.now() - start,
      why: state.why,
      stdout: stdout.parts,
      stderr: stderr.parts,
      errors: errors.bytes,
    }),
    output: () => ({ stdout: stdout.soFar(), stderr: stderr.soFar() }),
    end,
    resize: running.resize,
  };
}

/** How a shell reports that the program it ran was killed. */
const KILLED_CODE = 128 + KILL;

function resultOf(
  exit: RunnerExit,
  why: Ending | undefined,
): Omit<FinishedCommand, "stdout" | "stderr" | "duration_ms"> {
  if (exit.errno === constants.errno.ESTALE) throw mountsMoved();
  if (exit.stuck) throw stuck();
  const { exitCode, cause, reason }: ExitVerdict =
    why === "disk" || why === "input" ? FORCED_VERDICTS[why] : verdictOf(exit, why === "cancelled");
  return {
    exit_code: exitCode,
    cause,
    reason,
    timed_out: exit.timedOut && why === undefined,
    // A shell reports a process that was killed for its memory by its own exit code.
    killed:
      why !== undefined ||
      exit.timedOut ||
      exit.signal === KILL ||
      (cause === "memory" && exitCode === KILLED_CODE),
    leftovers: exit.killed,
    peak: { memory_bytes: exit.peakMemory, pids: exit.peakPids },
    ...(isFolderGone(exit) ? { folder_gone: true } : {}),
  };
}

function keptOf({ kept }: RunnerExit, { keepFile }: ExecRequest): Pick<FinishedCommand, "keptFile"> {
  if (kept === undefined || keepFile === undefined) return {};
  if ("content" in kept) return { keptFile: { kind: "ok", value: kept.content } };
  return { keptFile: refusedFile(new FileRefused(nameOfErrno(kept.errno), keepFile.path, "read")) };
}

/** A touched canary decides the cause, because the runner ended the command at the first touch. */
function observedOf(
  { seen = [] }: RunnerExit,
  { observe }: ExecRequest,
): Partial<Pick<FinishedCommand, "observed" | "cause" | "reason">> {
  // A command started before the box was parked is still observed, but which canaries it had is no longer known.
  if (observe === undefined && seen.length === 0) return {};
  const observed = readSeen(seen, observe?.canaries ?? []);
  const { touched } = observed;
  return {
    observed,
    ...(touched === null
      ? {}
      : { cause: "canary", reason: `it touched a canary: ${touched.canary} (${touched.path})` }),
  };
}

const FORCED_VERDICTS: Readonly<Record<"disk" | "input", ExitVerdict>> = {
  disk: { exitCode: 137, cause: "disk", reason: "it used up the disk space that a run may take" },
  input: { exitCode: 137, cause: "user", reason: "its input could not be read to the end" },
};

/** A truncated input must not be taken for a complete one. */
async function* watched(input: AsyncIterable<Uint8Array>, onFailure: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* input;
  } catch {
    onFailure();
  }
}

/** The result of a command that was cancelled before it started. */
export function cancelledResult(): ExecResult {
  const nothing = { head: Buffer.alloc(0), tail: Buffer.alloc(0), total: 0, lost: 0 };
  return {
    exit_code: 128 + KILL,
    cause: "user",
    reason: "cancelled",
    stdout: nothing,
    stderr: nothing,
    duration_ms: 0,
    timed_out: false,
    killed: true,
    leftovers: 0,
    blocked: [],
    quarantined: [],
    peak: { memory_bytes: 0, pids: 0 },
  };
}

const mountsMoved = (): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    "a protected path was replaced from outside while the box was open, so its protection is gone",
    "start again: the new box protects what is there now",
  );

const stuck = (): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    "a command could not be stopped from inside the box, so the box is removed",
    "start again",
  );

interface KeptParts {
  readonly head?: Buffer;
  readonly tail?: Buffer;
}

/** One output stream of a command as kept in this process: at most its head and its tail. */
export class OutputKeeper {
  readonly #head: Buffer[] = [];
  readonly #tail: Buffer[] = [];

  constructor({ head, tail }: KeptParts = {}) {
    if (head !== undefined) this.#head.push(head);
    if (tail !== undefined) this.#tail.push(tail);
  }

  get parts(): Required<KeptParts> {
    return { head: Buffer.concat(this.#head), tail: Buffer.concat(this.#tail) };
  }

  add(part: "head" | "tail", bytes: Buffer): void {
    (part === "head" ? this.#head : this.#tail).push(bytes);
  }

  soFar(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tail]);
  }

  kept({ total, lost }: { readonly total: number; readonly lost: number }): KeptOutput {
    return { head: Buffer.concat(this.#head), tail: Buffer.concat(this.#tail), total, lost };
  }
}

const LAST_BYTE_COUNT = 64 * 1024;

/** The last bytes of a stream. */
export class LastBytes {
  #bytes: Buffer;

  constructor(before: Buffer = Buffer.alloc(0)) {
    this.#bytes = before;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes.subarray(-LAST_BYTE_COUNT)]).subarray(-LAST_BYTE_COUNT);
  }

  get text(): string {
    return this.#bytes.toString("utf8");
  }
}

const base64Bytes = z.base64();
const keptStream = z.strictObject({ head: base64Bytes, tail: base64Bytes });
const streamCounts = z.strictObject({ total: z.number(), lost: z.number() });

const blockedConnection = z.strictObject({
  host: z.string(),
  port: z.number(),
  method: z.string().nullable(),
  rule: z.string(),
  reason: z.string(),
  times: z.number(),
});

const endedResult = z.strictObject({
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

/** A named job of a parked box: everything received from it and, if it has ended, its result. */
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
  stdout: keptStream,
  stderr: keptStream,
  errors: base64Bytes,
  result: endedResult.nullable(),
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
    const result = job.result === null ? null : keptResult(job.result, past);
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

const keptResult = (ended: NonNullable<KeptJob["result"]>, { stdout, stderr }: CommandState): ExecResult => ({
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

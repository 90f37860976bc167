/** The tool bash: one shell whose folder and exported variables persist, and its jobs in the background. */

import * as z from "zod";
import type { Box, ExecRequest, ExecResult, Job, OldJob } from "../core/ports.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, notRun, type ToolResult } from "../core/tool.ts";
import { formatDuration } from "../core/wording.ts";
import {
  type Advise,
  adviseOnce,
  asResult,
  joinOutputs,
  endingOf,
  judgedText,
  KEEP,
  type Keeper,
  keeperOf,
  plainShell,
  wordsOf,
  wrapped,
} from "./shell-command.ts";
import { count, flag, lenientInput, isGiven, type ShellState, type ToolContext } from "./tool-context.ts";

const MAX_SECONDS = 600;

const input = lenientInput(
  z
    .strictObject({
      command: z.string().optional(),
      timeout: count.optional(),
      background: flag.optional(),
      job: z.string().optional(),
      kill: flag.optional(),
      restart: flag.optional(),
    })
    .refine(
      ({ command, job, restart }) => [command, job, restart || undefined].filter(isGiven).length === 1,
      { error: 'give one of "command", "job" and "restart"' },
    ),
);

type Input = z.infer<typeof input>;

const FOLDER =
  "to work in another folder begin the command with cd DIR && …; the folder stays for later calls";
const VARIABLES = "to set a variable begin the command with NAME=value, or export it for later calls";
const SECONDS = '"timeout" is in seconds';
const INSTEAD = {
  cwd: FOLDER,
  dir: FOLDER,
  directory: FOLDER,
  folder: FOLDER,
  path: FOLDER,
  workdir: FOLDER,
  working_dir: FOLDER,
  working_directory: FOLDER,
  workingDirectory: FOLDER,
  env: VARIABLES,
  environment: VARIABLES,
  timeout_ms: SECONDS,
  timeoutMs: SECONDS,
  timeout_seconds: SECONDS,
  stdin: "to give it input use a here-document in the command",
  input: "to give it input use a here-document in the command",
};

interface Shell {
  readonly context: ToolContext;
  readonly jobs: Jobs;
  readonly advise: Advise;
  readonly keeper: Keeper;
}

/** The shell's state when the call was judged. */
type State = Pick<ShellState, "folder" | "env">;

/** One shell: its folder and exported variables persist from call to call, its jobs until the box ends. */
export function bashTool(context: ToolContext): AnyTool {
  const advise = adviseOnce();
  const shell: Shell = {
    context,
    jobs: jobBook(context.agent, advise),
    advise,
    keeper: keeperOf(context),
  };
  return anyTool<Input>({
    name: "bash",
    instead: INSTEAD,
    description:
      "Run a bash command. The working directory and exported variables persist; restart: true forgets them. timeout: seconds " +
      `(default ${context.timeoutMs / 1000}, max ${longest(context)}). background: true for servers: gives a job (j1, j2…). ` +
      "With job instead of command: its new output; kill: true ends it.",
    input,
    where: "stated",
    concurrent: false,
    state: (input) => {
      const { folder, env } = context.shell;
      return {
        facts: factsOf(input, { folder, env }),
        run: (box, signal) => run({ ...shell, folder, env }, input, box, signal),
      };
    },
  });
}

function factsOf({ command, background }: Input, { folder, env }: State): Facts {
  if (!isGiven(command)) return NO_FACTS;
  const lasting = background === true ? ({ lasting: true } as const) : {};
  return { ...NO_FACTS, commands: [judgedText(command, env)], folder, ...lasting };
}

async function run(shell: Shell & State, input: Input, box: Box, signal: AbortSignal): Promise<ToolResult> {
  const { command, job, background, kill = false, timeout } = input;
  if (input.restart === true) return restarted(shell.context);
  if (!isGiven(command)) {
    const waitMs = Math.min(timeout ?? 0, MAX_SECONDS) * 1000;
    return shell.jobs.look(box, { id: job ?? "", kill, waitMs }, signal);
  }
  if (background !== true) return foreground(shell, { command, timeout }, box, signal);
  const { context, folder, env } = shell;
  const there = folder === context.workspace ? undefined : await box.stat(folder);
  if (there !== undefined && (there.kind !== "ok" || there.value.kind !== "folder")) return lostFolder(shell);
  return shell.jobs.start(box, { words: plainShell(command), folder, env, timeoutMs: 0 }, signal);
}

/**
 * The way out when exported variables make the policy refuse every command: a command that unsets them would be
 * refused, too.
 */
function restarted({ workspace, shell }: ToolContext): ToolResult {
  shell.move(workspace, {});
  return { kind: "ok", text: `The shell is in ${workspace}, with no exported variables. Jobs go on.` };
}

/** The command does not run in another folder instead: it was judged for the folder that it named. */
function lostFolder({ context: { workspace, shell }, folder, env }: Shell & State): ToolResult {
  shell.move(workspace, env);
  const why = `The working directory ${folder} is gone; the shell is now in ${workspace}.`;
  return { kind: "failed", cause: "program", text: `${why} Nothing was run: send it again.` };
}

/** The longest timeout, in seconds, that the model may request: at least the default of a command. */
const longest = ({ timeoutMs }: ToolContext): number => Math.max(MAX_SECONDS, timeoutMs / 1000);

/** One request to the box: its result includes the shell's state, and a missing folder is noticed at its start. */
async function foreground(
  shell: Shell & State,
  { command, timeout }: { readonly command: string; readonly timeout: number | undefined },
  box: Box,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { context, advise, keeper, folder, env } = shell;
  const call = keeper(box);
  const most = longest(context);
  const timeoutMs =
    timeout === undefined || timeout === 0 ? context.timeoutMs : Math.min(timeout, most) * 1000;
  const elsewhere = folder === context.workspace ? {} : ({ exactFolder: true } as const);
  const request = { words: wrapped(command), folder, env, timeoutMs, keep: KEEP, ...elsewhere };
  const result = await box.exec({ ...request, ...call.request }, signal);
  if (result.folder_gone === true && folder !== context.workspace) return lostFolder(shell);
  const notKept = await call.take(result);
  const output = wordsOf(result);
  const ending = endingOf(result, output);
  const notes = [
    ...notKept,
    ...((timeout ?? 0) > most ? [`[the timeout was cut to ${most} s]`] : []),
    ...advise(ending.advice),
  ];
  return asResult(ending, [output === "" ? "(no output)" : output, ...notes, ...ending.lines].join("\n"));
}

/** Bytes kept of each stream of a job; later output is shown only when the job ends, and only its end. */
const KEPT_OF_JOB = { head: 2 * 2 ** 20, tail: 2 ** 18 };
const MAX_RUNNING = 8;
/** Time to wait after the start, so that an immediate failure is reported at once. */
const FIRST_LOOK_MS = 300;

interface JobLook {
  readonly id: string;
  readonly kill: boolean;
  /** How long to wait for its end. */
  readonly waitMs: number;
}

interface Jobs {
  start(box: Box, command: Omit<ExecRequest, "keep">, signal: AbortSignal): Promise<ToolResult>;
  look(box: Box, look: JobLook, signal: AbortSignal): Promise<ToolResult>;
}

/** The jobs of one agent. They end with the box; a box that was parked still has them. */
function jobBook(agent: string, advise: Advise): Jobs {
  const known = new Map<string, KnownJob>();
  const find = (box: Box): void => {
    if (known.size > 0) return;
    for (const [id, job] of oldJobs(box, agent)) known.set(id, knownJob(id, job, job.noted));
  };
  return {
    start: async (box, request, signal) => {
      find(box);
      const running = [...known.values()].filter(({ ended }) => ended === undefined);
      if (running.length >= MAX_RUNNING) return tooMany(known);
      const id = `j${known.size + 1}`;
      const job = knownJob(id, box.start({ ...request, keep: KEPT_OF_JOB, name: `${agent}/${id}` }));
      known.set(id, job);
      await waitForEnd(job, FIRST_LOOK_MS, signal);
      if (signal.aborted) job.kill();
      return jobReport(
        job,
        advise,
        `; {"job":"${id}"} shows its new output, {"job":"${id}","kill":true} ends it`,
      );
    },
    look: async (box, { id, kill, waitMs }, signal) => {
      find(box);
      const job = known.get(id);
      if (job === undefined) return unknown(id, known);
      if (kill) job.kill();
      if (kill) await job.result;
      else await waitForEnd(job, waitMs, signal);
      return jobReport(job, advise);
    },
  };
}

interface KnownJob {
  readonly id: string;
  readonly result: Promise<ExecResult>;
  readonly kill: () => void;
  readonly age: () => string;
  /** Output that was not shown yet. */
  readonly fresh: () => string;
  /** More output came than is kept while the job runs. */
  readonly full: () => boolean;
  ended: ExecResult | undefined;
  killed: boolean;
}

/** The agent's jobs in a resumed box, in order of their start. */
function oldJobs(box: Box, agent: string): readonly (readonly [string, OldJob])[] {
  const own = [...(box.kept ?? [])].filter(([name]) => name.startsWith(`${agent}/j`));
  return own.map(([name, job]) => [name.slice(agent.length + 1), job]);
}

/** State of a job beside its output: when it began, how much of it was shown. */
const noteForm = z.object({
  begun: z.number(),
  out: z.number(),
  err: z.number(),
  killed: z.boolean(),
});

function knownJob(id: string, job: Job, noted?: string): KnownJob {
  const earlier = noted === undefined || noted === "" ? undefined : noteForm.parse(JSON.parse(noted));
  const begun = earlier?.begun ?? Date.now();
  const [out, err] = [new OutputReader(earlier?.out), new OutputReader(earlier?.err)];
  const note = (): void =>
    job.note?.(JSON.stringify({ begun, out: out.whole, err: err.whole, killed: known.killed }));
  const known: KnownJob = {
    id,
    result: job.result.then((result) => (known.ended = result)),
    kill: () => {
      known.killed ||= known.ended === undefined;
      note();
      job.kill();
    },
    age: () => formatDuration(Math.max(0, Date.now() - begun)),
    fresh: () => {
      const { stdout, stderr } = job.output();
      const output = joinOutputs(out.next(stdout), err.next(stderr));
      note();
      return output;
    },
    full: () => out.seen >= KEPT_OF_JOB.head || err.seen >= KEPT_OF_JOB.head,
    ended: undefined,
    killed: earlier?.killed ?? false,
  };
  note();
  // The loss of the box is reported to the next request about the job.
  known.result.catch(() => undefined);
  return known;
}

/** Decodes a stream piece by piece without splitting a character. */
class OutputReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  seen: number;
  /** Bytes in `seen`, without the start of a character whose end has not arrived. */
  whole: number;

  constructor(seen = 0) {
    this.seen = this.whole = seen;
  }

  next(bytes: Uint8Array): string {
    const fresh = bytes.subarray(this.seen);
    this.seen = bytes.length;
    this.whole = this.seen - partial(bytes);
    return this.#decoder.decode(fresh, { stream: true });
  }
}

/** Number of bytes at the end that start an incomplete character. */
function partial(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes.at(-back) ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

async function waitForEnd({ result }: KnownJob, ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await Promise.race([promise, result]).finally(() => clearTimeout(timer));
}

function jobReport(job: KnownJob, advise: Advise, more = ""): ToolResult {
  const output = job.fresh();
  const { id, ended } = job;
  if (ended === undefined) {
    const full = job.full() ? "; what it says now is shown when it ends" : "";
    return { kind: "ok", text: lines(output, [`[${id} is running, ${job.age()}${full}${more}]`]) };
  }
  const ending = endingOf(ended, output);
  const lost = ended.stdout.lost + ended.stderr.lost;
  const cut = lost === 0 ? [] : [`[${lost} bytes in the middle of its output were not kept]`];
  if (ending.kind === "ok" || job.killed)
    return {
      kind: "ok",
      text: lines(output, [...cut, `[${id} ${job.killed ? "was ended" : "ended: exit 0"}]`]),
    };
  return asResult(
    ending,
    lines(output, [...cut, ...advise(ending.advice), `[${id} ended]`, ...ending.lines]),
  );
}

const lines = (output: string, notes: readonly string[]): string =>
  (output === "" ? notes : [output, ...notes]).join("\n");

const stateOf = ({ id, ended }: KnownJob): string => `${id} (${ended === undefined ? "running" : "ended"})`;

function unknown(id: string, known: ReadonlyMap<string, KnownJob>): ToolResult {
  const list = [...known.values()].map(stateOf).join(", ");
  return notRun(`no job ${JSON.stringify(id)}; ${list === "" ? "none was started" : `there are ${list}`}`);
}

const tooMany = (known: ReadonlyMap<string, KnownJob>): ToolResult => ({
  kind: "failed",
  cause: "pids",
  text: `${MAX_RUNNING} jobs are running; end one first: ${[...known.values()]
    .filter(({ ended }) => ended === undefined)
    .map(stateOf)
    .join(", ")}`,
});

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, type FileHandle, open, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { formatDuration } from "../../core/text/bounds.ts";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { isLoopback } from "./ollama-address.ts";
import { askOllama, ollamaStream, Refused } from "./ollama-client.ts";
import { ollamaLine } from "./ollama-server.ts";
import { makeFolder } from "../../platform/folders.ts";

type Env = Readonly<Record<string, string | undefined>>;

type ServeResult =
  | { readonly kind: "started"; readonly pid: number }
  | { readonly kind: "not-installed" }
  | { readonly kind: "failed"; readonly reason: string };

interface ServeRequest {
  readonly env: Env;
  readonly baseUrl: string;
  readonly logFile: string;
  readonly signal: AbortSignal;
  /** An `ollama` inside this folder is never started: code of a repository does not run on the host. */
  readonly workspace?: string;
  /** Time for the server to answer; 15 seconds by default. */
  readonly waitMs?: number;
}

const WAIT_MS = 15_000;
const ASK_MS = 1000;
const POLL_MS = 100;
const STOP_MS = 2000;
const TAIL = 2000;

/** Starts the Ollama on PATH and leaves it running. Never throws; ends a server that does not answer in time. */
export async function startInstalledOllama(request: ServeRequest): Promise<ServeResult> {
  const { baseUrl } = request;
  if (!isLoopback(baseUrl) || !baseUrl.startsWith("http:"))
    return failed(`${baseUrl} is not http on this machine, so nothing can be started there`);
  try {
    const program = await findOllama(request.env, request.workspace);
    if (program === undefined) return { kind: "not-installed" };
    if (await answers(baseUrl, request.signal)) return failed(`something already answers at ${baseUrl}`);
    makeFolder(path.dirname(request.logFile), 0o777);
    await using log = await open(request.logFile, "a+", 0o600);
    return await serve(program, request, log);
  } catch (thrown) {
    return failed(reasonOf(thrown));
  }
}

/**
 * The first `ollama` on PATH that may be run. Ignores PATH entries that depend on the current folder, and programs that
 * are in the workspace or lead into it by a link.
 */
export async function findOllama(env: Env, workspace?: string): Promise<string | undefined> {
  const fence = workspace === undefined ? undefined : `${await resolvedPath(workspace)}${path.sep}`;
  for (const folder of (env["PATH"] ?? "").split(path.delimiter).filter((entry) => path.isAbsolute(entry))) {
    const program = path.join(folder, "ollama");
    if (!(await isProgram(program))) continue;
    const places = [path.join(await resolvedPath(folder), "ollama"), await resolvedPath(program)];
    if (fence === undefined || !places.some((place) => place.startsWith(fence))) return program;
  }
  return undefined;
}

async function serve(program: string, request: ServeRequest, log: FileHandle): Promise<ServeResult> {
  const before = (await log.stat()).size;
  const child = spawn(program, ["serve"], {
    cwd: "/",
    detached: true,
    env: { ...request.env, OLLAMA_HOST: new URL(request.baseUrl).origin },
    stdio: ["ignore", log.fd, log.fd],
  });
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(reasonOf(error)));
    child.once("exit", (code, signal) => resolve(`it ended at once (${signal ?? `exit code ${code}`})`));
  });
  const over = new AbortController();
  const waiting = { ...request, signal: AbortSignal.any([request.signal, over.signal]) };
  const failure = await Promise.race([ended, firstAnswer(waiting)]);
  over.abort();
  if (failure === undefined && child.pid !== undefined) {
    child.removeAllListeners();
    child.unref();
    return { kind: "started", pid: child.pid };
  }
  await stop(child, ended);
  return failed([failure, await tailOf(log, before)].filter(Boolean).join(": "));
}

/** undefined once the server answers; else why waiting ended. */
async function firstAnswer({ baseUrl, signal, waitMs = WAIT_MS }: ServeRequest): Promise<string | undefined> {
  const deadline = Date.now() + waitMs;
  while (Date.now() < deadline && !signal.aborted) {
    if (await answers(baseUrl, signal)) return undefined;
    await sleep(POLL_MS);
  }
  return signal.aborted ? "cancelled" : `no answer at ${baseUrl} within ${formatDuration(waitMs)}`;
}

async function answers(baseUrl: string, signal: AbortSignal): Promise<boolean> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]);
  return (await askOllama(baseUrl, bounded, (client) => client.version())).kind === "json";
}

/** Ends the whole process group: Ollama starts runners of its own. */
async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.pid === undefined) return;
  signalGroup(child.pid, "SIGTERM");
  await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
  signalGroup(child.pid, "SIGKILL");
  await ended;
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is already gone, as intended.
  }
}

async function tailOf(log: FileHandle, before: number): Promise<string> {
  const { size } = await log.stat();
  const start = Math.max(before, size - TAIL);
  const { buffer, bytesRead } = await log.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer.toString("utf8", 0, bytesRead).trim();
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

async function resolvedPath(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    return path.resolve(file);
  }
}

const failed = (reason: string): ServeResult => ({ kind: "failed", reason });

export interface PullProgress {
  readonly status: string;
  /** Bytes of the part that `status` names; null in steps without a size. */
  readonly completed: number | null;
  readonly total: number | null;
}

export type PullResult =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string; readonly remedy: string }
  | { readonly kind: "cancelled" };

interface PullRequest {
  readonly baseUrl: string;
  readonly model: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
  /** Longest time without progress; 2 minutes by default. */
  readonly stallMs?: number;
}

const STALL_MS = 120_000;
/** Hashing a large model on a slow disk shows no progress for minutes. */
const QUIET_STEP = /^(?:verifying|writing|removing)/;
const QUIET_FACTOR = 10;
const MAX_LINE = 2 ** 20;
const MAX_WORDS = 500;
const NO_PROGRESS = "the server sends something other than the progress of a download";
const BROKEN_OFF = "the connection broke off before the download was complete";

const progressLine = z.object({
  status: z.string().max(1000),
  completed: z.number().nullish(),
  total: z.number().nullish(),
});

/** Pulls a model into Ollama's own store. Never throws; the store keeps what was loaded before a failure. */
export async function pullModel(request: PullRequest): Promise<PullResult> {
  const watch = new Watch(request.stallMs ?? STALL_MS);
  const signal = AbortSignal.any([request.signal, watch.signal]);
  try {
    const failure = await follow(request, watch, signal);
    return failure === undefined ? { kind: "done" } : pullFailed(request, failure);
  } catch (thrown) {
    if (request.signal.aborted) return { kind: "cancelled" };
    if (watch.signal.aborted) return pullFailed(request, `no progress for ${formatDuration(watch.limit)}`);
    return pullFailed(request, whyEnded(thrown));
  } finally {
    watch.end();
  }
}

/** Reads the stream to its end; returns the reason if the pull did not succeed. */
async function follow(
  { baseUrl, model, onProgress }: PullRequest,
  watch: Watch,
  signal: AbortSignal,
): Promise<string | undefined> {
  const lines = await ollamaStream({
    baseUrl,
    signal,
    ask: (client) => client.pull({ model, stream: true }),
    // The client sends `name`, which servers accept only from old clients.
    json: JSON.stringify({ model, stream: true }),
    longestLine: MAX_LINE,
    strange: NO_PROGRESS,
    unfinished: "the server ended the download without saying that it is complete",
  });
  for await (const value of lines) {
    const { data: step } = progressLine.safeParse(value);
    if (step === undefined) return NO_PROGRESS;
    watch.saw(JSON.stringify(value), step.status);
    onProgress({ status: step.status, completed: step.completed ?? null, total: step.total ?? null });
  }
  return undefined;
}

function whyEnded(thrown: unknown): string {
  if (!(thrown instanceof Refused)) return errorCode(thrown) === "ECONNRESET" ? BROKEN_OFF : reasonOf(thrown);
  const { status, words, redirect } = thrown;
  if (redirect !== undefined) return `it redirects to ${redirect}`;
  return words.slice(0, MAX_WORDS) || `HTTP ${status}`;
}

/** Fires if there is no progress. Ollama repeats the last line while a download stalls, so only a new line counts. */
class Watch {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #stallMs: number;
  #timer: NodeJS.Timeout | undefined;
  #last = "";
  limit: number;

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
    this.limit = stallMs;
    this.#restart();
  }

  saw(line: string, status: string): void {
    if (line === this.#last) return;
    this.#last = line;
    this.limit = QUIET_STEP.test(status) ? this.#stallMs * QUIET_FACTOR : this.#stallMs;
    this.#restart();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #restart(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(), this.limit);
  }
}

/** The remedy for a failure, chosen by the words of Ollama and the system; the last row is for all others. */
const REMEDIES: readonly (readonly [RegExp, (request: PullRequest) => string])[] = [
  [/no space left|disk quota|not enough space/i, ({ baseUrl }) => ollamaLine(baseUrl, "rm", "NAME")],
  [
    /file does not exist|not found|invalid model name|name is invalid/i,
    () => "harness config set chat_model NAME",
  ],
  [/newer version of ollama|: 412/i, () => "update Ollama: https://ollama.com/download"],
  [/unauthorized|: 40[13]\b|access denied/i, () => "ollama signin"],
  [/^(?:connect )?ECONNREFUSED/, ({ baseUrl }) => ollamaLine(baseUrl, "serve")],
  [/(?:)/, ({ baseUrl, model }) => ollamaLine(baseUrl, "pull", model)],
];

function pullFailed(request: PullRequest, reason: string): PullResult {
  const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1](request) ?? "";
  return { kind: "failed", reason, remedy };
}

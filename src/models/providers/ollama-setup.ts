/** An Ollama that a run can use: what is wrong with the one that is there, starting one, and downloading a model. */

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, type FileHandle, open, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { warningHealth, unhealthy, errorCode, type Health, healthy, reasonOf } from "../../core/errors.ts";
import { firstOf, formatCount, formatDuration, formatSize } from "../../core/wording.ts";
import { makeFolder } from "../../platform/folders.ts";
import { askOllama, isLoopback, ollamaStream, Refused } from "./ollama-client.ts";
import {
  contextInForce,
  ollamaLine,
  ollamaModels,
  type OllamaStatus,
  ollamaStatus,
  OTHER_ADDRESS,
  quoted,
  type ReadyModel,
  serverMemory,
  type ServerModel,
  type StatusRequest,
  tooOldText,
  UPDATE_OLLAMA,
} from "./ollama-server.ts";
import { waitingTimeout } from "../../platform/waits.ts";

interface OllamaHealthRequest extends StatusRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly maxContext: number | null;
  /** Memory of the server's machine in bytes; detected if left out. */
  readonly memory?: number | null;
}

/** In a smaller window, the system prompt, the tools and one file leave no room to work. */
export const SMALL_CONTEXT = 16_384;
const NAMES_SHOWN = 5;
const DEFAULT_ADDRESS = "http://127.0.0.1:11434";
const DOWNLOAD = "https://ollama.com/download";
const OTHER_MODEL = "harness config set chat_model NAME";

/** What prevents the use of the model. Leaves out what cannot be known yet. */
export async function ollamaHealth(request: OllamaHealthRequest): Promise<readonly Health[]> {
  const status = await ollamaStatus(request);
  const server = await serverHealth(status, request);
  if (status.kind === "model-missing") return [server, missingModel(await modelsOfServer(request), request)];
  if (status.kind !== "ready") return [server];
  const named = modelHealth(status, isChatting(status) ? [] : await modelsOfServer(request));
  return [server, named, contextHealth(status, request)];
}

async function serverHealth(status: OllamaStatus, request: OllamaHealthRequest): Promise<Health> {
  const { baseUrl } = request;
  switch (status.kind) {
    case "down":
      return fail(`no Ollama answers at ${baseUrl}: ${status.reason}`, await startLine(request));
    case "not-ollama":
      return fail(`what answers at ${baseUrl} is not Ollama: ${status.reason}`, OTHER_ADDRESS);
    case "too-old":
      return fail(tooOldText(status.version, baseUrl), UPDATE_OLLAMA);
    case "failing":
      return fail(
        `Ollama ${status.version} at ${baseUrl} fails: ${status.reason}`,
        `restart Ollama (${ollamaLine(baseUrl, "serve")})`,
      );
    default:
      return healthy("model.server", `Ollama ${status.version} at ${baseUrl}`);
  }
}

const fail = (detail: string, remedy: string): Health => unhealthy("model.server", detail, remedy);

async function startLine({ baseUrl, env }: OllamaHealthRequest): Promise<string> {
  if (!isLoopback(baseUrl)) return OTHER_ADDRESS;
  const line = ollamaLine(baseUrl, "serve");
  if ((await findOllama(env)) !== undefined) return line;
  const install = `install Ollama from ${DOWNLOAD}, then: ${line}`;
  // No sidecar is published at any other address.
  return baseUrl === DEFAULT_ADDRESS ? `./start.sh   (offers one in a container; or ${install})` : install;
}

/** The server's models, for proposing one instead of the configured model. */
async function modelsOfServer(request: OllamaHealthRequest): Promise<readonly ServerModel[]> {
  const found = await ollamaModels(request);
  return found.kind === "models" ? found.models : [];
}

/** Offers a model that the server has before a download, since it costs none. */
function missingModel(models: readonly ServerModel[], { baseUrl, model }: OllamaHealthRequest): Health {
  const chats = models.filter(({ kind }) => kind === "chat");
  const others = models.length - chats.length;
  const beside = others === 0 ? "" : ` (${others} more cannot chat)`;
  const there =
    models.length === 0
      ? "no model is"
      : chats.length === 0
        ? `no chat model is (${namesOf(models)} cannot)`
        : `${namesOf(chats)} ${chats.length === 1 ? "is" : "are"}${beside}`;
  const pull = ollamaLine(baseUrl, "pull", model);
  const remedy = chats.length === 0 ? pull : `${chooseLine(models)}   (or a download: ${pull})`;
  return unhealthy("model.name", `${model} is not installed; ${there}`, remedy);
}

const namesOf = (models: readonly ServerModel[]): string => firstOf(models, NAMES_SHOWN, ({ name }) => name);

/** The command that chooses one of the server's models: one that calls tools if possible. */
function chooseLine(models: readonly ServerModel[]): string {
  const chats = models.filter(({ kind }) => kind === "chat");
  const chosen = chats.find(({ tools }) => tools === true) ?? chats[0];
  return chosen === undefined ? OTHER_MODEL : `harness config set chat_model ${quoted(chosen.name)}`;
}

const isChatting = ({ capabilities }: ReadyModel): boolean =>
  capabilities === null || capabilities.includes("completion");

function modelHealth(status: ReadyModel, others: readonly ServerModel[]): Health {
  const { model, capabilities, size } = status;
  const detail = size === null ? model : `${model}, ${formatSize(size)}`;
  if (capabilities === null) return healthy("model.name", detail);
  if (!isChatting(status))
    return unhealthy("model.name", `${detail}, cannot chat (${capabilities.join(", ")})`, chooseLine(others));
  return capabilities.includes("tools")
    ? healthy("model.name", detail)
    : warningHealth(
        "model.name",
        `${detail}, does not call tools natively on this server; its calls are read from its text`,
        OTHER_MODEL,
      );
}

function contextHealth({ context, size }: ReadyModel, request: OllamaHealthRequest): Health {
  const memory = request.memory === undefined ? serverMemory(request.baseUrl) : request.memory;
  const { maxContext } = request;
  const { tokens, limit } = contextInForce({ trained: context.trained, maxContext, memory, modelSize: size });
  const because = {
    trained: "all that the model was trained for",
    setting: "max_context_tokens",
    memory: "what fits in this machine's memory",
    default: "the default; max_context_tokens raises it",
  }[limit];
  const reload =
    context.loaded === null || context.loaded === tokens
      ? ""
      : `; now loaded with ${formatCount(context.loaded)}, so the first request loads it again`;
  const detail = `${formatCount(tokens)} tokens (${because})${reload}`;
  if (tokens >= SMALL_CONTEXT) return healthy("model.context", detail);
  const remedy = limit === "setting" ? "harness config set max_context_tokens 32768" : OTHER_MODEL;
  return warningHealth("model.context", `${detail}; too few for most tasks`, remedy);
}

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
const LOG_TAIL_BYTES = 2000;

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
  const bounded = AbortSignal.any([signal, waitingTimeout(ASK_MS)]);
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
  const start = Math.max(before, size - LOG_TAIL_BYTES);
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
  [/newer version of ollama|: 412/i, () => UPDATE_OLLAMA],
  [/unauthorized|: 40[13]\b|access denied/i, () => "ollama signin"],
  [/^(?:connect )?ECONNREFUSED/, ({ baseUrl }) => ollamaLine(baseUrl, "serve")],
  [/(?:)/, ({ baseUrl, model }) => ollamaLine(baseUrl, "pull", model)],
];

function pullFailed(request: PullRequest, reason: string): PullResult {
  const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1](request) ?? "";
  return { kind: "failed", reason, remedy };
}

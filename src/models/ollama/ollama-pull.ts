import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { formatDuration } from "../../core/bounds.ts";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { ask, errorIn, jsonIn, linesOf, refusalIn } from "./ollama-http.ts";
import { ollamaLine } from "./ollama-server.ts";

export interface PullProgress {
  readonly status: string;
  /** Bytes of the part that `status` names; null in steps that have none. */
  readonly completed: number | null;
  readonly total: number | null;
}

export type PullResult =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string; readonly remedy: string }
  | { readonly kind: "cancelled" };

export interface PullRequest {
  readonly baseUrl: string;
  readonly model: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
  /** How long nothing may move; 2 minutes unless told. */
  readonly stallMs?: number;
}

const STALL_MS = 120_000;
/** Hashing a large model on a slow disk moves nothing for minutes. */
const QUIET_STEP = /^(?:verifying|writing|removing)/;
const QUIET_FACTOR = 10;
const MAX_LINE = 2 ** 20;
const BROKEN_OFF = "the connection broke off before the download was complete";

const progressLine = z.object({
  status: z.string().max(1000),
  completed: z.number().nullish(),
  total: z.number().nullish(),
});

/** Loads a model into Ollama's own store. Never throws; what was loaded before a failure is kept there. */
export async function pullModel(request: PullRequest): Promise<PullResult> {
  const watch = new Watch(request.stallMs ?? STALL_MS);
  const signal = AbortSignal.any([request.signal, watch.signal]);
  try {
    const body = { model: request.model, stream: true };
    const response = await ask(`${request.baseUrl}/api/pull`, { signal, body });
    const failure =
      response.statusCode === 200 ? await follow(response, request, watch) : await refusal(response);
    return failure === undefined ? { kind: "done" } : failed(request, failure);
  } catch (thrown) {
    if (request.signal.aborted) return { kind: "cancelled" };
    if (watch.signal.aborted) return failed(request, `nothing moved for ${formatDuration(watch.limit)}`);
    return failed(request, errorCode(thrown) === "ECONNRESET" ? BROKEN_OFF : reasonOf(thrown));
  } finally {
    watch.end();
  }
}

/** Reads the stream to its end; the reason when that is not success. */
async function follow(
  response: IncomingMessage,
  request: PullRequest,
  watch: Watch,
): Promise<string | undefined> {
  try {
    for await (const line of linesOf(response, { longest: MAX_LINE })) {
      const value = jsonIn(line);
      const error = errorIn(value);
      if (error !== undefined) return error;
      const { data: step } = progressLine.safeParse(value);
      if (step === undefined) return "the server sends something that is no progress of a download";
      watch.saw(line, step.status);
      request.onProgress({
        status: step.status,
        completed: step.completed ?? null,
        total: step.total ?? null,
      });
      if (step.status === "success") return undefined;
    }
  } finally {
    response.destroy();
  }
  return "the server ended the download without saying that it is complete";
}

async function refusal(response: IncomingMessage): Promise<string> {
  const answer = await refusalIn(response);
  if (answer.kind === "foreign") return answer.reason;
  return answer.kind === "refused" ? answer.error || `HTTP ${answer.status}` : "it is no Ollama server";
}

/** Fires when nothing moves. Ollama repeats the last line while a download stands still, so only a new one counts. */
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

/** What mends a failure, by the words that Ollama and the system use for it; the last row is for all others. */
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

function failed(request: PullRequest, reason: string): PullResult {
  const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1](request) ?? "";
  return { kind: "failed", reason, remedy };
}

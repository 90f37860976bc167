import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../core/wording.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { FailureKind } from "../core/model-provider.ts";
import type { Embedder } from "../core/ports.ts";
import { delayAfter, RETRIES, type RetryRules } from "../core/server-wait.ts";
import { asCount, asFields, asList, parsedJson } from "../core/raw-data.ts";
import { WireFailure } from "./model-api.ts";
import { jsonResponse, ollamaClient } from "./providers/ollama-client.ts";
import { ollamaLine } from "./providers/ollama-server.ts";
import {
  failureOf,
  unexpectedAnswer,
  notModelServer,
  refusalIn,
  type RequestContext,
} from "./providers/api-refusals.ts";
import { postJson, wholeText } from "./providers/api-request.ts";
import type { OpenAiOptions } from "./providers/openai-api.ts";
import { waitingTimeout } from "../platform/waits.ts";

interface EmbedLimits {
  /** Texts in one request. */
  readonly texts: number;
  /** UTF-16 units of one request; a single text may be longer. */
  readonly chars: number;
  /** Time for one request: the server may have to load the model first. */
  readonly timeoutMs: number;
  /** Further attempts after a transient failure. */
  readonly retries: number;
}

const EMBED_LIMITS: EmbedLimits = { texts: 64, chars: 128 * 1024, timeoutMs: 120_000, retries: 2 };

/** One request: returns the server's value for each text, in the order of the texts. Throws a `WireFailure`. */
export type Ask = (texts: readonly string[], signal: AbortSignal) => Promise<readonly unknown[]>;

/** Replaces the usual remedies. */
type Remedies = Partial<Readonly<Record<FailureKind, string>>>;

const MAX_WAIT_MS = 30_000;
/** If the server rejects even a text this short, length is not the cause. */
const MIN_CUT_LENGTH = 64;
const CHOOSE = "harness config set embed_model NAME";

/**
 * Sends one batch after another: a local server works on one at a time anyway. A batch that is too long is split into
 * halves; a single text that is too long is cut to its beginning.
 */
export class BatchEmbedder implements Embedder {
  readonly #ask: Ask;
  readonly #limits: EmbedLimits;
  readonly #rules: RetryRules;
  /** Length of the first vector; every vector of a model has this length. */
  #length: number | undefined;

  readonly #remedies: Remedies;

  constructor(ask: Ask, limits: Partial<EmbedLimits> = {}, remedies: Remedies = {}) {
    this.#ask = ask;
    this.#remedies = { no_model: CHOOSE, ...remedies };
    this.#limits = { ...EMBED_LIMITS, ...limits };
    const { retries } = this.#limits;
    this.#rules = {
      ...RETRIES,
      attempts: retries + 1,
      busyAttempts: retries === 0 ? 1 : RETRIES.busyAttempts,
      longestMs: MAX_WAIT_MS,
    };
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    const vectors: Float32Array[] = [];
    try {
      for (const batch of batchesOf(texts, this.#limits))
        vectors.push(...(await this.#embedBatch(batch, signal)));
    } catch (thrown) {
      throw thrown instanceof WireFailure ? asError(thrown, this.#remedies) : thrown;
    }
    return vectors;
  }

  async #embedBatch(batch: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    try {
      return this.#checked(await this.#askWithRetries(batch, signal), batch.length);
    } catch (thrown) {
      if (!(thrown instanceof WireFailure) || thrown.kind !== "too_long") throw thrown;
      const parts = splitBatch(batch);
      if (parts === undefined) throw thrown;
      const vectors: Float32Array[] = [];
      for (const part of parts) vectors.push(...(await this.#embedBatch(part, signal)));
      return vectors;
    }
  }

  async #askWithRetries(batch: readonly string[], signal: AbortSignal): Promise<readonly unknown[]> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#askOnce(batch, signal);
      } catch (thrown) {
        if (!(thrown instanceof WireFailure)) throw thrown;
        const ms = delayAfter(failures, thrown, this.#rules, Math.random);
        if (ms === null) throw thrown;
        await sleep(ms, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #askOnce(batch: readonly string[], signal: AbortSignal): Promise<readonly unknown[]> {
    const { timeoutMs } = this.#limits;
    const late = waitingTimeout(timeoutMs);
    try {
      if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
      return await this.#ask(batch, AbortSignal.any([signal, late]));
    } catch (thrown) {
      if (signal.aborted || !late.aborted) throw thrown;
      throw new WireFailure("timeout", `no vectors within ${formatDuration(timeoutMs)}`, {
        remedy: "choose a smaller model: harness config set embed_model NAME",
      });
    }
  }

  #checked(vectors: readonly unknown[], count: number): readonly Float32Array[] {
    if (vectors.length !== count)
      throw garbledVectors(`the server sent ${vectors.length} vectors for ${count} texts`);
    return vectors.map((value) => {
      const vector = vectorOf(value);
      if (vector === undefined) throw garbledVectors("a vector has something that is not a number");
      this.#length ??= vector.length;
      if (vector.length === 0 || vector.length !== this.#length)
        throw garbledVectors(`a vector has ${vector.length} numbers, the first one has ${this.#length}`);
      return vector;
    });
  }
}

/** Accepts an array of numbers, or base64 of little-endian 32-bit floats. */
function vectorOf(value: unknown): Float32Array | undefined {
  if (typeof value === "string") return numbersIn(Buffer.from(value, "base64"));
  if (!Array.isArray(value)) return undefined;
  const vector = new Float32Array(value.length);
  for (const [index, number] of (value as readonly unknown[]).entries()) {
    if (typeof number !== "number") return undefined;
    vector[index] = number;
  }
  return vector.every(Number.isFinite) ? vector : undefined;
}

function numbersIn(bytes: Buffer): Float32Array | undefined {
  if (bytes.length % 4 !== 0) return undefined;
  const vector = Float32Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
  return vector.every(Number.isFinite) ? vector : undefined;
}

/** Servers reject an empty text, yet each text of the list needs a vector: an empty text is sent as a space. */
function* batchesOf(texts: readonly string[], limits: EmbedLimits): Generator<readonly string[]> {
  let batch: string[] = [];
  let chars = 0;
  for (const text of texts) {
    const full = batch.length >= limits.texts || chars + text.length > limits.chars;
    if (full && batch.length > 0) {
      yield batch;
      batch = [];
      chars = 0;
    }
    batch.push(text.trim() === "" ? " " : text);
    chars += text.length;
  }
  if (batch.length > 0) yield batch;
}

function splitBatch(batch: readonly string[]): readonly (readonly string[])[] | undefined {
  const [text = ""] = batch;
  const middle = Math.ceil(batch.length / 2);
  if (batch.length > 1) return [batch.slice(0, middle), batch.slice(middle)];
  return text.length < MIN_CUT_LENGTH ? undefined : [[text.slice(0, text.length / 2).toWellFormed()]];
}

const garbledVectors = (reason: string): WireFailure =>
  new WireFailure("garbled", reason, { remedy: "check that embed_model is a model for embeddings" });

function asError({ kind, message, remedy }: WireFailure, remedies: Remedies): HarnessError {
  if (kind === "cancelled") return new HarnessError(EXIT.interrupted, "cancelled");
  return new HarnessError(EXIT.model, `embeddings: ${message}`, remedies[kind] ?? remedy);
}

interface Question {
  readonly context: RequestContext;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: string;
  readonly signal: AbortSignal;
}

const CONNECT_MS = 10_000;

/** The list under `name` in one JSON answer; throws a `WireFailure` for any other answer. */
async function askForList(
  name: string,
  { context, headers, json, signal }: Question,
): Promise<readonly unknown[]> {
  const response = await postJson({ context, headers, signal, connectMs: CONNECT_MS }, json);
  const text = await wholeText(response);
  if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
  const value = parsedJson(text);
  if (value === undefined)
    throw /^\s*</.test(text)
      ? notModelServer(context, "it answers with a web page")
      : unexpectedAnswer("JSON", text);
  const refusal = refusalIn(value, 200);
  if (refusal !== undefined) throw failureOf(refusal, context);
  const list = asFields(value)?.[name];
  if (!Array.isArray(list)) throw unexpectedAnswer("a list of vectors", text);
  return asList(list);
}

/**
 * Ollama's `/api/embed`. Ollama cuts a text that does not fit the model's window and keeps the beginning, like every
 * embedder here.
 */
export function ollamaEmbedder(baseUrl: string, model: string, limits: Partial<EmbedLimits> = {}): Embedder {
  const ask: Ask = async (input, signal) => {
    const client = await ollamaClient(baseUrl, async (url, json = "") => {
      const context = { url, model, key: "", keyName: "", tools: false };
      return jsonResponse({
        embeddings: await askForList("embeddings", { context, headers: {}, json, signal }),
      });
    });
    return (await client.embed({ model, input: [...input], truncate: true })).embeddings;
  };
  return new BatchEmbedder(ask, limits, {
    no_model: ollamaLine(baseUrl, "pull", model),
    unreachable: ollamaLine(baseUrl, "serve"),
  });
}

/** `/embeddings` of any server that speaks OpenAI's API. */
export function openAiEmbedder(
  { baseUrl, key = "" }: OpenAiOptions,
  model: string,
  limits: Partial<EmbedLimits> = {},
): Embedder {
  const url = `${baseUrl.replace(/\/+$/, "")}/embeddings`;
  const context = { url, model, key: key.trim(), keyName: "OPENAI_API_KEY", tools: false };
  const headers: Record<string, string> =
    context.key === "" ? {} : { authorization: `Bearer ${context.key}` };
  return new BatchEmbedder(async (input, signal) => {
    const json = JSON.stringify({ model, input, encoding_format: "float" });
    const rows = await askForList("data", { context, headers, json, signal });
    return rows
      .map((row, place) => ({ place: asCount(asFields(row)?.["index"]) ?? place, row: asFields(row) }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ row }) => row?.["embedding"]);
  }, limits);
}

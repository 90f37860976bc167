import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Calls, QdrantNodes, type QdrantServer } from "./qdrant-nodes.ts";
import { delayAfter, RETRIES, type RetryRules, SPREAD } from "../../core/server-wait.ts";
import {
  combinedFailure,
  failureOf,
  garbled,
  QdrantFailure,
  type RequestContext,
  type Trouble,
} from "./qdrant-failure.ts";

/** How long one request may take. */
export interface Patience {
  readonly readMs: number;
  /** Writes wait until the data can be found. */
  readonly writeMs: number;
  /** Total wait within one request for a busy server. */
  readonly busyMs?: number;
}

export const PATIENCE: Patience = { readMs: 15_000, writeMs: 120_000 };

/** The clock for waiting; tests bring their own. */
export interface QdrantTime {
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
}

/** Spread, since several processes may index or search at a time. */
const PAUSES: RetryRules = { ...RETRIES, spread: SPREAD };

const REAL_TIME: QdrantTime = {
  wait: (ms, signal) => sleep(ms, undefined, { signal }),
  random: Math.random,
};
/** Indexing has time to wait; somebody who searches wants an answer. */
const BUSY_MS = { read: 10_000, write: 60_000 } as const;

type Call = (calls: Calls, init: RequestInit) => Promise<{ readonly data: unknown }>;

interface ApiCall<T> {
  /** What was wanted, as a phrase that follows "to". */
  readonly what: string;
  readonly form: z.ZodType<T>;
  readonly signal: AbortSignal;
  readonly write?: boolean;
}

/** Sends requests to one server, or to the nodes of one cluster. */
export class QdrantApi {
  readonly #nodes: QdrantNodes;
  readonly #hasKey: boolean;
  readonly #patience: Patience;
  readonly #time: QdrantTime;

  constructor(server: QdrantServer, patience = PATIENCE, time = REAL_TIME) {
    this.#time = time;
    this.#nodes = new QdrantNodes(server);
    this.#hasKey = (server.apiKey ?? "") !== "";
    this.#patience = patience;
  }

  /** The address of the node that answered last. */
  get url(): string {
    return this.#nodes.now.url;
  }

  /** The part of the answer's body that `form` describes. Aborting rejects with the signal's reason. */
  async ask<T>(call: Call, { what, form, signal, write = false }: ApiCall<T>): Promise<T> {
    signal.throwIfAborted();
    const whole = write ? this.#patience.writeMs : this.#patience.readMs;
    // All nodes share the time limit of one request.
    const timeoutMs = Math.round(whole / this.#nodes.all.length);
    const context = { hasKey: this.#hasKey, what, timeoutMs };
    const data = await this.#patiently(write, signal, () => this.#ofAny(call, context, signal));
    const read = form.safeParse(data);
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    throw garbled(
      `the answer has an unexpected form (${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""})`,
      {
        ...context,
        url: this.url,
      },
    );
  }

  /** Repeats a request to a busy server (429, 503): writes carry ids, so writing twice is harmless. */
  async #patiently<T>(write: boolean, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const { wait, random } = this.#time;
    let left = this.#patience.busyMs ?? (write ? BUSY_MS.write : BUSY_MS.read);
    for (let failures = 1; ; failures += 1) {
      try {
        return await ask();
      } catch (thrown) {
        if (!(thrown instanceof QdrantFailure) || thrown.trouble !== "not-ready") throw thrown;
        const { retryAfterMs } = thrown;
        const ms = delayAfter(failures, { passing: true, busy: true, retryAfterMs }, PAUSES, random);
        if (ms === null || ms > left) throw thrown;
        left -= ms;
        await wait(ms, signal).catch(() => undefined);
        signal.throwIfAborted();
      }
    }
  }

  /**
   * Passes over a node that does not answer, fails or is no Qdrant, even in the middle of a write: the next node
   * repeats the write under the same ids.
   */
  async #ofAny(call: Call, context: Omit<RequestContext, "url">, signal: AbortSignal): Promise<unknown> {
    const tried = await this.#nodes.ask(
      ({ url, calls }) => this.#once((init) => call(calls, init), { ...context, url }, signal),
      (thrown) => thrown instanceof QdrantFailure && OF_NODE.has(thrown.trouble),
    );
    if ("answer" in tried) return tried.answer;
    throw combinedFailure(tried.failures.filter((each) => each instanceof QdrantFailure));
  }

  async #once(
    call: (init: RequestInit) => ReturnType<Call>,
    context: RequestContext,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { timeoutMs } = context;
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return (await call({ signal: bounded, redirect: "error" })).data;
    } catch (thrown) {
      signal.throwIfAborted();
      throw failureOf(bounded.aborted ? bounded.reason : thrown, context);
    }
  }
}

/** Failures of one node, which another node may not have. */
const OF_NODE: ReadonlySet<Trouble> = new Set(["unreachable", "timeout", "not-ready", "server", "garbled"]);

/** The schema of an answer with a result of this schema. */
export const resultOf = <T>(form: z.ZodType<T>): z.ZodType<T> =>
  z.object({ result: form }).transform(({ result }) => result);

/** A write counts only once the server has completed it. */
export const completedWrite = resultOf(z.object({ status: z.literal("completed") }));

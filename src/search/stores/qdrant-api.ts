import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { QdrantClient } from "@qdrant/js-client-rest";
import { delayAfter, RETRIES, type RetryRules, SPREAD } from "../../core/server-wait.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import {
  combinedFailure,
  failureOf,
  garbledAnswer,
  QdrantFailure,
  type QdrantRequest,
  type Trouble,
} from "./qdrant-failure.ts";
import { waitingTimeout } from "../../platform/waits.ts";

/** How long one request may take. */
export interface QdrantPatience {
  readonly readMs: number;
  /** Writes wait until the data can be found. */
  readonly writeMs: number;
  /** Total wait within one request for a busy server. */
  readonly busyMs?: number;
}

export const PATIENCE: QdrantPatience = { readMs: 15_000, writeMs: 120_000 };

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
  readonly #patience: QdrantPatience;
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
    throw garbledAnswer(
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
  async #ofAny(call: Call, context: Omit<QdrantRequest, "url">, signal: AbortSignal): Promise<unknown> {
    const tried = await this.#nodes.ask(
      ({ url, calls }) => this.#once((init) => call(calls, init), { ...context, url }, signal),
      (thrown) => thrown instanceof QdrantFailure && OF_NODE.has(thrown.trouble),
    );
    if ("answer" in tried) return tried.answer;
    throw combinedFailure(tried.failures.filter((each) => each instanceof QdrantFailure));
  }

  async #once(
    call: (init: RequestInit) => ReturnType<Call>,
    context: QdrantRequest,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { timeoutMs } = context;
    const bounded = AbortSignal.any([signal, waitingTimeout(timeoutMs)]);
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

/** How a cluster shall keep a new collection; null: the server's default. */
export interface CollectionShape {
  readonly shard_number?: number | null | undefined;
  readonly replication_factor?: number | null | undefined;
  /** How many replicas must have a write before it is done. */
  readonly write_consistency_factor?: number | null | undefined;
}

export interface QdrantServer {
  /** http or https, with a path if Qdrant is served below one. */
  readonly url: string;
  /** Other nodes of the same cluster, asked if `url` does not answer. */
  readonly nodes?: readonly string[] | undefined;
  readonly shape?: CollectionShape | undefined;
  /** From QDRANT_API_KEY. */
  readonly apiKey?: string | undefined;
}

type Calls = ReturnType<QdrantClient["api"]>;

interface QdrantNode {
  readonly url: string;
  readonly calls: Calls;
}

/**
 * The addresses of one Qdrant; each is tried at most once per request, beginning with the one that answered last. Some
 * features of the client are replaced here: its timeout would replace our signal, its version check and its warning
 * about keys go to the console, and it ignores the path of an address.
 */
class QdrantNodes {
  readonly all: readonly QdrantNode[];
  #first = 0;

  constructor({ url, nodes = [], apiKey }: QdrantServer) {
    const texts = [...new Set([url, ...nodes])];
    this.all = texts.map((text) => nodeAt(text, apiKey));
  }

  /** The node that answered last. */
  get now(): QdrantNode {
    const node = this.all[this.#first];
    if (node === undefined) throw new Error("a Qdrant server needs an address");
    return node;
  }

  /** The first answer, or the failure of each node. A failure that is not the node's own is thrown at once. */
  async ask<T>(
    once: (node: QdrantNode) => Promise<T>,
    isOfNode: (thrown: unknown) => boolean,
  ): Promise<{ readonly answer: T } | { readonly failures: readonly unknown[] }> {
    const begin = this.#first;
    const failures: unknown[] = [];
    for (let tried = 0; tried < this.all.length; tried += 1) {
      const at = (begin + tried) % this.all.length;
      const node = this.all[at] ?? this.now;
      try {
        const answer = await once(node);
        this.#first = at;
        return { answer };
      } catch (thrown) {
        if (!isOfNode(thrown)) throw thrown;
        failures.push(thrown);
      }
    }
    return { failures };
  }
}

function nodeAt(text: string, apiKey: string | undefined): QdrantNode {
  const { url, host, prefix, port } = addressOf(text);
  const headers = (apiKey ?? "") === "" ? {} : { headers: { "api-key": apiKey ?? "" } };
  const client = new QdrantClient({
    url: host,
    port,
    prefix,
    timeout: Number.POSITIVE_INFINITY,
    checkCompatibility: false,
    ...headers,
  });
  return { url, calls: client.api() };
}

function addressOf(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url !== undefined && `${url.username}${url.password}${url.search}${url.hash}` === "";
  if (!plain || !/^https?:$/.test(url.protocol))
    throw new HarnessError(
      EXIT.usage,
      "the address of Qdrant: expected http://host:port or https://host:port, without a password or a query",
      "harness config set search.url http://127.0.0.1:6333",
    );
  const prefix = url.pathname.replace(/\/+$/, "");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return { url: `${url.origin}${prefix}`, host: url.origin, prefix, port };
}

/** Converts the settings. Rejects a write that needs more replicas than there are, since it would never complete. */
export function shapeOf({ shape = {} }: QdrantServer): Readonly<Record<string, number>> {
  const { replication_factor: replicas, write_consistency_factor: wanted } = shape;
  if ((wanted ?? 1) > (replicas ?? 1))
    throw new HarnessError(
      EXIT.usage,
      `search.write_consistency_factor ${wanted} needs more replicas than search.replication_factor creates (${replicas ?? 1}): no write would ever complete`,
      `harness config set search.replication_factor ${wanted}`,
    );
  return Object.fromEntries(
    Object.entries(shape).flatMap(([key, value]) => (typeof value === "number" ? [[key, value]] : [])),
  );
}

/** Queries with fusion need 1.10, tenants 1.11, facets 1.12, the filter by vectors 1.13. */
const OLDEST = { major: 1, minor: 13 } as const;

const about = z.object({ title: z.string().regex(/qdrant/i), version: z.string() });

/** Refuses a server that is no Qdrant or lacks a needed feature. Returns its version for display. */
export async function checkedVersion(api: QdrantApi, signal: AbortSignal): Promise<string> {
  const { version } = await api.ask((calls, init) => calls.root({}, init), {
    what: "report its version",
    form: about,
    signal,
  });
  const text = visibleLine(version);
  const unfit = unfitVersion(version);
  if (unfit === null) return text;
  throw new HarnessError(
    EXIT.failed,
    `Qdrant ${text} at ${api.url} ${unfit}`,
    "./start.sh   (or: harness config set search.store embedded)",
  );
}

/**
 * The version of a server that accepts our key: a server tells its version to everybody, but lists its collections only
 * with a valid key.
 */
export async function versionFor(server: QdrantServer, signal: AbortSignal): Promise<string> {
  const api = new QdrantApi(server);
  const text = await checkedVersion(api, signal);
  await api.ask((calls, init) => calls.getCollections({}, init), {
    what: "list its collections",
    form: resultOf(z.object({ collections: z.array(z.unknown()) })),
    signal,
  });
  return text;
}

/** Why a server of this version cannot be used, as a phrase that follows its name; null if it can. */
function unfitVersion(version: string): string | null {
  const found = parsed(version);
  const oldest = `${OLDEST.major}.${OLDEST.minor}`;
  if (Number.isNaN(found.major) || found.major > OLDEST.major)
    return `is not known to harness: it needs ${OLDEST.major}.x, ${oldest} or later`;
  return reaches(found, OLDEST) ? null : `is too old: harness needs ${oldest} or later`;
}

interface Version {
  readonly major: number;
  readonly minor: number;
}

function parsed(version: string): Version {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return { major: Number(major), minor: Number(minor) };
}

const reaches = (found: Version, wanted: Version): boolean =>
  found.major === wanted.major && found.minor >= wanted.minor;

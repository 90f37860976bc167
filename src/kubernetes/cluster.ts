import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import * as z from "zod";
import { engineText } from "../core/engine-address.ts";
import { EXIT, errorCode, HarnessError, reasonOf } from "../core/errors.ts";
import { formatDuration } from "../core/text/bounds.ts";
import {
  askedToWait,
  delayAfter,
  momentOf,
  type PassingFailure,
  type RetryRules,
  SPREAD,
} from "../core/server-wait.ts";

/** What an `--engine kubernetes:` names; null: what the kubeconfig says, or where this runs. */
export interface ClusterAddress {
  readonly context: string | null;
  readonly namespace: string | null;
}

/** Whose kubeconfig is read. */
export interface ClusterUser {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The kubeconfig (KUBECONFIG, then ~/.kube/config), else the service account of the pod that this runs in. */
export function kubeConfigOf({ context }: ClusterAddress, { env, home }: ClusterUser): KubeConfig {
  const named = (env["KUBECONFIG"] ?? "").split(path.delimiter).filter((file) => file !== "");
  const files = named.length > 0 ? named : [path.join(home, ".kube", "config")];
  const there = files.filter((file) => existsSync(file));
  const config = new KubeConfig();
  if (there.length > 0) readFiles(config, there);
  else if (named.length === 0 && existsSync(path.join(SERVICE_ACCOUNT, "token"))) config.loadFromCluster();
  else
    throw new HarnessError(
      EXIT.sandbox,
      `no cluster is known: there is no kubeconfig (${files.join(", ")}), and no service account here`,
      "KUBECONFIG=FILE, or name an engine of containers: --engine",
    );
  if (context !== null) choose(config, context);
  if (config.getCurrentCluster() === null)
    throw new HarnessError(
      EXIT.usage,
      `the kubeconfig (${there.join(", ")}) has no current context`,
      `name one: --engine kubernetes://CONTEXT   (it has ${contextsOf(config)})`,
    );
  return config;
}

function readFiles(config: KubeConfig, files: readonly string[]): void {
  for (const [index, file] of files.entries()) {
    const read = index === 0 ? config : new KubeConfig();
    try {
      read.loadFromFile(file);
    } catch (thrown) {
      const message = `the kubeconfig ${file} cannot be read: ${reasonOf(thrown)}`;
      throw new HarnessError(EXIT.usage, message, `kubectl config view --kubeconfig ${file}`, thrown);
    }
    if (read !== config) config.mergeConfig(read, true);
  }
}

const contextsOf = (config: KubeConfig): string =>
  config.contexts.map(({ name }) => name).join(", ") || "none";

function choose(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null)
    throw new HarnessError(
      EXIT.usage,
      `the kubeconfig has no context ${context}; it has ${contextsOf(config)}`,
      "--engine kubernetes://CONTEXT",
    );
  config.setCurrentContext(context);
}

/** Of the service account of the pod that this runs in: its context has no name that a kubeconfig knows. */
const isPodsOwn = (config: KubeConfig): boolean => config.getCurrentUser()?.name === "inClusterUser";

async function namespaceOf(config: KubeConfig, { namespace }: ClusterAddress): Promise<string> {
  const own = namespace ?? config.getContextObject(config.getCurrentContext())?.namespace;
  if (own !== undefined && own !== "") return own;
  const mounted = await readFile(path.join(SERVICE_ACCOUNT, "namespace"), "utf8").catch(() => "");
  return isPodsOwn(config) && mounted.trim() !== "" ? mounted.trim() : "default";
}

/** The API server's own no. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  readonly status: number;
  /** As the API writes it: Forbidden, NotFound, AlreadyExists, Expired … */
  readonly reason: string;
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(status: number, reason: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

const failureForm = z.object({ reason: z.string().catch(""), message: z.string().catch("") });

/** Of a status object, or of whatever stands in its place. */
function apiFailure({ statusCode: status = 0, headers }: IncomingMessage, body: unknown): ApiFailure {
  const read = failureForm.safeParse(body);
  const said = read.data?.message ?? "";
  const asked = askedToWait(headers["retry-after"], Date.now(), headers.date);
  return new ApiFailure(status, read.data?.reason ?? "", said === "" ? `HTTP ${status}` : said, asked);
}

export type Method = "GET" | "POST" | "DELETE" | "PATCH";

export interface ApiCall {
  readonly method?: Method;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Time as waiting sees it; tests bring their own. */
export interface ClusterTime {
  /** Milliseconds since some moment. */
  readonly now: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  readonly random: () => number;
  /** A server that takes a question and gives no answer for so long is one that is away. */
  readonly answerMs: number;
}

const REAL_TIME: ClusterTime = {
  now: () => performance.now(),
  wait: (ms, signal) => sleep(ms, undefined, { signal }),
  random: Math.random,
  answerMs: 30_000,
};

/** One namespace of a cluster. What comes is given as it came: nothing of an object is left out for not being known. */
export class Cluster {
  readonly namespace: string;
  /** For how long an API server that never answered is waited for, and a policy that does not hold yet. */
  readonly patienceMs: number;
  readonly time: ClusterTime;
  /** Whether it serves an API, by its group and version: for whoever asks next. */
  readonly serves = new Map<string, Promise<boolean>>();
  #config: KubeConfig;
  #answered = false;
  /** What its clock said last, and when that was here. */
  #told: { readonly there: number; readonly here: number; readonly wall: number } | undefined;

  constructor(config: KubeConfig, namespace: string, patienceMs = PATIENCE_MS, time = REAL_TIME) {
    this.#config = config;
    this.time = time;
    this.namespace = namespace;
    this.patienceMs = patienceMs;
  }

  get config(): KubeConfig {
    return this.#config;
  }

  get server(): string {
    return this.config.getCurrentCluster()?.server ?? "";
  }

  /** As `--engine` names it, whatever context is the current one by then. */
  get address(): string {
    const context = isPodsOwn(this.#config) ? null : this.#config.getCurrentContext();
    return engineText({ kind: "kubernetes", context, namespace: this.namespace });
  }

  /** Below the namespace, of the core API unless a group is named. */
  at(resource: string, group = "api/v1"): string {
    return `/${group}/namespaces/${encodeURIComponent(this.namespace)}/${resource}`;
  }

  /**
   * What is read, and what may be made only once under its name, is asked again for a while where the server does not
   * answer or says that it is busy; of all other calls nobody can tell whether they were heard.
   */
  async call(where: string, { method = "GET", body, signal }: ApiCall = {}): Promise<unknown> {
    return this.patiently(signal, async () => {
      const response = await this.#send(where, { method, body, signal });
      const answer = jsonOf(await whole(response));
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) throw apiFailure(response, answer);
      return answer;
    });
  }

  /**
   * Milliseconds since 1970 by the API server's clock, a second less at most. What is written into objects, and compared
   * by others there, goes by it alone. One that tells no time, as behind some proxies, has ours.
   */
  async now(signal?: AbortSignal): Promise<number> {
    const { now } = this.time;
    // Where our clock was set meanwhile, or the machine slept, what has passed since is not known.
    const strayed = this.#told === undefined ? 0 : Date.now() - this.#told.wall - (now() - this.#told.here);
    if (this.#told === undefined || Math.abs(strayed) > 1000)
      await this.call("/version", { signal }).catch((thrown: unknown) => {
        // A refusal has its time as well.
        if (!(thrown instanceof ApiFailure)) throw thrown;
      });
    const { there, here } = this.#told ?? { there: Date.now(), here: now() };
    return there + (now() - here);
  }

  /** The events of a watch, until the server ends it. */
  async *watch(where: string, signal: AbortSignal): AsyncGenerator<unknown, void> {
    const response = await this.patiently(signal, async () => {
      const begun = await this.#send(where, { method: "GET", body: undefined, signal });
      if (begun.statusCode !== 200) throw apiFailure(begun, jsonOf(await whole(begun)));
      begun.socket.setTimeout(0);
      return begun;
    });
    let rest = "";
    response.setEncoding("utf8");
    for await (const piece of response as AsyncIterable<string>) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MOST_LINE) throw new Error("an event of the watch has no end");
      for (const line of lines) if (line.trim() !== "") yield jsonOf(line);
    }
  }

  /**
   * Of its own accord for `patienceMs`; where the server names the time that it needs (Retry-After), for six times that. One
   * that has answered before is known to be there: that it is away is waited for twelve times that, which outlasts a restart.
   */
  async patiently<T>(signal: AbortSignal | undefined, ask: () => Promise<T>): Promise<T> {
    const { now, wait, random } = this.time;
    const begun = now();
    for (let failures = 1; ; failures += 1) {
      try {
        const answer = await this.#renewing(ask);
        this.#answered = true;
        return answer;
      } catch (thrown) {
        signal?.throwIfAborted();
        if (!isPassing(thrown)) throw this.#unanswered(thrown);
        const pause = delayAfter(failures, passingOf(thrown), PAUSES, random) ?? Number.POSITIVE_INFINITY;
        const asked = thrown instanceof ApiFailure && (thrown.retryAfterMs ?? 0) > 0;
        const patience = this.patienceMs * (this.#answered && isAway(thrown) ? 12 : asked ? 6 : 1);
        if (now() - begun + pause > patience) throw this.#unanswered(thrown);
        await wait(pause, signal);
      }
    }
  }

  /** When a credential is over was told by its own clock, and kept by ours: one that is refused is asked for anew. */
  async #renewing<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof ApiFailure && thrown.status === 401 && isRenewable(this.#config))) throw thrown;
      this.#config = renewedConfig(this.#config);
      return ask();
    }
  }

  async #send(where: string, { method, body, signal }: ApiCall): Promise<IncomingMessage> {
    const url = new URL(this.server.replace(/\/$/, "") + where);
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const options: RequestOptions = {
      method,
      // From the beginning of its connection: where packets are lost, the system tries for longer.
      timeout: this.time.answerMs,
      headers: {
        accept: "application/json",
        ...(sent === undefined
          ? {}
          : {
              "content-type": TYPES[method ?? "GET"] ?? "application/json",
              "content-length": String(sent.length),
            }),
      },
      ...(signal === undefined ? {} : { signal }),
    };
    await this.config.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = (url.protocol === "http:" ? http : https).request(url, options, resolve);
    request.on("error", reject);
    request.on("timeout", () => request.destroy(noAnswer(this.time)));
    request.end(sent);
    const response = await promise;
    const there = momentOf(response.headers.date);
    if (there !== null) this.#told = { there, here: this.time.now(), wall: Date.now() };
    return response;
  }

  #unanswered(thrown: unknown): unknown {
    if (thrown instanceof ApiFailure || errorCode(thrown) === undefined) return thrown;
    return new HarnessError(
      EXIT.sandbox,
      `no cluster answers at ${this.server}: ${reasonOf(thrown)}`,
      "kubectl cluster-info   (or another one: --engine kubernetes://CONTEXT)",
      thrown,
    );
  }
}

const isRenewable = (config: KubeConfig): boolean => {
  const user = config.getCurrentUser();
  return Boolean(user?.exec) || Boolean(user?.authProvider);
};

/** The same, with nothing kept of what its tokens are read from, or made by. */
function renewedConfig(config: KubeConfig): KubeConfig {
  const { clusters, users, contexts, currentContext } = config;
  const renewed = new KubeConfig();
  renewed.loadFromOptions({ clusters, users, contexts, currentContext });
  return renewed;
}

const TYPES: Partial<Readonly<Record<Method, string>>> = { PATCH: "application/merge-patch+json" };
const PATIENCE_MS = 10_000;
/** As often as patience allows. */
const PAUSES: RetryRules = {
  attempts: Number.POSITIVE_INFINITY,
  busyAttempts: Number.POSITIVE_INFINITY,
  baseMs: 100,
  capMs: 2000,
  longestMs: 120_000,
  spread: SPREAD,
};
const MOST_LINE = 16 * 2 ** 20;
/** A list of thousands of pods takes some of it. */
const MOST_BODY = 128 * 2 ** 20;

async function whole(response: IncomingMessage): Promise<string> {
  const pieces: string[] = [];
  let length = 0;
  response.setEncoding("utf8");
  for await (const piece of response as AsyncIterable<string>) {
    length += piece.length;
    if (length > MOST_BODY) throw new Error("the API server's answer has no end");
    pieces.push(piece);
  }
  return pieces.join("");
}

const BUSY = new Set([429, 500, 502, 503, 504]);
/** Said in front of a server that is not there, or by one that begins. */
const AWAY = new Set([502, 503, 504]);
const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

/** Every object has a name of ours, so that a second making of it is a conflict and no second object. */
const isPassing = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure ? BUSY.has(thrown.status) : isLost(thrown);

/** What it says of itself, as that a webhook failed, is an answer, and gets no better by waiting long. */
const isAway = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure ? AWAY.has(thrown.status) : isLost(thrown);

/** Half of each pause is certain, whatever failed: a server that is away is not asked in a loop. */
const passingOf = (thrown: unknown): PassingFailure => ({
  passing: true,
  busy: true,
  retryAfterMs: thrown instanceof ApiFailure ? thrown.retryAfterMs : null,
});

/** As the system says it of a connection that is never made. */
export const noAnswer = ({ answerMs }: ClusterTime): Error =>
  Object.assign(new Error(`no answer in ${formatDuration(answerMs)}`), { code: "ETIMEDOUT" });

/** What was to be made under this name is there already. */
export const isThere = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure && thrown.status === 409 && thrown.reason === "AlreadyExists";

/** The connection went, or nobody is there. */
export const isLost = (thrown: unknown): boolean => LOST.has(errorCode(thrown) ?? "");

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.trim().slice(0, 500) };
  }
}

/** The namespace that an address means, looked up and nothing asked of the cluster yet. */
export async function clusterOf(
  address: ClusterAddress,
  user: ClusterUser,
  patienceMs = PATIENCE_MS,
): Promise<Cluster> {
  const config = kubeConfigOf(address, user);
  return new Cluster(config, await namespaceOf(config, address), patienceMs);
}

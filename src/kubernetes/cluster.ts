import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  dumpYaml,
  KubeConfig,
  type V1ConfigMap,
  type V1Container,
  type V1ContainerStatus,
  type V1Job,
  type V1NetworkPolicy,
  type V1Pod,
  type V1PodSpec,
  type V1PolicyRule,
  type V1Role,
  type V1RoleBinding,
  type V1ServiceAccount,
} from "@kubernetes/client-node";
import * as z from "zod";
import { engineText } from "../core/addresses.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { parsedJson } from "../core/raw-data.ts";
import {
  parseRetryAfter,
  delayAfter,
  momentOf,
  type PassingFailure,
  type RetryRules,
  SPREAD,
} from "../core/server-wait.ts";
import { formatDuration } from "../core/wording.ts";

/** The address in `--engine kubernetes:`; null: taken from the kubeconfig or from the pod this runs in. */
export interface ClusterAddress {
  readonly context: string | null;
  readonly namespace: string | null;
}

/** The user whose kubeconfig is read. */
export interface ClusterUser {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Loads the kubeconfig (KUBECONFIG, then ~/.kube/config), else the service account of the pod that this runs in. */
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
      `no cluster is configured: there is no kubeconfig (${files.join(", ")}) and no service account here`,
      "set KUBECONFIG=FILE, or name a container engine: --engine ADDRESS",
    );
  if (context !== null) selectContext(config, context);
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

function selectContext(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null)
    throw new HarnessError(
      EXIT.usage,
      `the kubeconfig has no context ${context}; it has ${contextsOf(config)}`,
      "name one of these: --engine kubernetes://CONTEXT",
    );
  config.setCurrentContext(context);
}

/** Whether the configuration is the service account of the pod this runs in, whose context no kubeconfig knows. */
const isPodsOwn = (config: KubeConfig): boolean => config.getCurrentUser()?.name === "inClusterUser";

async function namespaceOf(config: KubeConfig, { namespace }: ClusterAddress): Promise<string> {
  const own = namespace ?? config.getContextObject(config.getCurrentContext())?.namespace;
  if (own !== undefined && own !== "") return own;
  const mounted = await readFile(path.join(SERVICE_ACCOUNT, "namespace"), "utf8").catch(() => "");
  return isPodsOwn(config) && mounted.trim() !== "" ? mounted.trim() : "default";
}

/** A refusal by the API server. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  readonly status: number;
  /** The API's reason: Forbidden, NotFound, AlreadyExists, Expired … */
  readonly reason: string;
  /** The wait that the server asked for, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(status: number, reason: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

const failureForm = z.object({ reason: z.string().catch(""), message: z.string().catch("") });

/** Reads a status object, or whatever came in its place. */
function apiFailure({ statusCode: status = 0, headers }: IncomingMessage, body: unknown): ApiFailure {
  const read = failureForm.safeParse(body);
  const message = read.data?.message ?? "";
  const retryAfterMs = parseRetryAfter(headers["retry-after"], Date.now(), headers.date);
  return new ApiFailure(
    status,
    read.data?.reason ?? "",
    message === "" ? `HTTP ${status}` : message,
    retryAfterMs,
  );
}

export type Method = "GET" | "POST" | "DELETE" | "PATCH";

export interface ApiCall {
  readonly method?: Method;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** The clock for waiting; tests bring their own. */
export interface ClusterTime {
  /** Milliseconds since some moment. */
  readonly now: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  readonly random: () => number;
  /** A server that accepts a request but gives no answer for this long counts as away. */
  readonly answerMs: number;
  /** A watch without an event for this long counts as lost: a lost connection is not always reported. */
  readonly silentMs: number;
}

const REAL_TIME: ClusterTime = {
  now: () => performance.now(),
  wait: (ms, signal) => sleep(ms, undefined, { signal }),
  random: Math.random,
  answerMs: 30_000,
  // Longer than the time between bookmarks, which a server sends about once a minute, and than a box's watches.
  silentMs: 90_000,
};

/** One namespace of a cluster. Objects are returned as received: no unknown field is dropped. */
export class Cluster {
  readonly namespace: string;
  /** How long to wait for an API server that never answered, and for a policy that is not yet enforced. */
  readonly patienceMs: number;
  readonly time: ClusterTime;
  /** Whether the cluster serves an API, by group and version: cached for later callers. */
  readonly serves = new Map<string, Promise<boolean>>();
  #config: KubeConfig;
  #answered = false;
  /** The last time on the server's clock, and the local times when it arrived. */
  #serverClock: { readonly there: number; readonly here: number; readonly wall: number } | undefined;

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

  /** The address for `--engine`, independent of which context is current later. */
  get address(): string {
    const context = isPodsOwn(this.#config) ? null : this.#config.getCurrentContext();
    return engineText({ kind: "kubernetes", context, namespace: this.namespace });
  }

  /** The path of a resource in the namespace, in the core API unless a group is given. */
  at(resource: string, group = "api/v1"): string {
    return `/${group}/namespaces/${encodeURIComponent(this.namespace)}/${resource}`;
  }

  /**
   * Retries for a while if the server does not answer or is busy. For reads, and for creations whose name can exist
   * only once; for other calls nobody could tell whether the first one took effect.
   */
  async call(where: string, { method = "GET", body, signal }: ApiCall = {}): Promise<unknown> {
    return this.patiently(signal, async () => {
      const response = await this.#send(where, { method, body, signal });
      const text = await bodyText(response);
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) throw apiFailure(response, jsonOf(text));
      const answer = parsedJson(text);
      // A page of a proxy, for example: without a field of an object it would read like a new one.
      if (typeof answer !== "object" || answer === null)
        throw new ApiFailure(
          statusCode,
          "",
          `the answer is not an object of Kubernetes: ${text.trim().slice(0, 100)}`,
        );
      return answer;
    });
  }

  /**
   * Milliseconds since 1970 by the API server's clock, at most a second behind. Times that are written into objects and
   * compared by others in the cluster use only this clock. Uses our clock if the server reports no time, as behind some
   * proxies.
   */
  async now(signal?: AbortSignal): Promise<number> {
    const { now } = this.time;
    // If our clock was set or the machine slept since, the elapsed time is unknown.
    const strayed =
      this.#serverClock === undefined
        ? 0
        : Date.now() - this.#serverClock.wall - (now() - this.#serverClock.here);
    if (this.#serverClock === undefined || Math.abs(strayed) > 1000)
      await this.call("/version", { signal }).catch((thrown: unknown) => {
        // A refusal carries the time as well.
        if (!(thrown instanceof ApiFailure)) throw thrown;
      });
    const { there, here } = this.#serverClock ?? { there: Date.now(), here: now() };
    return there + (now() - here);
  }

  /** The events of a watch, until the server ends it or its connection is lost, which silence counts as, too. */
  async *watch(where: string, signal: AbortSignal): AsyncGenerator<unknown, void> {
    const response = await this.patiently(signal, async () => {
      const begun = await this.#send(where, { method: "GET", body: undefined, signal });
      if (begun.statusCode !== 200) throw apiFailure(begun, jsonOf(await bodyText(begun)));
      begun.socket.setTimeout(this.time.silentMs);
      return begun;
    });
    let rest = "";
    response.setEncoding("utf8");
    try {
      for await (const piece of response as AsyncIterable<string>) {
        const lines = (rest + piece).split("\n");
        rest = lines.pop() ?? "";
        if (rest.length > MAX_LINE) throw new Error("an event of the watch is too long");
        for (const line of lines) if (line.trim() !== "") yield jsonOf(line);
      }
    } catch (thrown) {
      if (signal.aborted || !isLost(thrown)) throw thrown;
    }
  }

  /**
   * Retries for `patienceMs`; if the server names a time to wait (Retry-After), for six times that. If a server that
   * has answered before is away, retries for twelve times that, which outlasts a restart.
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
        const hasRetryAfter = thrown instanceof ApiFailure && (thrown.retryAfterMs ?? 0) > 0;
        const patience = this.patienceMs * (this.#answered && isAway(thrown) ? 12 : hasRetryAfter ? 6 : 1);
        if (now() - begun + pause > patience) throw this.#unanswered(thrown);
        await wait(pause, signal);
      }
    }
  }

  /**
   * A credential's expiry was set by its issuer's clock but checked by ours: a refused credential is therefore renewed
   * once.
   */
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
      // Counts from the start of the connection: if packets are lost, the system would try for longer.
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
    if (there !== null) this.#serverClock = { there, here: this.time.now(), wall: Date.now() };
    return response;
  }

  #unanswered(thrown: unknown): unknown {
    const code = errorCode(thrown);
    if (thrown instanceof ApiFailure || code === undefined) return thrown;
    // A fault of the kubeconfig, without a cause: nobody waits until it goes away.
    if (!this.#answered && NOT_TRUSTED.test(code))
      return new HarnessError(
        EXIT.sandbox,
        `what answers at ${this.server} is not the cluster of the kubeconfig: ${tlsReason(code, thrown)}`,
        "kubectl cluster-info; compare certificate-authority-data, tls-server-name and server in the kubeconfig",
      );
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

/** A copy of the configuration without any cached tokens. */
function renewedConfig(config: KubeConfig): KubeConfig {
  const { clusters, users, contexts, currentContext } = config;
  const renewed = new KubeConfig();
  renewed.loadFromOptions({ clusters, users, contexts, currentContext });
  return renewed;
}

const TYPES: Partial<Readonly<Record<Method, string>>> = { PATCH: "application/merge-patch+json" };
const PATIENCE_MS = 10_000;
/** No limit on attempts: the patience bounds them. */
const PAUSES: RetryRules = {
  attempts: Number.POSITIVE_INFINITY,
  busyAttempts: Number.POSITIVE_INFINITY,
  baseMs: 100,
  capMs: 2000,
  longestMs: 120_000,
  spread: SPREAD,
};
/** A certificate that the kubeconfig does not vouch for, or no TLS at all. */
const NOT_TRUSTED = /SELF_SIGNED|^UNABLE_TO_|^CERT_|^ERR_TLS_CERT|^ERR_SSL_|^EPROTO$/;

/** OpenSSL's own text names a place in its sources; Node's gives advice about starting Node. */
const tlsReason = (code: string, thrown: unknown): string =>
  /^(?:ERR_SSL|EPROTO)/.test(code)
    ? `it does not speak TLS (${code})`
    : reasonOf(thrown).replace(/; if the root CA .*$/, "");

const MAX_LINE = 16 * 2 ** 20;
/** Large enough for a list of thousands of pods. */
const MAX_BODY = 128 * 2 ** 20;

async function bodyText(response: IncomingMessage): Promise<string> {
  const pieces: string[] = [];
  let length = 0;
  response.setEncoding("utf8");
  for await (const piece of response as AsyncIterable<string>) {
    length += piece.length;
    if (length > MAX_BODY) throw new Error("the API server's answer is too long");
    pieces.push(piece);
  }
  return pieces.join("");
}

const BUSY = new Set([429, 500, 502, 503, 504]);
/** Sent by a proxy for a missing server, or by a server that is starting. */
const AWAY = new Set([502, 503, 504]);
const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

/**
 * Failures worth a retry. Every object has a name of ours, so creating it twice is a conflict and makes no second
 * object.
 */
const isPassing = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure ? BUSY.has(thrown.status) || isOvertaken(thrown) : isLost(thrown);

/**
 * Somebody else changed an object between the server's look and its own change, most often the count of a quota: it
 * refuses a creation then, and has done nothing.
 */
export const isOvertaken = ({ status, reason, message }: ApiFailure): boolean =>
  status === 409 && reason === "Conflict" && message.includes("the object has been modified");

/**
 * Whether the server is away. Its own errors, such as a failed webhook, are answers, and waiting long does not help.
 */
const isAway = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure ? AWAY.has(thrown.status) : isLost(thrown);

/** At least half of each pause is fixed, whatever failed: a server that is away is not asked in a tight loop. */
const passingOf = (thrown: unknown): PassingFailure => ({
  passing: true,
  busy: true,
  retryAfterMs: thrown instanceof ApiFailure ? thrown.retryAfterMs : null,
});

/** The same error as the system gives for a connection that is never made. */
export const noAnswer = ({ answerMs }: ClusterTime): Error =>
  Object.assign(new Error(`no answer in ${formatDuration(answerMs)}`), { code: "ETIMEDOUT" });

/** The object to be created exists already. */
export const isThere = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure && thrown.status === 409 && thrown.reason === "AlreadyExists";

/** The connection was lost or could not be made. */
export const isLost = (thrown: unknown): boolean => LOST.has(errorCode(thrown) ?? "");

const jsonOf = (text: string): unknown => parsedJson(text) ?? { message: text.trim().slice(0, 500) };

/** The cluster and namespace of an address; sends no request to the cluster yet. */
export async function clusterOf(
  address: ClusterAddress,
  user: ClusterUser,
  patienceMs = PATIENCE_MS,
): Promise<Cluster> {
  const config = kubeConfigOf(address, user);
  return new Cluster(config, await namespaceOf(config, address), patienceMs);
}

/** API objects as sent and received: plain values without the client's classes. */
type Plain<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? Plain<U>[]
    : T extends object
      ? { [K in keyof T]: Plain<T[K]> }
      : T;

export type ConfigMap = Plain<V1ConfigMap>;
export type Container = Plain<V1Container>;
export type ContainerStatus = Plain<V1ContainerStatus>;
export type Job = Plain<V1Job>;
export type NetworkPolicy = Plain<V1NetworkPolicy>;
export type Pod = Plain<V1Pod>;
export type PodSpec = Plain<V1PodSpec>;
export type PolicyRule = Plain<V1PolicyRule>;
export type Role = Plain<V1Role>;
export type RoleBinding = Plain<V1RoleBinding>;
export type ServiceAccount = Plain<V1ServiceAccount>;

/** YAML for `kubectl apply -f -`: the same objects give the same text. */
export const manifestYaml = (objects: readonly object[]): string =>
  objects
    .map((object) => `---\n${dumpYaml(object, { noRefs: true, lineWidth: -1, sortKeys: true })}`)
    .join("");

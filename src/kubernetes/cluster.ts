import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import path from "node:path";
import { text as whole } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import * as z from "zod";
import { EXIT, errorCode, HarnessError, reasonOf } from "../core/errors.ts";

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

async function namespaceOf(config: KubeConfig, { namespace }: ClusterAddress): Promise<string> {
  const own = namespace ?? config.getContextObject(config.getCurrentContext())?.namespace;
  if (own !== undefined && own !== "") return own;
  const mounted = await readFile(path.join(SERVICE_ACCOUNT, "namespace"), "utf8").catch(() => "");
  return config.getCurrentUser()?.name === "inClusterUser" && mounted.trim() !== ""
    ? mounted.trim()
    : "default";
}

/** The API server's own no. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  readonly status: number;
  /** As the API writes it: Forbidden, NotFound, AlreadyExists, Expired … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

const failureForm = z.object({ reason: z.string().catch(""), message: z.string().catch("") });

/** Of a status object, or of whatever stands in its place. */
function apiFailure(status: number, body: unknown): ApiFailure {
  const read = failureForm.safeParse(body);
  const said = read.data?.message ?? "";
  return new ApiFailure(status, read.data?.reason ?? "", said === "" ? `HTTP ${status}` : said);
}

type Method = "GET" | "POST" | "DELETE";

export interface ApiCall {
  readonly method?: Method;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** One namespace of a cluster. What comes is given as it came: nothing of an object is left out for not being known. */
export class Cluster {
  readonly config: KubeConfig;
  readonly namespace: string;
  /** For how long an API server that does not answer is waited for, and a policy that does not hold yet. */
  readonly patienceMs: number;

  constructor(config: KubeConfig, namespace: string, patienceMs = PATIENCE_MS) {
    this.config = config;
    this.namespace = namespace;
    this.patienceMs = patienceMs;
  }

  get server(): string {
    return this.config.getCurrentCluster()?.server ?? "";
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
    const deadline = performance.now() + this.patienceMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, MOST_PAUSE_MS)) {
      try {
        const response = await this.#send(where, { method, body, signal });
        const answer = jsonOf(await whole(response));
        const { statusCode = 0 } = response;
        if (statusCode < 200 || statusCode > 299) throw apiFailure(statusCode, answer);
        return answer;
      } catch (thrown) {
        signal?.throwIfAborted();
        if (!isPassing(thrown) || performance.now() + pause > deadline) throw this.#unanswered(thrown);
        await sleep(pause, undefined, { signal });
      }
    }
  }

  /** The events of a watch, until the server ends it. */
  async *watch(where: string, signal: AbortSignal): AsyncGenerator<unknown, void> {
    const response = await this.#send(where, { method: "GET", body: undefined, signal });
    const { statusCode = 0 } = response;
    if (statusCode !== 200) throw apiFailure(statusCode, jsonOf(await whole(response)));
    let rest = "";
    response.setEncoding("utf8");
    for await (const piece of response as AsyncIterable<string>) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MOST_LINE) throw new Error("an event of the watch has no end");
      for (const line of lines) if (line.trim() !== "") yield jsonOf(line);
    }
  }

  async #send(where: string, { method, body, signal }: ApiCall): Promise<IncomingMessage> {
    const url = new URL(this.server.replace(/\/$/, "") + where);
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const options: RequestOptions = {
      method,
      headers: {
        accept: "application/json",
        ...(sent === undefined
          ? {}
          : { "content-type": "application/json", "content-length": String(sent.length) }),
      },
      ...(signal === undefined ? {} : { signal }),
    };
    await this.config.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = (url.protocol === "http:" ? http : https).request(url, options, resolve);
    request.on("error", reject);
    request.end(sent);
    return promise;
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

const PATIENCE_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const MOST_PAUSE_MS = 2000;
const MOST_LINE = 16 * 2 ** 20;

const BUSY = new Set([429, 500, 502, 503, 504]);
const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

/** Every object has a name of ours, so that a second making of it is a conflict and no second object. */
const isPassing = (thrown: unknown): boolean =>
  thrown instanceof ApiFailure ? BUSY.has(thrown.status) : LOST.has(errorCode(thrown) ?? "");

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

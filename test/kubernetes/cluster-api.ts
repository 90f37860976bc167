import { readFile } from "node:fs/promises";
import { request } from "node:https";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Direct access of tests to a cluster's API, so that the beliefs of our client are checked by other code. */

/** The fields of an object that are read; the others exist too. */
export interface KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly resourceVersion?: string;
  };
  readonly [key: string]: unknown;
}

/** The value at this path, if there is one: `look(pod, "status", "podIP")`. */
export function look(object: unknown, ...keys: readonly (string | number)[]): unknown {
  return keys.reduce<unknown>(
    (found, key) =>
      typeof found === "object" && found !== null ? (found as Record<string, unknown>)[key] : undefined,
    object,
  );
}

export interface ApiAnswer {
  readonly status: number;
  readonly body: KubeObject;
}

interface WatchEvent {
  readonly type: string;
  readonly object: KubeObject;
}

export class ClusterApi {
  readonly #server: URL;
  readonly #token: string;
  readonly #ca: Buffer;

  constructor(server: string, token: string, ca: Buffer) {
    [this.#server, this.#token, this.#ca] = [new URL(server), token, ca];
  }

  static async of(kubeconfig: string): Promise<ClusterApi> {
    const read: unknown = JSON.parse(await readFile(kubeconfig, "utf8"));
    const of = (...keys: readonly (string | number)[]): string => String(look(read, ...keys));
    const ca = Buffer.from(of("clusters", 0, "cluster", "certificate-authority-data"), "base64");
    return new ClusterApi(of("clusters", 0, "cluster", "server"), of("users", 0, "user", "token"), ca);
  }

  /** The same API with another user's token. */
  as(token: string): ClusterApi {
    return new ClusterApi(this.#server.href, token, this.#ca);
  }

  #open(method: string, path: string, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = {
      authorization: `Bearer ${this.#token}`,
      "content-type": type,
      accept: "application/json",
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const asked = request(
      new URL(path, this.#server),
      { method, headers, ca: this.#ca, signal, agent: false },
      resolve,
    );
    asked.once("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  /** Returns any answer, including refusals. */
  async ask(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    const answer = await this.#open(method, path, body, AbortSignal.timeout(30_000));
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const json = answer.headers["content-type"]?.includes("json") === true;
    const told = json ? (JSON.parse(text) as KubeObject) : { metadata: { name: "" }, text };
    return { status: answer.statusCode ?? 0, body: told };
  }

  /** Throws if the answer is a refusal. */
  async must(method: string, path: string, body?: unknown): Promise<KubeObject> {
    const { status, body: said } = await this.ask(method, path, body);
    if (status >= 300)
      throw new Error(`${method} ${path}: ${status} ${JSON.stringify(said["message"] ?? said)}`);
    return said;
  }

  async list(path: string): Promise<readonly KubeObject[]> {
    return (await this.must("GET", path))["items"] as KubeObject[];
  }

  /** Lines of a watch until it ends or is cut. */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const answer = await this.#open("GET", path, undefined, signal);
    let rest = "";
    for await (const chunk of answer.setEncoding("utf8") as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as WatchEvent;
    }
  }

  /** Asks until `found` returns true, within the time limit; a failure shows the last answer. */
  async until(path: string, found: (said: ApiAnswer) => boolean, patienceMs = 60_000): Promise<KubeObject> {
    const patience = AbortSignal.timeout(patienceMs);
    for (;;) {
      const said = await this.ask("GET", path).catch((thrown: Error) => thrown);
      if (!(said instanceof Error) && found(said)) return said.body;
      if (patience.aborted)
        throw new Error(
          `${path}: not as awaited: ${said instanceof Error ? said.message : JSON.stringify(said.body["status"] ?? said.body)}`,
        );
      await sleep(100);
    }
  }
}

import { QdrantClient } from "@qdrant/js-client-rest";
import { EXIT, HarnessError } from "../../core/errors.ts";

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

export type Calls = ReturnType<QdrantClient["api"]>;

export interface QdrantNode {
  readonly url: string;
  readonly calls: Calls;
}

/**
 * The addresses of one Qdrant; each is tried at most once per request, beginning with the one that answered last. Some
 * features of the client are replaced here: its timeout would replace our signal, its version check and its warning
 * about keys go to the console, and it ignores the path of an address.
 */
export class QdrantNodes {
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

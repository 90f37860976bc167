import { QdrantClient } from "@qdrant/js-client-rest";
import { z } from "zod";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Asked, garbled } from "./failure.ts";
import { failureOf } from "./failures.ts";

export interface QdrantServer {
  /** http or https, with a path where Qdrant is below one. */
  readonly url: string;
  /** From QDRANT_API_KEY. */
  readonly apiKey?: string | undefined;
}

/** How long one request may take. */
export interface Patience {
  readonly readMs: number;
  /** Writes wait until what was written can be found. */
  readonly writeMs: number;
}

export const PATIENCE: Patience = { readMs: 15_000, writeMs: 120_000 };

type Calls = ReturnType<QdrantClient["api"]>;

export interface Wish<T> {
  /** To be read after "to". */
  readonly what: string;
  readonly form: z.ZodType<T>;
  readonly signal: AbortSignal;
  readonly write?: boolean;
}

/**
 * One server. The client's own timeout would take the place of our signal, its check of versions and its word about
 * keys go to the console, and of an address it ignores the path: all of that is done here instead.
 */
export class QdrantApi {
  readonly url: string;
  readonly #calls: Calls;
  readonly #hasKey: boolean;
  readonly #patience: Patience;

  constructor(server: QdrantServer, patience = PATIENCE) {
    const { url, host, prefix, port } = addressOf(server.url);
    this.url = url;
    this.#hasKey = (server.apiKey ?? "") !== "";
    this.#patience = patience;
    const client = new QdrantClient({
      url: host,
      port,
      prefix,
      timeout: Number.POSITIVE_INFINITY,
      checkCompatibility: false,
      ...(this.#hasKey ? { headers: { "api-key": server.apiKey ?? "" } } : {}),
    });
    this.#calls = client.api();
  }

  /** The body of the answer, as far as its form names it. Aborting rejects with the signal's reason. */
  async ask<T>(
    call: (calls: Calls, init: RequestInit) => Promise<{ readonly data: unknown }>,
    { what, form, signal, write = false }: Wish<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const timeoutMs = write ? this.#patience.writeMs : this.#patience.readMs;
    const asked: Asked = { url: this.url, hasKey: this.#hasKey, what, timeoutMs };
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let data: unknown;
    try {
      ({ data } = await call(this.#calls, { signal: bounded, redirect: "error" }));
    } catch (thrown) {
      signal.throwIfAborted();
      throw failureOf(bounded.aborted ? bounded.reason : thrown, asked);
    }
    const read = form.safeParse(data);
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    throw garbled(
      `its answer is unlike one (${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""})`,
      asked,
    );
  }
}

/** The form of an answer whose result is of that form. */
export const resultOf = <T>(form: z.ZodType<T>): z.ZodType<T> =>
  z.object({ result: form }).transform(({ result }) => result);

/** A write that the server has not finished is none. */
export const written = resultOf(z.object({ status: z.literal("completed") }));

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

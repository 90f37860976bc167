import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Parser } from "htmlparser2";
import { badKey, bucketAddress } from "../core/addresses.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import {
  parseRetryAfter,
  delayAfter,
  momentOf,
  RETRIES,
  type RetryRules,
  SPREAD,
} from "../core/server-wait.ts";
import { visibleLine } from "../core/visible.ts";
import { type BucketAccess, signedHeaders, uriEncoded } from "./bucket-access.ts";
import {
  type BucketRequest,
  BucketTrouble,
  type BucketRefusal,
  refusalOf,
  type ServerError,
  unreachable,
} from "./bucket-trouble.ts";

/** Waiting and clocks, which tests replace. */
export interface BucketTime {
  readonly now: () => Date;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
}

const REAL_TIME: BucketTime = {
  now: () => new Date(),
  wait: async (ms, signal) => {
    await sleep(ms, undefined, { signal });
  },
  random: Math.random,
};

/** All loops of a batch share one bucket, so a failed connection is retried as often as a busy server. */
const PAUSES: RetryRules = { ...RETRIES, attempts: RETRIES.busyAttempts, spread: SPREAD };

/** Time limits for an answer without an object, and for one with it. */
const ANSWER_MS = 60_000;
const OBJECT_MS = 10 * 60_000;
/** A thousand keys of full length, with every byte encoded as three characters. */
const MAX_LIST_BYTES = 8 * 2 ** 20;
const MAX_ERROR_BYTES = 64 * 1024;
/** The most pages of a list, so that every list ends: ten million objects on Amazon. */
const MAX_PAGES = 10_000;

interface Question {
  readonly method: "GET" | "PUT";
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly payload?: Uint8Array;
  /** Bytes that the answer may have. */
  readonly max: number;
  readonly ms: number;
}

const NOTHING = new Uint8Array();

/**
 * One bucket. A server that is away or busy is asked again, for half a minute or as long as it says. If a server
 * refuses the time of a signature, the request is repeated once by the server's clock. Everything else, and trouble
 * that persists, rejects with `BucketTrouble`.
 */
export class Bucket {
  readonly name: string;
  readonly #access: BucketAccess;
  readonly #time: BucketTime;
  /** How far the server's clock is ahead of ours, by its last answer. */
  #ahead = 0;
  /** Sign by the server's clock, because ours was refused. */
  #byItsClock = false;

  constructor(name: string, access: BucketAccess, time: BucketTime = REAL_TIME) {
    this.name = name;
    this.#access = access;
    this.#time = time;
  }

  /** Resolves when the whole object is there, replacing an earlier one. */
  async put(key: string, payload: Uint8Array, signal: AbortSignal): Promise<void> {
    const request = this.#requestOf(`write ${this.#shown(key)}`, "s3:PutObject");
    await this.#ask({ method: "PUT", key, payload, max: MAX_ERROR_BYTES, ms: OBJECT_MS }, request, signal);
  }

  async get(key: string, max: number, signal: AbortSignal): Promise<Buffer> {
    const request = this.#requestOf(`read ${this.#shown(key)}`, "s3:GetObject");
    return this.#ask({ method: "GET", key, max, ms: OBJECT_MS }, request, signal);
  }

  /** All objects whose keys begin with the prefix, in the server's order, with one page in memory at a time. */
  async *list(prefix: string, signal: AbortSignal): AsyncGenerator<StoredObject> {
    const request = this.#requestOf(`list ${this.#shown(prefix)}`, "s3:ListBucket");
    for (let from: string | undefined, pages = 1; ; pages += 1) {
      const query = {
        "list-type": "2",
        "encoding-type": "url",
        prefix,
        ...(from === undefined ? {} : { "continuation-token": from }),
      };
      const question = { method: "GET", key: "", query, max: MAX_LIST_BYTES, ms: ANSWER_MS } as const;
      const page = listPageIn((await this.#ask(question, request, signal)).toString("utf8"));
      if (page === undefined || (page.next !== undefined && pages === MAX_PAGES))
        throw new BucketTrouble(
          `cannot ${request.what}: the answer is not an S3 listing`,
          "check that AWS_ENDPOINT_URL is the address of an S3 server",
        );
      // Drops objects that were not asked for.
      yield* page.objects.filter(({ key }) => key.startsWith(prefix));
      if (page.next === undefined) return;
      from = page.next;
    }
  }

  /** Milliseconds since 1970 by the bucket's own clock, once it has answered with a time; until then by ours. */
  now(): number {
    return this.#time.now().getTime() + this.#ahead;
  }

  readonly #shown = (key: string): string => visibleLine(bucketAddress(this.name, key));

  readonly #requestOf = (what: string, right: BucketRequest["right"]): BucketRequest => ({
    access: this.#access,
    bucket: this.name,
    what,
    right,
  });

  async #ask(question: Question, request: BucketRequest, signal: AbortSignal): Promise<Buffer> {
    for (let failures = 1; ; failures += 1) {
      signal.throwIfAborted();
      try {
        return await this.#once(question, request, signal);
      } catch (thrown) {
        if (!(thrown instanceof BucketTrouble)) throw thrown;
        if (thrown.skewed && !this.#byItsClock && this.#ahead !== 0) {
          this.#byItsClock = true;
          continue;
        }
        const ms = delayAfter(failures, thrown, PAUSES, this.#time.random);
        if (ms === null) throw thrown;
        await this.#time.wait(ms, signal).catch(() => undefined);
      }
    }
  }

  async #once(
    { method, key, query = {}, payload = NOTHING, max, ms }: Question,
    request: BucketRequest,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { credentials, region } = this.#access;
    const url = this.#urlOf(key, query);
    const own = this.#time.now();
    const at = this.#byItsClock ? new Date(this.now()) : own;
    const unsigned = { method, url, payload, headers: method === "PUT" ? sumOf(payload) : {} };
    const headers = signedHeaders(unsigned, credentials, { region, at });
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    try {
      // The answer is not decompressed, and a signed request follows no redirect.
      const response = await fetch(url, {
        method,
        headers: { ...headers, "accept-encoding": "identity" },
        redirect: "manual",
        signal: bounded,
        ...(method === "PUT" ? { body: payload as Uint8Array<ArrayBuffer> } : {}),
      });
      const serverTime = momentOf(response.headers.get("date"));
      if (serverTime !== null) this.#ahead = serverTime - this.#time.now().getTime();
      if (response.status === 200) return await bytesOf(response, max, request);
      throw refusalOf(await refusalIn(response, own), request);
    } catch (thrown) {
      if (thrown instanceof HarnessError) throw thrown;
      signal.throwIfAborted();
      throw unreachable(bounded.aborted ? new Error(`no answer in ${ms / 1000} s`) : thrown, request);
    }
  }

  #urlOf(key: string, query: Readonly<Record<string, string>>): URL {
    const bad = badKey(key);
    if (bad !== undefined)
      throw new HarnessError(
        EXIT.usage,
        `${this.#shown(key)} cannot be requested: ${bad}`,
        "give the object another key",
      );
    const { endpoint, region } = this.#access;
    const path = key.split("/").map(uriEncoded).join("/");
    const pairs = Object.entries(query).map(([name, value]) => `${uriEncoded(name)}=${uriEncoded(value)}`);
    const behind = `/${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
    if (endpoint !== null)
      return new URL(`${endpoint.origin}${endpoint.pathname.replace(/\/+$/, "")}/${this.name}${behind}`);
    const host = `s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
    // No wildcard certificate covers a name with another dot.
    return new URL(
      this.name.includes(".")
        ? `https://${host}/${this.name}${behind}`
        : `https://${this.name}.${host}${behind}`,
    );
  }
}

/** Buckets with object lock require this sum, even with a signature. */
const sumOf = (payload: Uint8Array): Readonly<Record<string, string>> => ({
  "content-md5": createHash("md5").update(payload).digest("base64"),
});

async function bytesOf(response: Response, max: number, { what }: BucketRequest): Promise<Buffer> {
  const { bytes, whole } = await bytesWithin(response, max);
  if (whole) return bytes;
  throw new BucketTrouble(
    `cannot ${what}: it is larger than ${max / 2 ** 20} MiB`,
    "check what it is: no object of harness's is that large",
  );
}

async function bytesWithin(
  { body }: Response,
  max: number,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop ends the connection.
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += piece.length;
    if (length > max) return { bytes: Buffer.concat(pieces), whole: false };
    pieces.push(piece);
  }
  return { bytes: Buffer.concat(pieces), whole: true };
}

async function refusalIn(response: Response, own: Date): Promise<BucketRefusal> {
  const { status, headers } = response;
  const { bytes } = await bytesWithin(response, MAX_ERROR_BYTES);
  const error = errorIn(bytes.toString("utf8"));
  return {
    ...error,
    status,
    region: headers.get("x-amz-bucket-region") ?? error.region,
    date: headers.get("date") ?? "",
    retryAfterMs: parseRetryAfter(headers.get("retry-after"), own.getTime(), headers.get("date")),
  };
}

/** Reads an S3 answer, a flat tree of XML: reports each element at its end with its path and text. */
function eachElement(xml: string, onElement: (path: string, text: string) => void): void {
  const open: { readonly name: string; text: string }[] = [];
  const parser = new Parser(
    {
      onopentagname: (name) => void (open.length < MAX_DEPTH && open.push({ name, text: "" })),
      ontext: (text) => {
        const last = open.at(-1);
        if (last !== undefined) last.text += text;
      },
      onclosetag: (name) => {
        const last = open.at(-1);
        if (last?.name !== name) return;
        onElement(open.map((each) => each.name).join("/"), last.text);
        open.pop();
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.write(xml);
  parser.end();
}

/** Nothing that we read lies deeper. */
const MAX_DEPTH = 8;

interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  /** Milliseconds since 1970, by the server's clock. */
  readonly changed: number;
}

interface ListPage {
  readonly objects: readonly StoredObject[];
  /** Where the next page begins; undefined: there is none. */
  readonly next: string | undefined;
}

/** Undefined if the answer is not a list. */
function listPageIn(xml: string): ListPage | undefined {
  const found: Record<string, string>[] = [];
  const whole: Record<string, string> = {};
  let entry: Record<string, string> = {};
  eachElement(xml, (path, text) => {
    const [root, name = "", part] = path.split("/");
    if (root !== "ListBucketResult") return;
    if (name !== "Contents") whole[name] = text;
    else if (part !== undefined) entry[part] = text;
    else {
      found.push(entry);
      entry = {};
    }
  });
  if (!("" in whole)) return undefined;
  const isEncoded = whole["EncodingType"] === "url";
  const objects: StoredObject[] = [];
  for (const { Key: encoded, Size: size = "", LastModified: changed = "" } of found) {
    const key = encoded === undefined || !isEncoded ? encoded : decoded(encoded);
    if (key === undefined) return undefined;
    objects.push({ key, bytes: Number(size), changed: Date.parse(changed) });
  }
  const next = whole["IsTruncated"] === "true" ? whole["NextContinuationToken"] : undefined;
  return { objects, next };
}

/** Decodes as for a query: a plus is a blank. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** Empty texts if the answer is no error. */
function errorIn(xml: string): ServerError {
  const texts: Record<string, string> = {};
  eachElement(xml, (path, text) => {
    texts[path] ??= text;
  });
  const { "Error/Code": code = "", "Error/Message": message = "", "Error/Region": region = "" } = texts;
  return { code, message, region };
}

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { denialOf, type Keys } from "./qdrant/access.ts";
import { keepLimits, type Limits } from "./qdrant/limits.ts";
import { type Collections, OPERATIONS } from "./qdrant/operations.ts";
import { Refusal } from "./qdrant/refusal.ts";
import { type Match, PublishedApi } from "./qdrant/schema.ts";

/**
 * An in-memory Qdrant on this machine. Each request and each answer is checked against the published schema; a
 * violation is answered with 400 and makes closing the server, and with it the test, fail.
 */

interface QdrantCall {
  readonly operation: string;
  readonly collection: string;
  readonly body: unknown;
  readonly bytes: number;
}

export type Fault =
  /** The connection is cut before the request is executed, or after it but before the answer. */
  | "reset"
  | "reset after"
  | "silent"
  | { readonly delayMs: number }
  | {
      readonly status: number;
      readonly body: string;
      readonly type?: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface FakeQdrantOptions extends Keys {
  readonly version?: string;
  readonly title?: string;
  /** Existing collections, shared by successive servers. */
  readonly collections?: Collections;
  readonly limits?: Limits;
  /** Maximum bytes of one request. */
  readonly largest?: number;
}

export interface FakeQdrant extends AsyncDisposable {
  readonly url: string;
  readonly collections: Collections;
  readonly calls: QdrantCall[];
  /** The fault for the request with this number, from 0. */
  fault: (call: QdrantCall, number: number) => Fault | undefined;
  readonly close: () => Promise<void>;
}

/** Only the used parts are compiled, once. */
const API = new PublishedApi();
const MAX_BYTES = 32 * 2 ** 20;

export async function startQdrant(options: FakeQdrantOptions = {}): Promise<FakeQdrant> {
  const breaches: string[] = [];
  const fake = {
    url: "",
    collections: options.collections ?? new Map(),
    calls: [] as QdrantCall[],
    fault: (): Fault | undefined => undefined,
  } as Omit<FakeQdrant, "close" | keyof AsyncDisposable> & { url: string };
  const context: ServerContext = { fake, options, breaches };
  const server = createServer((request, response) => {
    serve(request, response, context).catch((thrown: unknown) => {
      breaches.push(String(thrown));
      response.destroy();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
    assert.deepEqual(breaches, [], "requests and answers are of the published schema");
  };
  return Object.assign(fake, { close, [Symbol.asyncDispose]: close });
}

interface ServerContext {
  readonly fake: Omit<FakeQdrant, "close" | keyof AsyncDisposable>;
  readonly options: FakeQdrantOptions;
  readonly breaches: string[];
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  context: ServerContext,
): Promise<void> {
  const { fake, options, breaches } = context;
  const bytes = await bytesOf(request);
  if (bytes === null) return;
  const url = new URL(request.url ?? "/", "http://server");
  const match = API.match(request.method ?? "", url.pathname);
  if (match === undefined) {
    breaches.push(`${request.method} ${url.pathname} is not in the schema`);
    return void response.writeHead(404).end();
  }
  const body: unknown = bytes.length === 0 ? undefined : JSON.parse(bytes.toString("utf8"));
  const call = { operation: match.operation, collection: match.collection, body, bytes: bytes.length };
  const fault = fake.fault(call, fake.calls.length);
  fake.calls.push(call);
  if (await spoilt(fault, response)) return;
  const denial = denialOf(options, match.operation, request);
  if (denial !== undefined)
    return void response.writeHead(denial.status, { "content-type": denial.type }).end(denial.body);
  const answer = checkedAnswer(match, url, { body, bytes: bytes.length }, context);
  if (fault === "reset after") return void response.destroy();
  response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
}

/** Null if the client left in the middle of the request. */
async function bytesOf(request: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of request) pieces.push(piece as Buffer);
  } catch {
    return null;
  }
  return Buffer.concat(pieces);
}

function checkedAnswer(match: Match, url: URL, sent: Sent, context: ServerContext): Answer {
  const { largest = MAX_BYTES, version } = context.options;
  const breach =
    sent.bytes > largest
      ? undefined
      : (API.breachOfRequest(match, url.searchParams, sent.body) ?? newerThan(version, sent.body));
  if (breach !== undefined) context.breaches.push(`${match.operation}: ${breach}`);
  const answer = breach === undefined ? answerTo(match, url, sent, context) : refused(400, breach);
  const wrong = API.breachOfAnswer(match, answer.status, answer.body);
  if (wrong !== undefined) context.breaches.push(`answer to ${match.operation}: ${wrong}`);
  return answer;
}

/** Reports a field of today's schema that a server of this version would ignore. */
function newerThan(version = "1.19", body: unknown): string | undefined {
  const [, minor] = /^\d+\.(\d+)/.exec(version) ?? [];
  return Number(minor) < 19 && JSON.stringify(body ?? "").includes('"idf":{"corpus"')
    ? `${version} knows no corpus of idf`
    : undefined;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const refused = (status: number, error: string): Answer => ({
  status,
  body: { status: { error }, time: 0.001 },
});

interface Sent {
  readonly body: unknown;
  readonly bytes: number;
}

function answerTo(match: Match, url: URL, { body, bytes }: Sent, { fake, options }: ServerContext): Answer {
  if (match.operation === "root") {
    const { title = "qdrant - vector search engine", version = "1.19.0" } = options;
    return { status: 200, body: { title, version, commit: "0000000000000000000000000000000000000000" } };
  }
  const { largest = MAX_BYTES } = options;
  if (bytes > largest)
    return refused(400, `JSON payload (${bytes} bytes) is larger than allowed (limit: ${largest} bytes).`);
  try {
    keepLimits(options.limits ?? {}, match.operation, body);
    const call = { match, query: url.searchParams, body: body as never };
    const result = OPERATIONS[match.operation]?.(call, fake.collections);
    return { status: 200, body: { result, status: "ok", time: 0.001 } };
  } catch (thrown) {
    if (thrown instanceof Refusal) return refused(thrown.status, thrown.message);
    throw thrown;
  }
}

/** Whether the fault replaced the answer. */
async function spoilt(fault: Fault | undefined, response: ServerResponse): Promise<boolean> {
  if (fault === undefined || fault === "reset after") return false;
  if (fault === "silent") return true;
  if (fault === "reset") {
    response.destroy();
    return true;
  }
  if ("delayMs" in fault) {
    await sleep(fault.delayMs);
    return response.destroyed;
  }
  response
    .writeHead(fault.status, { "content-type": fault.type ?? "application/json", ...fault.headers })
    .end(fault.body);
  return true;
}

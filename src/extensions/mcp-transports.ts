/** How MCP servers are reached: over the pipes of a program, or over HTTP. What they send is untrusted, and bounded. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type JSONRPCMessage,
  parseJSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { formatSize } from "../core/wording.ts";
import { reasonOf } from "../core/errors.ts";
import type { Box, ExecResult } from "../core/ports.ts";
import type { OwnAnswer, OwnRequests } from "../core/network.ts";
import { visibleLine } from "../core/visible.ts";
import { withoutHeldPipes } from "../platform/host-programs.ts";

const MiB = 2 ** 20;
const MAX_LINE_LENGTH = 8 * MiB;
/** Limits on output without an answer to one of our requests in between. */
const MAX_UNASKED = { messages: 5000, bytes: 32 * MiB };
/** Lines that are not protocol messages: some programs print a greeting first. */
const MAX_STRAY = 500;
const MAX_WAITING = 32 * MiB;
const LAST_ERRORS = 64 * 1024;

/** `place`: the program ended together with its box, which is not the program's fault. */
export interface ProgramEnd {
  readonly by: "program" | "place" | "us";
  readonly reason: string;
}

interface Program {
  /** Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  readonly write: (bytes: Uint8Array) => void;
  /** Closes the program's input, then ends the program. */
  readonly kill: () => void;
}

/** The result is awaited before more output is read. */
type OnOutput = (stream: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;
export type StartProgram = (onOutput: OnOutput) => Program;

/**
 * MCP over the pipes of a program, one message per line. Lines and unrequested output are bounded, and a program that
 * floods is ended.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #start: StartProgram;
  readonly #open = new Set<string | number>();
  #program: Program | undefined;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #unasked = { messages: 0, bytes: 0 };
  #stray = 0;
  #errors = Buffer.alloc(0);
  #end: ProgramEnd | undefined;

  constructor(start: StartProgram) {
    this.#start = start;
  }

  /** The end of the program's stderr. */
  get errors(): string {
    return this.#errors.toString("utf8");
  }

  /** Why the program ended, with its last line; empty while it runs, or if we ended it. */
  readonly end = (): { readonly reason: string; readonly isPlace: boolean } => {
    const end = this.#end;
    if (end === undefined || end.by === "us") return { reason: "", isPlace: false };
    const last = end.by === "program" ? lastWord(this.errors) : "";
    return {
      reason: last === "" ? end.reason : `${end.reason}; it printed: ${last.slice(0, 200)}`,
      isPlace: end.by === "place",
    };
  };

  start(): Promise<void> {
    this.#program = this.#start((stream, bytes) => this.#take(stream, bytes));
    void this.#program.ended.then((end) => this.#ended(end));
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#program === undefined || this.#end !== undefined)
      return Promise.reject(new Error(this.#end?.reason ?? "it is not started"));
    if ("method" in message && "id" in message) this.#open.add(message.id);
    this.#program.write(Buffer.from(`${JSON.stringify(message)}\n`));
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.#ended({ by: "us", reason: "it was ended" });
    await this.#program?.ended;
  }

  #ended(end: ProgramEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#line = [];
    this.#program?.kill();
    this.onclose?.();
  }

  #fail(reason: string): void {
    this.#ended({ by: "program", reason });
  }

  async #take(stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> {
    if (stream === "stderr") {
      this.#errors = Buffer.concat([this.#errors, bytes.subarray(-LAST_ERRORS)]).subarray(-LAST_ERRORS);
      return;
    }
    this.#unasked.bytes += bytes.length;
    let from = 0;
    for (let at = bytes.indexOf(10); at !== -1 && this.#end === undefined; at = bytes.indexOf(10, from)) {
      this.#add(bytes.subarray(from, at));
      from = at + 1;
      this.#lineEnds();
    }
    if (this.#end !== undefined) return;
    this.#add(bytes.subarray(from));
    if (this.#unasked.bytes > MAX_UNASKED.bytes)
      this.#fail(`it printed more than ${formatSize(MAX_UNASKED.bytes)} without being asked`);
    // Lets the rest of the process run, however much there is to read.
    await nextTurn();
  }

  #add(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#lineBytes += bytes.length;
    if (this.#lineBytes > MAX_LINE_LENGTH)
      this.#fail(`it printed a line longer than ${formatSize(MAX_LINE_LENGTH)}`);
    else this.#line.push(Buffer.from(bytes));
  }

  #lineEnds(): void {
    const line = Buffer.concat(this.#line).toString("utf8").trim();
    this.#line = [];
    this.#lineBytes = 0;
    if (line === "" || this.#end !== undefined) return;
    const message = readMessage(line);
    if (message === undefined || !this.#isExpected(message)) {
      this.#stray += 1;
      if (this.#stray > MAX_STRAY) this.#fail("its output is not MCP");
      return;
    }
    if (this.#unasked.messages > MAX_UNASKED.messages)
      return this.#fail(`it sent more than ${MAX_UNASKED.messages} messages without being asked`);
    try {
      this.onmessage?.(message);
    } catch (thrown) {
      this.onerror?.(new Error(reasonOf(thrown)));
    }
  }

  /** An answer has to belong to an open request. */
  #isExpected(message: JSONRPCMessage): boolean {
    if ("method" in message) {
      this.#unasked.messages += 1;
      return true;
    }
    if (message.id === undefined || !this.#open.delete(message.id)) return false;
    this.#unasked = { messages: 0, bytes: 0 };
    return true;
  }
}

const TELLS = /error|exception|cannot|not found|no such|denied|fail/i;

/** The last line that names a cause, since some runtimes print more after it; else the last line. */
function lastWord(errors: string): string {
  const lines = errors.trim().split("\n");
  return (lines.findLast((line) => TELLS.test(line)) ?? lines.at(-1) ?? "").trim();
}

/** Input crafted to break the parser counts as no message either. */
function readMessage(line: string): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(JSON.parse(line));
  } catch {
    return undefined;
  }
}

export interface ProgramWords {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The workspace, or the user's home. */
  readonly folder: string;
}

/** Runs the server in the run's box, whose walls, limits and networks apply to it too. */
export const programInBox =
  (box: Box, { words, env, folder }: ProgramWords): StartProgram =>
  (onOutput) => {
    const input = new Input();
    const job = box.start({
      words,
      env,
      folder: path.resolve(box.workspace, folder),
      timeoutMs: 0,
      keep: { head: Number.MAX_SAFE_INTEGER, tail: 0 },
      input,
      onOutput,
    });
    const ended = job.result.then(
      (result): ProgramEnd => ({ by: "program", reason: endOf(result) }),
      (thrown: unknown): ProgramEnd => ({ by: "place", reason: reasonOf(thrown) }),
    );
    const gone = box.gone.then((reason): ProgramEnd => ({ by: "place", reason }));
    return {
      ended: Promise.race([ended, gone]),
      write: (bytes) => {
        if (!input.push(bytes)) job.kill();
      },
      kill: () => {
        input.end();
        job.kill();
      },
    };
  };

const endOf = ({ exit_code, reason }: ExecResult): string =>
  reason === "" || reason === `exit code ${exit_code}`
    ? `it ended by itself (exit code ${exit_code})`
    : `it ended: ${reason} (exit code ${exit_code})`;

/** How long a program on this machine may run after its input was closed. */
const GRACE_MS = 1000;

/** Runs the server on this machine, with only the given environment; never a server that a project named. */
export const programOnHost =
  ({ words: [file = "", ...args], env, folder }: ProgramWords): StartProgram =>
  (onOutput) => {
    const child = spawn(file, args, { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    const { promise: ended, resolve } = Promise.withResolvers<ProgramEnd>();
    child.once("error", (error) =>
      resolve({ by: "program", reason: `it cannot be started: ${error.message}` }),
    );
    // Processes that it started no longer serve anyone, and would hold its pipes open.
    child.once("exit", () => killGroup(child));
    withoutHeldPipes(child);
    child.once("close", (code, signal) => {
      resolve({ by: "program", reason: `it ended by itself (${signal ?? `exit code ${code}`})` });
    });
    child.stdin.on("error", () => undefined);
    void pumped(child.stdout, (bytes) => onOutput("stdout", bytes));
    void pumped(child.stderr, (bytes) => onOutput("stderr", bytes));
    return {
      ended,
      write: (bytes) => {
        child.stdin.write(bytes);
        if (child.stdin.writableLength > MAX_WAITING) killGroup(child);
      },
      kill: () => {
        child.stdin.end();
        const timer = setTimeout(() => killGroup(child), GRACE_MS);
        child.once("close", () => clearTimeout(timer));
      },
    };
  };

async function pumped(
  stream: NodeJS.ReadableStream,
  take: (bytes: Uint8Array) => Promise<void> | void,
): Promise<void> {
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) await take(chunk);
  } catch {
    // The program itself reports its end.
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is already gone.
  }
}

/** Data for a reader that may never read it. */
class Input implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #wake: () => void = () => undefined;

  /** Returns false if too much is waiting. */
  push(bytes: Uint8Array): boolean {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    this.#wake();
    return this.#bytes <= MAX_WAITING;
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.#bytes -= next.length;
        yield next;
      } else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Bytes of one answer; a longer event stream is broken off and reopened. */
const MAX_BODY = 16 * 2 ** 20;

/**
 * MCP over HTTP. Requests are judged like those of a box: only granted hosts are contacted, and no redirect is
 * followed, so headers go only where they were meant to.
 */
export function httpTransport(
  url: string,
  headers: Readonly<Record<string, string>>,
  requests: OwnRequests,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetchBy(withinBounds(requests)),
    requestInit: { headers: { ...headers, "accept-encoding": "identity" } },
  });
}

/** The client would follow some redirects by itself, and does not pass on the status of a refusal. */
const withinBounds = ({ send }: OwnRequests): OwnRequests => ({
  send: async (request, signal) => {
    const answer = await send(request, signal);
    if (answer.kind !== "answered") return answer;
    const reason = notServed(answer);
    if (reason === undefined) return { ...answer, body: limitBody(answer.body) };
    for await (const _ of answer.body) break;
    return { kind: "unreachable", reason };
  },
});

function notServed({
  status,
  headers,
}: Extract<OwnAnswer, { readonly kind: "answered" }>): string | undefined {
  if (status === 401 || status === 403)
    return `it refuses the request (HTTP ${status}); if it needs a key, put that into "headers"`;
  const [, place] = headers.find(([name]) => name === "location") ?? [];
  if (status < 300 || status > 399 || place === undefined) return undefined;
  return `it redirects to ${visibleLine(place)} (HTTP ${status}), which is not followed: if that is the right address, use it as the url`;
}

async function* limitBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let came = 0;
  for await (const bytes of body) {
    came += bytes.length;
    if (came > MAX_BODY) throw new Error(`the server's answer is larger than ${formatSize(MAX_BODY)}`);
    yield bytes;
  }
}

/** The options that a third-party client may pass to `fetch`. */
interface FetchInit {
  readonly method?: string;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: unknown;
  readonly signal?: AbortSignal | null;
}

/**
 * A `fetch` for such a client, over the harness's own network access. It follows no redirect and decompresses nothing.
 * If a host is not granted or not reachable, it rejects with the words of the gate.
 */
export const fetchBy =
  ({ send }: OwnRequests) =>
  async (url: string | URL, init: FetchInit = {}): Promise<Response> => {
    const { method = "GET", body = null, signal } = init;
    if (body !== null && typeof body !== "string" && !(body instanceof Uint8Array))
      throw new TypeError("only text or bytes can be sent as a body");
    const headers = Object.fromEntries(new Headers(init.headers).entries());
    const request = {
      url: String(url),
      method: method.toUpperCase(),
      headers,
      ...(body === null ? {} : { body }),
    };
    const answer = await send(request, signal ?? new AbortController().signal);
    signal?.throwIfAborted();
    if (answer.kind !== "answered") throw new Error(answer.reason);
    const { status } = answer;
    const received = new Headers(answer.headers.map(([name, value]): [string, string] => [name, value]));
    if (!BODILESS.has(status)) return new Response(streamOf(answer.body), { status, headers: received });
    for await (const _ of answer.body) break;
    return new Response(null, { status, headers: received });
  };

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

function streamOf(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  return new ReadableStream({
    pull: async (controller) => {
      const next: IteratorResult<Uint8Array, unknown> = await pieces.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: async () => {
      await pieces.return?.();
    },
  });
}

/** Offers tools over the Model Context Protocol. The host executes calls; this file only translates. */
import {
  type CallToolResult,
  CLIENT_INFO_META_KEY,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  Server,
  type ServerContext,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { JsonSchema } from "../core/model-provider.ts";
import type { ToolResult } from "../core/tool.ts";
import { visibleLine } from "../core/visible.ts";
import { messageLines, type MessageWire } from "./message-lines.ts";

export interface ServedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  /** Tells clients that the tool changes nothing; about other tools they ask their user. */
  readonly reads: boolean;
}

export interface OfferedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The caller's name for itself. */
  readonly client: string;
}

/** How a call ended, and its place in the session's record. */
export interface AnsweredCall {
  readonly result: ToolResult;
  readonly about: Readonly<Record<string, string>>;
}

export interface McpHost {
  readonly version: string;
  /** Told to the client's model about the server. */
  readonly instructions: string;
  readonly tools: readonly ServedTool[];
  readonly call: (call: OfferedCall, signal: AbortSignal) => Promise<AnsweredCall>;
}

export interface McpServing {
  /** Resolves when the client has left, or the connection was closed. */
  readonly closed: Promise<void>;
  readonly close: () => Promise<void>;
}

interface Timing {
  /**
   * The interval between progress messages of a call that requested them: clients give up after a minute of silence.
   */
  readonly progressMs: number;
}

/** Serves one client until it leaves. */
export function serveMcp(
  host: McpHost,
  wire: MessageWire,
  { progressMs }: Timing = { progressMs: 5000 },
): McpServing {
  const ended = Promise.withResolvers<void>();
  const transport = new LineTransport(wire, () => ended.resolve());
  const handle = serveStdio(() => serverOf(host, progressMs), { transport });
  return { closed: ended.promise, close: () => handle.close() };
}

function serverOf(host: McpHost, progressMs: number): Server {
  const { version, instructions } = host;
  const server = new Server(
    { name: "harness", title: "harness sandbox", version },
    { capabilities: { tools: {} }, instructions },
  );
  const tools = host.tools.map((tool) => toolEntry(tool));
  server.setRequestHandler("tools/list", () => Promise.resolve({ tools }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const client = clientOf(context, server);
    const { name, arguments: args = {} } = params;
    using _ = signsOfLife(context, name, progressMs);
    return resultOf(await host.call({ name, args, client }, context.mcpReq.signal));
  });
  return server;
}

const toolEntry = ({ name, description, schema, reads }: ServedTool): Tool => ({
  name,
  description,
  inputSchema: { ...schema, type: "object" },
  annotations: { readOnlyHint: reads, destructiveHint: !reads, openWorldHint: false },
});

const NAME_LENGTH = 60;

/** The client's own claim: for people only, nothing is decided by it. */
function clientOf(context: ServerContext, server: Server): string {
  const clientInfo: unknown = Reflect.get(context.mcpReq.envelope ?? {}, CLIENT_INFO_META_KEY);
  const { name, version } = nameAndVersion(clientInfo) ??
    nameAndVersion(server.getClientVersion()) ?? { name: "", version: "" };
  const text = visibleLine(`${name} ${version}`.trim());
  return text === "" ? "an unnamed client" : text.slice(0, NAME_LENGTH).toWellFormed();
}

function nameAndVersion(info: unknown): { readonly name: string; readonly version: string } | undefined {
  if (typeof info !== "object" || info === null) return undefined;
  const word = (key: string): string => {
    const value: unknown = Reflect.get(info, key);
    return typeof value === "string" ? value : "";
  };
  return { name: word("name"), version: word("version") };
}

/** The result of a call for clients and their models: every outcome but success is an error with its reason. */
function resultOf({ result, about }: AnsweredCall): CallToolResult {
  const { kind, text, full, exitCode } = result;
  const cause = "cause" in result ? { "harness/cause": result.cause } : {};
  return {
    content: [{ type: "text", text }],
    isError: kind !== "ok",
    _meta: {
      "harness/kind": kind,
      ...cause,
      ...(exitCode === undefined ? {} : { "harness/exit_code": exitCode }),
      ...(full === undefined ? {} : { "harness/full": full }),
      ...Object.fromEntries(Object.entries(about).map(([key, value]) => [`harness/${key}`, value])),
    },
  };
}

/** Sends progress of a long call to clients that want it. */
function signsOfLife({ mcpReq }: ServerContext, tool: string, ms: number): Disposable {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return { [Symbol.dispose]: () => undefined };
  const began = performance.now();
  const state = { busy: false };
  const timer = setInterval(() => {
    // A client that does not read gets no further messages.
    if (state.busy) return;
    state.busy = true;
    const progress = (performance.now() - began) / 1000;
    const message = `${visibleLine(tool)}: running for ${Math.round(progress)} s`;
    const params = { progressToken, progress, message };
    mcpReq
      .notify({ method: "notifications/progress", params })
      .catch(() => undefined)
      .finally(() => (state.busy = false));
  }, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Requests that may be open at once; further ones are refused immediately. */
const MAX_OPEN = 64;

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const BUSY = -32_000;

type Id = string | number;

/**
 * JSON-RPC, one message per line, over untrusted streams: an unreadable message is answered and skipped, the number of
 * open requests is limited, and nothing more is read while the client does not read its answers.
 */
class LineTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  readonly #wire: MessageWire;
  readonly #ended: () => void;
  readonly #open = new Set<Id>();
  #written: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(wire: MessageWire, ended: () => void) {
    this.#wire = wire;
    this.#ended = ended;
  }

  start(): Promise<void> {
    void this.#read().finally(() => void this.close());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if ("id" in message && !("method" in message) && message.id !== undefined) this.#open.delete(message.id);
    return this.#put(message);
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    this.#wire.input.destroy();
    this.onclose?.();
    this.#ended();
    return Promise.resolve();
  }

  async #read(): Promise<void> {
    for await (const line of messageLines(this.#wire.input)) {
      if (this.#closed) return;
      if (line.kind === "unreadable") await this.#refuse(null, PARSE_ERROR, `Parse error: ${line.why}`);
      else await this.#take(line.value);
      await this.#written;
    }
  }

  async #take(value: unknown): Promise<void> {
    const message = messageIn(value);
    if (message === undefined) return this.#refuse(idIn(value), INVALID_REQUEST, "Invalid Request");
    if ("method" in message && "id" in message) {
      const { id } = message;
      if (this.#open.has(id)) return this.#refuse(id, INVALID_REQUEST, "Invalid Request: this id is in use");
      // By then, requests with an immediate answer have been answered.
      if (this.#open.size >= MAX_OPEN) await new Promise((resolve) => void setImmediate(resolve));
      if (this.#open.size >= MAX_OPEN)
        return this.#refuse(id, BUSY, `Too many requests at once, at most ${MAX_OPEN}: not run`);
      this.#open.add(id);
    } else if ("method" in message && message.method === "notifications/cancelled") {
      const id: unknown = message.params?.["requestId"];
      if (typeof id === "string" || typeof id === "number") this.#open.delete(id);
    }
    this.onmessage?.(message);
  }

  #refuse(id: Id | null, code: number, message: string): Promise<void> {
    return this.#put({ jsonrpc: "2.0", id, error: { code, message } });
  }

  #put(message: object): Promise<void> {
    if (this.#closed) return Promise.resolve();
    const written = this.#wire.write(message);
    this.#written = Promise.all([this.#written, written.catch(() => undefined)]).then(() => undefined);
    return written;
  }
}

function messageIn(value: unknown): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(value);
  } catch {
    return undefined;
  }
}

function idIn(value: unknown): Id | null {
  const id: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "id") : undefined;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

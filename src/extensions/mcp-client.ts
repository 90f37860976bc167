/**
 * One MCP server of a run: connected, called, restarted when it dies, and given up if it dies too often; its answers
 * as text.
 */
import { setTimeout as pause } from "node:timers/promises";
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Transport,
} from "@modelcontextprotocol/client";
import * as z from "zod";
import { plural, formatDuration, formatSize } from "../core/wording.ts";
import { reasonOf } from "../core/errors.ts";
import { isDeeper } from "../core/raw-data.ts";
import type { ToolResult } from "../core/tool.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { unlessAborted } from "../platform/waits.ts";

/** A connection that is about to be made. */
export interface ServerLink {
  readonly transport: Transport;
  /**
   * Why the connection ended; `isPlace`: it ended together with the place it ran in, which is not the server's fault.
   */
  readonly end: () => { readonly reason: string; readonly isPlace: boolean };
}

interface McpServerParts {
  readonly name: string;
  /** The harness's version, as told to servers. */
  readonly version: string;
  /** Waits for the place in which the server runs; rejects if that is not available now. */
  readonly open: () => Promise<ServerLink>;
  readonly initMs: number;
  /** Why the server may be slow, and what would help. */
  readonly slow?: () => string;
  readonly callMs: number;
  /** Called when its tools have changed or are gone. */
  readonly changed: () => void;
  readonly notice: (text: string) => void;
  /** The delay before each restart; their number is the number of restarts. */
  readonly delays?: readonly number[];
}

type State = "idle" | "starting" | "up" | "waiting" | "given up" | "ended";

const DELAYS = [1000, 4000, 15_000];
/** Limits on the lists that a server can make us fetch and keep. */
const MAX_PAGES = 40;
const MAX_LISTED = 2000;
/**
 * After a change notice, a list is fetched again no sooner than this, and with growing delays if the notices continue.
 */
const RELIST_MS = 500;
const MAX_RELIST_MS = 60_000;

const page = z.looseObject({ nextCursor: z.string().max(10_000).optional() });
const anything = z.looseObject({});

export class McpServer implements AsyncDisposable {
  readonly name: string;
  readonly #parts: McpServerParts;
  readonly #delays: readonly number[];
  readonly #ending = new AbortController();
  #state: State = "idle";
  #client: Client | undefined;
  #starting: Promise<void> | undefined;
  #tools: readonly unknown[] = [];
  #tries = 0;
  #why = "it was not started";
  #hasNotified = false;
  #timer: NodeJS.Timeout | undefined;
  #relisting = false;
  #stale = false;

  constructor(parts: McpServerParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.#delays = parts.delays ?? DELAYS;
  }

  /** The tools as the server lists them; empty while it is down. */
  get tools(): readonly unknown[] {
    return this.#tools;
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  /** Why the server is down. */
  get why(): string {
    return this.#why;
  }

  offers(what: "resources" | "prompts"): boolean {
    return this.isUp && this.#client?.getServerCapabilities()?.[what] !== undefined;
  }

  /** Starts the server if it can be started; never rejects, and is limited in time. */
  async ready(): Promise<void> {
    if (this.#state === "idle") await this.#start();
    else await this.#starting;
  }

  /** Every possible end of a call is a value. */
  async call(tool: string, args: unknown, signal: AbortSignal): Promise<ToolResult> {
    return this.#request("tools/call", { name: tool, arguments: args }, signal);
  }

  /** For resources and prompts. */
  async ask(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    return this.#request(method, params, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = "ended";
    this.#ending.abort(new Error("the run has ended"));
    clearTimeout(this.#timer);
    this.#tools = [];
    await this.#client?.close().catch(() => undefined);
    await this.#starting;
  }

  #start(): Promise<void> {
    this.#state = "starting";
    this.#starting = this.#connect().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async #connect(): Promise<void> {
    const { open, initMs, slow, version } = this.#parts;
    let link: ServerLink;
    try {
      link = await unlessAborted(open(), this.#ending.signal);
    } catch (thrown) {
      return this.#goDown(reasonOf(thrown), true);
    }
    // Servers are offered nothing: requests for a model, a person or folders are refused.
    const client = new Client({ name: "harness", version }, { capabilities: {} });
    const tooLate = AbortSignal.timeout(initMs);
    const within = AbortSignal.any([tooLate, this.#ending.signal]);
    try {
      Object.assign(client, { onclose: () => this.#closed(client, link), onerror: ignore });
      client.setNotificationHandler("notifications/tools/list_changed", () => this.#relist(client));
      const listed = client
        .connect(link.transport, { signal: within, timeout: initMs })
        .then(() => listTools(client, { signal: within, timeout: initMs }));
      this.#tools = await unlessAborted(listed, within);
      if (this.#isEnded()) return await client.close();
      this.#client = client;
      this.#state = "up";
      if (this.#hasNotified) this.#parts.notice(`the MCP server ${this.name} is available again`);
      this.#hasNotified = false;
      this.#parts.changed();
      if (this.#stale) void this.#relist(client);
    } catch (thrown) {
      Object.assign(client, { onclose: ignore });
      const { reason, isPlace } = link.end();
      await client.close().catch(() => undefined);
      await link.transport.close().catch(() => undefined);
      this.#goDown(tooLate.aborted ? tooSlow(initMs, slow) : reason || wordsOfServer(thrown), isPlace);
    }
  }

  #isEnded(): boolean {
    return this.#state === "ended";
  }

  #closed(client: Client, link: ServerLink): void {
    if (this.#client !== client || this.#isEnded()) return;
    const { reason, isPlace } = link.end();
    this.#goDown(reason || "the connection was closed", isPlace);
  }

  /** An HTTP server has forgotten our session: it is up, and has to be initialized again after a delay. */
  #sessionLost(client: Client): void {
    Object.assign(client, { onclose: ignore });
    void client.close().catch(ignore);
    this.#goDown("it no longer knows its session", false);
  }

  /** A server that ended together with its box starts afresh in the next box, without penalty. */
  #goDown(why: string, isPlace: boolean): void {
    this.#client = undefined;
    this.#stale = false;
    const had = this.#tools.length > 0;
    this.#tools = [];
    this.#why = visibleLine(why);
    if (this.#isEnded()) return;
    if (isPlace) this.#state = "idle";
    else this.#restartLater();
    if (had) this.#parts.changed();
  }

  #restartLater(): void {
    const wait = this.#delays[this.#tries];
    this.#tries += 1;
    const gone = `the MCP server ${this.name} and its tools are not available: ${this.#why}`;
    if (wait === undefined) {
      this.#state = "given up";
      this.#parts.notice(
        `${gone}; no further attempt after ${plural(this.#tries, "start")}; see: harness mcp logs ${this.name}`,
      );
      return;
    }
    this.#state = "waiting";
    if (!this.#hasNotified) this.#parts.notice(`${gone}; it will be restarted in ${formatDuration(wait)}`);
    this.#hasNotified = true;
    this.#timer = setTimeout(() => void this.#start(), wait);
    this.#timer.unref();
  }

  /** Fetches one list at a time, with a pause after each; in the end the newest state has been fetched. */
  async #relist(client: Client): Promise<void> {
    this.#stale = true;
    if (this.#relisting) return;
    this.#relisting = true;
    try {
      for (let wait = RELIST_MS; this.#stale && this.#client === client; wait *= 2) {
        this.#stale = false;
        const tools = await listTools(client, { timeout: this.#parts.callMs });
        if (this.#client !== client) return;
        this.#tools = tools;
        this.#parts.changed();
        await pause(Math.min(wait, MAX_RELIST_MS), undefined, { ref: false });
      }
    } catch {
      // The previous list stays.
    } finally {
      this.#relisting = false;
      // The server that took the place of this one may have announced a change during the pause.
      const now = this.#client;
      if (this.#stale && now !== undefined && now !== client) void this.#relist(now);
    }
  }

  async #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    await this.ready();
    const client = this.#client;
    if (client === undefined) return serverGone(this.name, this.#why);
    const timeout = this.#parts.callMs;
    try {
      const options = { signal, timeout, maxTotalTimeout: timeout };
      return toolResult(await client.request({ method, params }, anything, options));
    } catch (thrown) {
      if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
      if (SdkError.isInstance(thrown) && thrown.code === SdkErrorCode.RequestTimeout) {
        const text = `${this.name} did not answer within ${formatDuration(timeout)}; the request was cancelled.`;
        return { kind: "timed_out", cause: "timeout", text };
      }
      if (this.#client === client && isSessionLost(thrown, client)) this.#sessionLost(client);
      if (this.#client !== client) return serverGone(this.name, this.#why);
      if (ProtocolError.isInstance(thrown))
        return { kind: "failed", cause: "program", text: `${this.name} refused: ${wordsOfServer(thrown)}` };
      return {
        kind: "failed",
        cause: "program",
        text: `${this.name} gave no answer: ${wordsOfServer(thrown)}`,
      };
    }
  }
}

const ignore = (): void => undefined;

/**
 * 404 is what the protocol specifies; restarted servers also answer 400. The request was not executed in either case.
 */
const isSessionLost = (thrown: unknown, { transport }: Client): boolean =>
  transport?.sessionId !== undefined &&
  SdkHttpError.isInstance(thrown) &&
  (thrown.status === 404 || thrown.status === 400);

const tooSlow = (ms: number, why: () => string = () => ""): string =>
  [`it was not ready within ${formatDuration(ms)}`, why()].filter((words) => words !== "").join(": ");

/** A server's words as one bounded line of visible characters. */
function wordsOfServer(thrown: unknown): string {
  const words = reasonOf(thrown);
  if (!SdkHttpError.isInstance(thrown)) return visibleLine(words);
  return visibleLine(`HTTP ${thrown.status}: ${words.replace(/^Error POSTing to endpoint: ?/, "")}`);
}

const serverGone = (name: string, why: string): ToolResult => ({
  kind: "failed",
  cause: "program",
  text: `The MCP server ${name} is not available: ${why}. Go on without it.`,
});

/** Fetches page by page, up to a bound; the rest is left out. */
async function listTools(
  client: Client,
  options: { readonly signal?: AbortSignal; readonly timeout: number },
): Promise<readonly unknown[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const found: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES && found.length < MAX_LISTED; pages += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const listed = await client.request({ method: "tools/list", params }, page, options);
    const { tools } = listed as { readonly tools?: unknown };
    if (!Array.isArray(tools)) throw new Error("its list of tools is not a list");
    found.push(...(tools as readonly unknown[]).slice(0, MAX_LISTED));
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return found.slice(0, MAX_LISTED);
}

/**
 * A server's answer as text for the model. It is untrusted: parts that are not text are named but not passed on,
 * invisible characters are made visible, and everything is bounded. The caller may shorten it further.
 */

/** UTF-16 units of all parts together. */
const MAX_TEXT = 512 * 1024;
const MAX_PARTS = 200;
/** Values nested deeper are not written out. */
const MAX_DEPTH = 64;
const MAX_INDENTED = 64 * 1024;

const text = z.string();
const answer = z.looseObject({
  content: z.array(z.unknown()).optional(),
  contents: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});

export function toolResult(result: unknown): ToolResult {
  const read = answer.safeParse(result);
  if (!read.success)
    return { kind: "failed", cause: "program", text: "The server's answer is not a valid MCP result." };
  const { isError } = read.data;
  const sent = linesOf(read.data).join("\n");
  // Making characters visible takes time, and only adds to the length.
  const whole = visible(sent.slice(0, MAX_TEXT + 1).toWellFormed());
  const shown = whole.length > MAX_TEXT ? `${whole.slice(0, MAX_TEXT)}\n[the rest is left out]` : whole;
  if (isError === true)
    return { kind: "failed", cause: "program", text: shown || "It failed without a message." };
  return { kind: "ok", text: shown || "(nothing)" };
}

function linesOf(result: z.infer<typeof answer>): readonly string[] {
  const { content, contents, structuredContent: value } = result;
  const parts = content ?? contents;
  if (parts === undefined && value === undefined) return [json(result)];
  const lines = (parts ?? []).slice(0, MAX_PARTS).map(partText);
  if (value !== undefined && value !== null && !repeats(lines, value)) lines.push(json(value));
  const left = (parts ?? []).length - MAX_PARTS;
  return left > 0 ? [...lines, `[${left} further parts are left out]`] : lines;
}

const contentPart = z.union([
  z.looseObject({ type: z.literal("text"), text }),
  z.looseObject({ type: z.enum(["image", "audio"]), data: text, mimeType: text.optional() }),
  z.looseObject({ type: z.literal("resource"), resource: z.looseObject({}) }),
  z.looseObject({ type: z.literal("resource_link"), uri: text, name: text.optional() }),
]);
const textResource = z.looseObject({ uri: text, text });
const blobResource = z.looseObject({ uri: text, blob: text, mimeType: text.optional() });

function partText(part: unknown): string {
  const read = contentPart.safeParse(part);
  if (!read.success) return resourceText(part) ?? "[a part of an unknown kind]";
  const found = read.data;
  switch (found.type) {
    case "text":
      return found.text;
    case "image":
    case "audio":
      return `[${found.type} ${visibleLine(found.mimeType ?? "")}, ${sizeOf(found.data)}: not passed on]`;
    case "resource":
      return resourceText(found.resource) ?? "[a resource that cannot be read]";
    case "resource_link":
      return `[resource ${visibleLine(found.uri)} ${visibleLine(found.name ?? "")}]`;
  }
}

function resourceText(part: unknown): string | undefined {
  const written = textResource.safeParse(part);
  if (written.success) return `[${visibleLine(written.data.uri)}]\n${written.data.text}`;
  const blob = blobResource.safeParse(part);
  if (!blob.success) return undefined;
  const { uri, mimeType = "", blob: data } = blob.data;
  return `[${visibleLine(uri)} ${visibleLine(mimeType)}, ${sizeOf(data)}: not passed on]`;
}

/** The size of Base64 data. */
const sizeOf = (data: string): string => formatSize(Math.floor((data.length * 3) / 4));

/**
 * Servers also send structured content as text, for clients that know nothing else: as the whole value, as the only
 * value in it, or, if that is a list, perhaps with each item on its own.
 */
function repeats(lines: readonly string[], value: unknown): boolean {
  if (isDeeper(value, MAX_DEPTH)) return false;
  const inner: readonly unknown[] = typeof value === "object" && value !== null ? Object.values(value) : [];
  const [only] = inner.length === 1 ? inner : [];
  if (only === lines.join("\n")) return true;
  const jsonLines = lines.map(asJson);
  const wholes = new Set<string | undefined>([value, only].map((each) => JSON.stringify(each)));
  if (jsonLines.some((line) => line !== undefined && wholes.has(line))) return true;
  const items: readonly unknown[] = Array.isArray(only) ? only : [];
  const each = items.length === lines.length ? items : [];
  return (
    each.length > 0 && each.every((item, at) => item === lines[at] || JSON.stringify(item) === jsonLines[at])
  );
}

/** Normalized for comparison; undefined if the line is not JSON. */
function asJson(line: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** Indented if it is short enough to be read. */
function json(value: unknown): string {
  if (isDeeper(value, MAX_DEPTH)) return "[a value that is nested too deep]";
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_INDENTED ? text : JSON.stringify(value, null, 1);
}

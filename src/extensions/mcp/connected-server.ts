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
import { formatDuration } from "../../core/text/bounds.ts";
import { reasonOf } from "../../core/errors.ts";
import { counted } from "../../core/text/short-lists.ts";
import type { ToolResult } from "../../core/tool.ts";
import { visibleLine } from "../../core/text/visible.ts";
import { unlessAborted } from "../../platform/cancelled.ts";
import { toolResult } from "./result-text.ts";

/** One server of a run: connected, asked, started again when it dies, and given up when it does so too often. */

/** A connection that is about to be made. */
export interface ServerLink {
  readonly transport: Transport;
  /** Why it is no more; `isPlace`: it went with what it was in, and is no worse for that. */
  readonly end: () => { readonly reason: string; readonly isPlace: boolean };
}

export interface McpServerParts {
  readonly name: string;
  /** Of the harness, as servers are told. */
  readonly version: string;
  /** Waits for what it runs in; rejects where that cannot be had now. */
  readonly open: () => Promise<ServerLink>;
  readonly initMs: number;
  /** Why it may be slow, and what would help. */
  readonly slow?: () => string;
  readonly callMs: number;
  /** Its tools are others, or gone. */
  readonly changed: () => void;
  readonly notice: (text: string) => void;
  /** Before each further start; how many there are is how often it is tried. */
  readonly delays?: readonly number[];
}

type State = "idle" | "starting" | "up" | "waiting" | "given up" | "ended";

const DELAYS = [1000, 4000, 15_000];
/** Of lists: what a server may make us ask for, and keep. */
const MOST_PAGES = 40;
const MOST_LISTED = 2000;
/** A list that is said to have changed is asked for again no sooner than this, and ever later while it goes on. */
const RELIST_MS = 500;
const RELIST_MOST_MS = 60_000;

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
  #told = false;
  #timer: NodeJS.Timeout | undefined;
  #relisting = false;
  #stale = false;

  constructor(parts: McpServerParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.#delays = parts.delays ?? DELAYS;
  }

  /** As it lists them; nothing while it is not there. */
  get tools(): readonly unknown[] {
    return this.#tools;
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  /** Why it is not there. */
  get why(): string {
    return this.#why;
  }

  offers(what: "resources" | "prompts"): boolean {
    return this.isUp && this.#client?.getServerCapabilities()?.[what] !== undefined;
  }

  /** Starts it where nothing speaks against it; never rejects, and takes no longer than it may. */
  async ready(): Promise<void> {
    if (this.#state === "idle") await this.#start();
    else await this.#starting;
  }

  /** Every way a call can end is a value. */
  async call(tool: string, args: unknown, signal: AbortSignal): Promise<ToolResult> {
    return this.#asked("tools/call", { name: tool, arguments: args }, signal);
  }

  /** Resources and prompts. */
  async ask(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    return this.#asked(method, params, signal);
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
      return this.#down(reasonOf(thrown), true);
    }
    // Nothing of ours is offered to a server: what it asks for (a model, a person, folders) is refused.
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
      if (this.#told) this.#parts.notice(`the MCP server ${this.name} is there again`);
      this.#told = false;
      this.#parts.changed();
      if (this.#stale) void this.#relist(client);
    } catch (thrown) {
      Object.assign(client, { onclose: ignore });
      const { reason, isPlace } = link.end();
      await client.close().catch(() => undefined);
      await link.transport.close().catch(() => undefined);
      this.#down(tooLate.aborted ? tooSlow(initMs, slow) : reason || saidBy(thrown), isPlace);
    }
  }

  #isEnded(): boolean {
    return this.#state === "ended";
  }

  #closed(client: Client, link: ServerLink): void {
    if (this.#client !== client || this.#isEnded()) return;
    const { reason, isPlace } = link.end();
    this.#down(reason || "the connection was closed", isPlace);
  }

  /** A server of HTTP knows nothing of us any more: it is there, and has to be greeted anew, not at once. */
  #lost(client: Client): void {
    Object.assign(client, { onclose: ignore });
    void client.close().catch(ignore);
    this.#down("it has forgotten its session", false);
  }

  /** What went with its box is started in the next one, as if nothing had been. */
  #down(why: string, isPlace: boolean): void {
    this.#client = undefined;
    this.#stale = false;
    const had = this.#tools.length > 0;
    this.#tools = [];
    this.#why = visibleLine(why);
    if (this.#isEnded()) return;
    if (isPlace) this.#state = "idle";
    else this.#again();
    if (had) this.#parts.changed();
  }

  #again(): void {
    const wait = this.#delays[this.#tries];
    this.#tries += 1;
    const gone = `the MCP server ${this.name} is not there, and its tools are missing: ${this.#why}`;
    if (wait === undefined) {
      this.#state = "given up";
      this.#parts.notice(
        `${gone}; it is given up after ${counted(this.#tries, "start")}: harness mcp logs ${this.name}`,
      );
      return;
    }
    this.#state = "waiting";
    if (!this.#told) this.#parts.notice(`${gone}; it is started again in ${formatDuration(wait)}`);
    this.#told = true;
    this.#timer = setTimeout(() => void this.#start(), wait);
    this.#timer.unref();
  }

  /** One list at a time, and none sooner than a while after the last: the newest state is asked for in the end. */
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
        await pause(Math.min(wait, RELIST_MOST_MS), undefined, { ref: false });
      }
    } catch {
      // The list that was there stays.
    } finally {
      this.#relisting = false;
    }
  }

  async #asked(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    await this.ready();
    const client = this.#client;
    if (client === undefined) return gone(this.name, this.#why);
    const timeout = this.#parts.callMs;
    try {
      const options = { signal, timeout, maxTotalTimeout: timeout };
      return toolResult(await client.request({ method, params }, anything, options));
    } catch (thrown) {
      if (signal.aborted) return { kind: "cancelled", cause: "user", text: "Cancelled." };
      if (SdkError.isInstance(thrown) && thrown.code === SdkErrorCode.RequestTimeout) {
        const text = `${this.name} did not answer within ${formatDuration(timeout)}, and was told to stop.`;
        return { kind: "timed_out", cause: "timeout", text };
      }
      if (this.#client === client && isSessionLost(thrown, client)) this.#lost(client);
      if (this.#client !== client) return gone(this.name, this.#why);
      if (ProtocolError.isInstance(thrown))
        return { kind: "failed", cause: "program", text: `${this.name} refused: ${saidBy(thrown)}` };
      return { kind: "failed", cause: "program", text: `${this.name} gave no answer: ${saidBy(thrown)}` };
    }
  }
}

const ignore = (): void => undefined;

/** 404 is the protocol's word for it; servers that were started anew say 400, too. Nothing was run then. */
const isSessionLost = (thrown: unknown, { transport }: Client): boolean =>
  transport?.sessionId !== undefined &&
  SdkHttpError.isInstance(thrown) &&
  (thrown.status === 404 || thrown.status === 400);

const tooSlow = (ms: number, why: () => string = () => ""): string =>
  [`it was not ready within ${formatDuration(ms)}`, why()].filter((words) => words !== "").join(": ");

/** Words of a server, as one bounded line. */
const saidBy = (thrown: unknown): string => visibleLine(reasonOf(thrown));

const gone = (name: string, why: string): ToolResult => ({
  kind: "failed",
  cause: "program",
  text: `The MCP server ${name} is not there: ${why}. Do without it.`,
});

/** Page by page, up to a bound: what is behind it is left out. */
async function listTools(
  client: Client,
  options: { readonly signal?: AbortSignal; readonly timeout: number },
): Promise<readonly unknown[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const found: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES && found.length < MOST_LISTED; pages += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const listed = await client.request({ method: "tools/list", params }, page, options);
    const { tools } = listed as { readonly tools?: unknown };
    if (!Array.isArray(tools)) throw new Error("its list of tools is no list");
    found.push(...(tools as readonly unknown[]).slice(0, MOST_LISTED));
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return found.slice(0, MOST_LISTED);
}

import type { RequestEnd } from "../../agent/agent-run.ts";
import { readCall } from "../../agent/call.ts";
import { NOTICE } from "../../agent/history.ts";
import { CanaryTouched } from "../../core/errors.ts";
import { type AnyTool, NO_EXTENSIONS, type ToolResult } from "../../core/tool.ts";
import type { Box } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { AnsweredCall, OfferedCall } from "../../extensions/mcp-server.ts";
import { configuredHooks } from "../extensions/open-extensions.ts";
import { runIndex, type RunIndex } from "../search/run-index.ts";
import { newSession, openSessions } from "../sessions/session-access.ts";
import { holdSession } from "../sessions/session-hold.ts";
import { sessionPrompt } from "../run/session-prompt.ts";
import { type SessionState, sessionState } from "../run/session-state.ts";
import { ServedRun, type ServedRunParts, taskOf } from "./served-run.ts";
import { servedOf } from "./served-tools.ts";

type SessionParts = Omit<ServedRunParts, "store" | "session" | "state" | "client" | "resumed" | "signal">;

interface OpenSession {
  readonly store: SessionStore;
  readonly session: Session;
  readonly state: SessionState;
  readonly tools: readonly AnyTool[];
  readonly index: RunIndex;
  readonly client: string;
  readonly held: AsyncDisposable;
}

/**
 * The calls of one client: one session, created by the first call, with one run for each box. A lost box ends its run;
 * the next call begins another one.
 */
export class ServedSession {
  readonly #parts: SessionParts;
  readonly #queue = new CallQueue();
  readonly #ending = new AbortController();
  #opened: Promise<OpenSession> | undefined;
  #run: Promise<ServedRun> | undefined;
  #runs = 0;
  #calls = 0;
  /** Why no more calls are run. */
  #closed: string | undefined;
  readonly #broken = Promise.withResolvers<never>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#broken.promise.catch(() => undefined);
  }

  /** Rejects when something cannot be recorded: after that, nothing more is run. */
  get broken(): Promise<never> {
    return this.#broken.promise;
  }

  async call({ name, args, client }: OfferedCall, signal: AbortSignal): Promise<AnsweredCall> {
    if (this.#closed !== undefined) return { result: refused(this.#closed), about: {} };
    if (this.#queue.full) return { result: BUSY, about: {} };
    this.#calls += 1;
    const id = `mcp-${this.#calls}`;
    try {
      const open = await (this.#opened ??= this.#open(client));
      const about = { session: open.session.id, call: id };
      const read = readCall(open, { id, name, args });
      const either = AbortSignal.any([signal, this.#ending.signal]);
      const result = await this.#queue.run(read.concurrent, either, async () => {
        if (this.#closed !== undefined) return refused(this.#closed);
        const run = await this.#runFor(open);
        const ended = await run.call(read, either);
        if (run.over) await this.#leave(run);
        return ended;
      });
      return { result: result === "cancelled" ? CANCELLED : result, about };
    } catch (thrown) {
      this.#closed ??= "what was done could not be recorded";
      this.#broken.reject(thrown);
      throw thrown;
    }
  }

  /** Ends the running calls, then the session; the box is gone when this resolves. */
  async end(how: RequestEnd = { how: "served" }): Promise<void> {
    this.#closed ??= "the server is ending";
    this.#ending.abort(new Error("the client has left"));
    await this.#queue.idle();
    const open = await this.#opened?.catch(() => undefined);
    if (open === undefined) return;
    using _ = open.store;
    await using _held = open.held;
    const run = await this.#run?.catch(() => undefined);
    await open.index[Symbol.asyncDispose]();
    await run?.end(how);
  }

  async #open(client: string): Promise<OpenSession> {
    const { host, settings, origins, workspace, warn } = this.#parts;
    const store = openSessions(host, warn);
    const task = taskOf(client);
    const about = { mode: settings.mode, provider: "mcp", chat_model: client };
    const session = newSession(store, about, { workspace, prompt: task });
    const held = await holdSession(host, session.id);
    const box = async (): Promise<Box> => (await this.#run)?.box() ?? Promise.reject(new Error("no run yet"));
    const index = runIndex({ host, settings: () => settings, origins, workspace, session: session.id, box });
    // For a later continuation of the session here; the client has a prompt of its own.
    const { text: prompt } = await sessionPrompt(host, settings, workspace);
    const timeoutMs = settings.timeout;
    // Tools that users add are only for their own runs: a client has its own servers, and must not use the keys of
    // these tools. Hooks watch the client's calls, too.
    const parts = { host, settings, workspace, session: session.id, box };
    const extensions = (await configuredHooks(parts)) ?? NO_EXTENSIONS;
    const state = sessionState({ session, store, workspace, timeoutMs, prompt, index, extensions });
    session.append({
      kind: "message",
      message: { role: "user", text: `${NOTICE}${task}: its calls follow.` },
    });
    return { store, session, state, tools: servedOf(state.tools), index, client, held };
  }

  async #runFor(open: OpenSession): Promise<ServedRun> {
    const current = await this.#run;
    if (current?.over === true) await this.#leave(current);
    return (this.#run ??= this.#begin(open));
  }

  #begin({ store, session, state, client }: OpenSession): Promise<ServedRun> {
    const resumed = this.#runs > 0;
    this.#runs += 1;
    const { signal } = this.#ending;
    return ServedRun.begin({ ...this.#parts, store, session, state, client, resumed, signal });
  }

  /** A client that touched a canary gets no other box. */
  async #leave(run: ServedRun): Promise<void> {
    const { why } = run;
    if (why instanceof CanaryTouched) this.#closed ??= why.message;
    await run.end();
    if ((await this.#run) === run) this.#run = undefined;
  }
}

const refused = (why: string): ToolResult => ({
  kind: "denied",
  cause: "policy",
  text: `It was not run: ${why}.`,
});

const BUSY: ToolResult = {
  kind: "failed",
  cause: "program",
  text: "It was not run: too many calls wait already. Call again when some of them have ended.",
};

const CANCELLED: ToolResult = { kind: "cancelled", cause: "user", text: "Cancelled before its turn." };

/** The most calls that may wait; further calls are refused. */
const MAX_WAITING = 64;

interface Waiting {
  readonly concurrent: boolean;
  readonly begin: () => void;
}

/**
 * The order in which calls from outside are run, as for the calls of one reply: read-only calls run side by side, every
 * other call alone, all in the order of their arrival.
 */
export class CallQueue {
  readonly #waiting: Waiting[] = [];
  #concurrent = 0;
  #alone = false;

  get full(): boolean {
    return this.#waiting.length >= MAX_WAITING;
  }

  /** "cancelled": the call was given up before its turn. */
  async run<T>(concurrent: boolean, signal: AbortSignal, work: () => Promise<T>): Promise<T | "cancelled"> {
    if (!(await this.#turn(concurrent, signal))) return "cancelled";
    try {
      return await work();
    } finally {
      if (concurrent) this.#concurrent -= 1;
      else this.#alone = false;
      this.#next();
    }
  }

  /** Resolves when no earlier call runs or waits any more. */
  async idle(): Promise<void> {
    await this.run(false, new AbortController().signal, () => Promise.resolve());
  }

  #turn(concurrent: boolean, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const leave = (): void => {
        const at = this.#waiting.indexOf(own);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        resolve(false);
        this.#next();
      };
      const own: Waiting = {
        concurrent,
        begin: () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        },
      };
      this.#waiting.push(own);
      signal.addEventListener("abort", leave, { once: true });
      this.#next();
    });
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || this.#alone || (!first.concurrent && this.#concurrent > 0)) return;
      this.#waiting.shift();
      if (first.concurrent) this.#concurrent += 1;
      else this.#alone = true;
      first.begin();
    }
  }
}

import type { AgentContext } from "../agent/agent-context.ts";
import { finish, type RequestEnd, type RunRequest } from "../agent/agent-run.ts";
import { unattended } from "../agent/approvers.ts";
import { cutOff, type ReadCall, runCall } from "../agent/call.ts";
import { endUnrun } from "../agent/call-result.ts";
import { Deeds } from "../agent/ending/deeds.ts";
import { WaitsForPerson } from "../agent/ending/outcome.ts";
import { Guard, Limits } from "../agent/limits.ts";
import { boxLost } from "../agent/loop.ts";
import { type EndedCall, lastStep } from "../core/session.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Capabilities, Provider } from "../core/model-provider.ts";
import type { Box } from "../core/ports.ts";
import { maskSecrets } from "../core/secrets.ts";
import type { ToolResult } from "../core/tool.ts";
import { NO_USAGE } from "../models/token-usage.ts";
import { unlessAborted } from "../platform/waits.ts";
import { checkpointsFor } from "./sessions/checkpoint-access.ts";
import { untrustedIn } from "./project/project-trust.ts";
import { agentBox } from "./run/agent-box.ts";
import {
  agentContext,
  type AskedModel,
  openEvents,
  type OpenSession,
  type SessionParts,
} from "./run/composition.ts";
import { runRenderer, untrustedNotice } from "./run/event-sink.ts";
import type { LazyBox } from "./run/lazy-box.ts";

export interface ServedRunParts extends SessionParts, Pick<OpenSession, "state"> {
  readonly runtime: string | null;
  readonly quiet: boolean;
  /** The client, by the name that it gives itself. */
  readonly client: string;
  /** Fires when everything ends. */
  readonly signal: AbortSignal;
}

/** How many refusals the end of a run lists. The others are in its events and its audit. */
const MAX_LISTED = 1000;

/**
 * The work of another agent in one box, from its first call until it leaves or the box is lost: a run like any other,
 * whose calls come from outside.
 */
export class ServedRun {
  readonly #parts: ServedRunParts;
  readonly #agent: AgentContext;
  readonly #box: LazyBox;
  readonly #opened: AsyncDisposableStack;
  readonly #refused: EndedCall[] = [];
  readonly #running = new Set<Promise<unknown>>();
  #ending: Promise<void> | undefined;

  private constructor(
    parts: ServedRunParts,
    own: {
      readonly agent: AgentContext;
      readonly box: LazyBox;
      readonly opened: AsyncDisposableStack;
    },
  ) {
    this.#parts = parts;
    this.#agent = own.agent;
    this.#box = own.box;
    this.#opened = own.opened;
  }

  /** The box starts with the first call that needs one. */
  static async begin(parts: ServedRunParts): Promise<ServedRun> {
    const { settings, quiet, host, workspace, session, warn } = parts;
    const show = runRenderer({
      json: false,
      quiet,
      changes: settings.isolation === "bind" ? "here" : "waiting",
    });
    await using opened = new AsyncDisposableStack();
    const events = opened.use(await openEvents(parts, show));
    const { emit } = events;
    const untrusted = await untrustedIn(host, workspace);
    // Disposed of after the box, because commands may write until the box is gone.
    const since = lastStep(session.steps);
    const checkpoints = opened.use(await checkpointsFor({ ...parts, since, emit }));
    const opening = { ...parts, keep: session.id };
    const box = opened.use(agentBox(() => opening, emit, { remedy: REMEDY, warn }));
    const agent = await agentContext({
      ...parts,
      sink: events,
      checkpoints,
      box,
      model: NO_MODEL,
      limits: new Limits({}, () => performance.now()),
      approver: unattended(settings.on_ask),
    });
    agent.intent.begin("change");
    events.begin([startOf(parts), ...untrustedNotice(untrusted)]);
    return new ServedRun(parts, { agent, box, opened: opened.move() });
  }

  /** The run is over: its box is lost, or a canary was touched. */
  get over(): boolean {
    return this.#box.noBox.aborted;
  }

  get why(): unknown {
    const reason: unknown = this.#box.noBox.reason;
    return reason;
  }

  readonly box = (): Promise<Box> => this.#agent.box();

  /**
   * Makes one call through the same gate as the calls of our own models. Rejects only if the call cannot be recorded.
   */
  async call(read: ReadCall, signal: AbortSignal): Promise<ToolResult> {
    const work = this.#called(read, signal);
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  async #called(read: ReadCall, cancelled: AbortSignal): Promise<ToolResult> {
    const { call } = read;
    const { noBox } = this.#agent;
    const signal = AbortSignal.any([cancelled, this.#parts.signal, noBox]);
    const own = this.#agentOf(signal);
    own.limits.turn();
    own.emit({ type: "call.proposed", call: call.id, tool: call.name, args: call.args });
    const result = await this.#ran(own, read, signal);
    for (const each of own.ended)
      if (each.refused && this.#refused.length < MAX_LISTED) this.#refused.push(each);
    this.#remember(read, result);
    return result;
  }

  async #ran(own: AgentContext, read: ReadCall, signal: AbortSignal): Promise<ToolResult> {
    try {
      const result = await runCall(own, read, signal);
      if (result === "stop" || result instanceof WaitsForPerson)
        throw new Error("nobody is there to be waited for");
      if (!this.over || result.kind !== "cancelled") return result;
      return { ...result, kind: "failed", cause: "program", text: this.#lost() };
    } catch (thrown) {
      if (!(thrown instanceof HarnessError) || thrown.exit !== EXIT.sandbox) {
        if (!signal.aborted) throw thrown;
        return endUnrun(own, read.call, cutOff(signal));
      }
      return endUnrun(own, read.call, { kind: "failed", cause: "program", text: this.#lost(thrown) });
    }
  }

  #lost(thrown: unknown = this.why): string {
    const { reason } = boxLost(thrown);
    return `There is no result: ${reason}`;
  }

  /**
   * The context of one call, without state that grows from call to call, because a served session has no end of its
   * own. Repeated calls and circles are left to the client's own harness. Results may leave this machine, so they are
   * masked.
   */
  #agentOf(signal: AbortSignal): AgentContext {
    const box = (): Promise<Box> => unlessAborted(this.#box.box(), signal);
    return {
      ...this.#agent,
      box,
      guard: new Guard(),
      deeds: new Deeds(),
      ended: [],
      onceParked: [],
      clean: maskSecrets,
    };
  }

  /** Keeps the call for whoever reads or continues the session later; not in memory. */
  #remember({ call }: ReadCall, { text }: ToolResult): void {
    const { session } = this.#parts;
    session.append({ kind: "message", message: { role: "assistant", text: "", calls: [call] } });
    session.append({ kind: "message", message: { role: "tool", call: call.id, text } });
  }

  /** Ends the run once, when no call is in progress any more. */
  end(how: RequestEnd = boxLost(this.why)): Promise<void> {
    return (this.#ending ??= this.#end(how));
  }

  async #end(how: RequestEnd): Promise<void> {
    await Promise.allSettled(this.#running);
    await using _ = this.#opened;
    const { session, workspace, signal } = this.#parts;
    const request: RunRequest = {
      prompt: "",
      strict: false,
      session: session.id,
      changes: (last) => this.#box.changes(this.#agent.checkpoints, signal, last),
      record: (each) => session.append(each),
      leave: () => this.#box.finish(false),
      workspace,
    };
    await finish({ ...this.#agent, ended: this.#refused }, request, how);
  }
}

export const taskOf = (client: string): string => `Served over MCP to ${client}`;

const startOf = ({ settings, session, resumed, workspace, client }: ServedRunParts) =>
  ({
    type: "run.started",
    task: taskOf(client),
    session: session.id,
    resumed,
    workspace,
    mode: settings.mode,
    provider: "mcp",
    model: client,
    ...(settings.allow_domains.length === 0 ? {} : { granted: settings.allow_domains }),
  }) as const;

const REMEDY = "call again: a new box starts";

/** There is no provider: the model is the client's. */
const NO_PROVIDER: Provider = {
  stream: async function* stream() {
    yield { type: "failed", failure: { kind: "no_model", reason: "no model", remedy: "" }, usage: NO_USAGE };
  },
  capabilities: () => Promise.resolve(NO_CAPABILITIES),
};

const NO_CAPABILITIES: Capabilities = {
  context: 32_768,
  tools: true,
  calls: "native",
  thinking: false,
  cache: false,
  origin: { context: "guess", tools: "guess", calls: "guess", thinking: "guess", cache: "guess" },
};

/** It is unknown which model calls the tools. */
const NO_MODEL: AskedModel = {
  name: "",
  isServed: false,
  isWeak: () => false,
  fewBy: () => undefined,
  provider: NO_PROVIDER,
  capabilities: Promise.resolve(NO_CAPABILITIES),
};

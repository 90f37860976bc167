import { PlainAnswer } from "../../src/agent/ending/outcome.ts";
import { unattended } from "../../src/agent/approvers.ts";
import { Compactor, type CompactorOptions } from "../../src/agent/context/compaction.ts";
import { PromptSize } from "../../src/agent/context/history.ts";
import { Guard, Limits, Malformed, Spent } from "../../src/agent/limits.ts";
import { judgeIn } from "../../src/agent/action-judge.ts";
import { Deeds } from "../../src/agent/ending/deeds.ts";
import { NextReply } from "../../src/agent/next-reply.ts";
import { RunIntent } from "../../src/agent/ending/intent.ts";
import { WriteOrder } from "../../src/agent/background-tasks.ts";
import { Memory } from "../../src/agent/context/memory.ts";
import type { AgentContext } from "../../src/agent/agent-context.ts";
import { NO_CHECKPOINTS, type SessionRecord } from "../../src/core/session.ts";
import type { EventBody } from "../../src/core/events.ts";
import { type AnyTool, NO_HOOKS } from "../../src/core/tool.ts";
import type {
  Capabilities,
  FailureKind,
  MalformedCall,
  ModelRequest,
  Provider,
  ProviderEvent,
  Stop,
  ToolCall,
} from "../../src/core/model-provider.ts";
import type { Box } from "../../src/core/ports.ts";
import { fakeBox } from "./box.ts";
import { memoryOutputs } from "./tool-context.ts";

/** One reply of a model. */
export interface Line {
  readonly text?: string;
  readonly calls?: readonly (readonly [name: string, args: Readonly<Record<string, unknown>>])[];
  readonly malformed?: readonly MalformedCall[];
  readonly stop?: Stop;
  readonly fails?: FailureKind;
  /** Runs before the reply: a person cancels, a box is lost. */
  readonly before?: () => void | Promise<unknown>;
}

const USAGE = { requests: 1, prompt_tokens: 100, completion_tokens: 10, cached_tokens: null, cost: null };
const CAPABILITIES: Capabilities = {
  context: 32_768,
  tools: true,
  calls: "native",
  thinking: false,
  cache: false,
  origin: { context: "server", tools: "server", calls: "server", thinking: "server", cache: "server" },
};

/** Replies with the asking agent's lines one after the other, then only "done"; all agents share one model. */
export function linesProvider(
  lines: readonly Line[] | ((request: ModelRequest) => readonly Line[]),
): Provider & { readonly asked: readonly ModelRequest[] } {
  const asked: ModelRequest[] = [];
  const counts = new Map<readonly Line[], number>();
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ProviderEvent> {
    const own = typeof lines === "function" ? lines(request) : lines;
    const nth = counts.get(own) ?? 0;
    counts.set(own, nth + 1);
    const {
      text = "",
      calls = [],
      malformed = [],
      stop = "end",
      fails,
      before,
    } = own[nth] ?? {
      text: "done",
    };
    asked.push(request);
    const number = asked.length;
    const waits = before?.();
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve(), { once: true });
    await (signal.aborted ? undefined : Promise.race([waits, aborted]));
    const failed = signal.aborted ? "cancelled" : fails;
    if (failed !== undefined) {
      yield { type: "failed", failure: { kind: failed, reason: failed, remedy: "" }, usage: USAGE };
      return;
    }
    if (text !== "") yield { type: "text", text };
    const made = calls.map(([name, args], at): ToolCall => ({ id: `c${number}.${at}`, name, args }));
    const message = { role: "assistant" as const, text, calls: made };
    yield { type: "finished", message, malformed, usage: USAGE, stop, notes: [] };
  }
  return { asked, stream, capabilities: () => Promise.resolve(CAPABILITIES) };
}

export interface FakeAgent extends AgentContext {
  readonly events: readonly EventBody[];
  readonly records: readonly SessionRecord[];
  readonly asked: readonly ModelRequest[];
  readonly loseBox: (reason: Error) => void;
  readonly memory: Memory;
}

interface AgentOptions {
  readonly lines: readonly Line[];
  readonly tools: readonly AnyTool[];
  readonly over?: Partial<AgentContext>;
  readonly box?: Box;
  readonly window?: Partial<CompactorOptions>;
  /** Records of an earlier process. */
  readonly earlier?: readonly SessionRecord[];
}

/** An agent over an in-memory box, with all its tools. */
export function fakeAgent({
  lines,
  tools,
  over = {},
  box = fakeBox(),
  window = {},
  earlier = [],
}: AgentOptions): FakeAgent {
  const events: EventBody[] = [];
  const records: SessionRecord[] = [];
  const provider = linesProvider(lines);
  records.push(...earlier);
  const memory = new Memory(box.workspace, earlier, (record) => void records.push(record), { open: "come" });
  memory.history.pin("the system prompt");
  const noBox = new AbortController();
  const size = new PromptSize("fake", () => tools);
  const emit = (event: EventBody): void => void events.push(event);
  const judge = judgeIn({
    mode: "workspace-write",
    workspace: box.workspace,
    home: "/home/user",
    links: (path) => path,
  });
  return {
    events,
    records,
    asked: provider.asked,
    loseBox: (reason) => noBox.abort(reason),
    memory,
    model: "fake",
    isWeak: over.ends?.facts.isWeak ?? false,
    provider,
    mode: "workspace-write",
    limits: new Limits({ turns: 40 }, () => 0),
    spent: new Spent(),
    judge: () => Promise.resolve(judge),
    checkpoints: NO_CHECKPOINTS,
    approver: unattended("contained"),
    grant: () => Promise.reject(new Error("nothing can be granted here")),
    outputs: memoryOutputs(),
    box: () => Promise.resolve(box),
    warm: () => undefined,
    noBox: noBox.signal,
    writes: new WriteOrder(),
    ended: [],
    onceParked: [],
    now: () => 0,
    clean: (text) => text,
    hooks: NO_HOOKS,
    tools,
    offers: tools,
    intent: new RunIntent(),
    history: memory.history,
    rollBack: (to) => memory.rollBack(to),
    size,
    compactor: new Compactor(memory.history, {
      window: 32_768,
      known: true,
      tokens: size.tokens,
      now: () => 0,
      summarise: () => Promise.resolve("a summary"),
      emit,
      ...window,
    }),
    guard: new Guard(),
    malformed: new Malformed(),
    answer: new PlainAnswer(),
    ends: null,
    next: new NextReply(),
    deeds: new Deeds(),
    briefing: () => Promise.resolve(undefined),
    emit,
    ...over,
  };
}

/** The results of the agent's calls, in order. */
export const resultsOf = ({ history }: Pick<AgentContext, "history">): readonly string[] =>
  history.messages.flatMap((message) => (message.role === "tool" ? [message.text] : []));

import type { AgentEvent } from "../../core/events.ts";
import type { Plan } from "../../core/run-record.ts";
import { type ShownCall, targetOf } from "../tty/call-lines.ts";

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

interface ChatCall extends ShownCall {
  readonly call: string;
  /** The subagent that made the call. */
  readonly agent: string | undefined;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface EndedChatCall extends ChatCall {
  readonly ended: Of<"call.ended">;
}

/** Finished content, shown above everything that can still change. */
export type Block =
  | { readonly kind: "said"; readonly text: string }
  /** `first`: the first part of a reply. */
  | { readonly kind: "answer"; readonly text: string; readonly first: boolean }
  | { readonly kind: "call"; readonly call: EndedChatCall }
  | { readonly kind: "whole"; readonly call: EndedChatCall }
  | { readonly kind: "plan"; readonly plan: Plan; readonly before: Plan }
  | { readonly kind: "event"; readonly event: AgentEvent }
  /** Lines that are already styled: answers of commands, questions. */
  | { readonly kind: "lines"; readonly text: string };

/** An unfinished reply. Its paragraphs are finished one after the other; a block of code counts as one. */
interface OpenAnswer {
  /** Whole lines. */
  readonly body: string;
  /** The incomplete line. */
  readonly line: string;
  /** The fence of the open block of code. */
  readonly fence: string | undefined;
  /** Part of this reply is already finished. */
  readonly begun: boolean;
}

interface Spent {
  readonly tokens: number;
  /** Null if unknown. */
  readonly cost: number | null;
}

export interface ChatState {
  /** Oldest first; the code that shows blocks removes them. */
  readonly finished: readonly Block[];
  readonly answer: OpenAnswer;
  /** In the order of their proposal. */
  readonly calls: readonly ChatCall[];
  readonly plan: Plan;
  /** Tokens of the last request to the model, counted or estimated. */
  readonly context: number | undefined;
  readonly spent: Spent;
  /** Newest last. */
  readonly outputs: readonly EndedChatCall[];
  /** A hook has replaced the model's answer. */
  readonly replaced: boolean;
}

const NO_ANSWER: OpenAnswer = { body: "", line: "", fence: undefined, begun: false };

export const NEW_CHAT: ChatState = {
  finished: [],
  answer: NO_ANSWER,
  calls: [],
  plan: [],
  context: undefined,
  spent: { tokens: 0, cost: null },
  outputs: [],
  replaced: false,
};

/** Number of calls whose output can still be shown whole. */
const MAX_OUTPUTS = 50;

/** The state of the display after an event. */
export function afterEvent(state: ChatState, event: AgentEvent): ChatState {
  const isMain = event.agent === undefined;
  switch (event.type) {
    case "text":
      return isMain ? withText(state, event.text) : state;
    case "turn.started": {
      const next = { ...withoutAnswer(state), replaced: isMain ? false : state.replaced };
      return isMain && event.tokens !== undefined ? { ...next, context: event.tokens } : next;
    }
    case "model.finished":
      return withUsage(isMain ? withoutAnswer(state) : state, event);
    case "model.aside":
      return withUsage(state, event);
    case "call.proposed":
      return withCall(isMain ? withoutAnswer(state) : state, event);
    case "call.decided":
      return changedCall(state, event, { decided: event });
    case "call.edited":
      return changedCall(state, event, { args: event.args, target: targetOf(event.args) });
    case "call.ended":
      return endedCall(state, event);
    case "plan":
      return {
        ...withBlock(state, { kind: "plan", plan: event.steps, before: state.plan }),
        plan: event.steps,
      };
    case "hook":
      return withBlock(
        { ...state, replaced: state.replaced || (event.event === "Stop" && event.did === "replaced") },
        { kind: "event", event },
      );
    case "run.finished":
      return finishedRun(state, event);
    default:
      return withOtherEvent(state, event);
  }
}

/** Shown by a line of their own, as in a run. */
const SHOWN_AS_LINES: ReadonlySet<AgentEvent["type"]> = new Set([
  "intent",
  "model.waiting",
  "model.failed",
  "call.parked",
  "task",
  "check.ended",
  "call.missed",
  "canary",
  "notice",
  "compaction",
]);

function withOtherEvent(state: ChatState, event: AgentEvent): ChatState {
  if (!SHOWN_AS_LINES.has(event.type)) return event.type === "rolled_back" ? withoutAnswer(state) : state;
  const ends = event.type === "model.waiting" || event.type === "model.failed";
  return withBlock(ends && event.agent === undefined ? withoutAnswer(state) : state, {
    kind: "event",
    event,
  });
}

export const withBlock = (state: ChatState, block: Block): ChatState => ({
  ...state,
  finished: [...state.finished, block],
});

/** Drops the finished blocks, which have been shown. */
export const withoutFinished = (state: ChatState): ChatState =>
  state.finished.length === 0 ? state : { ...state, finished: [] };

/** Reads each piece once, however long the reply is. */
function withText(state: ChatState, text: string): ChatState {
  const pieces = text.split("\n");
  const last = pieces.pop() ?? "";
  if (pieces.length === 0) {
    const { answer } = state;
    return { ...state, answer: { ...answer, line: answer.line + last } };
  }
  const paragraphs: string[] = [];
  let { body, line, fence } = state.answer;
  for (const piece of pieces) {
    line += piece;
    if (fence === undefined && line.trim() === "") {
      if (body !== "") paragraphs.push(body);
      body = "";
    } else {
      fence = fenceAfter(fence, line);
      body += `${line}\n`;
    }
    line = "";
  }
  const blocks = paragraphs.map((each, at) => ({
    kind: "answer" as const,
    text: each,
    first: !state.answer.begun && at === 0,
  }));
  return {
    ...state,
    finished: blocks.length === 0 ? state.finished : [...state.finished, ...blocks],
    answer: { body, line: last, fence, begun: state.answer.begun || blocks.length > 0 },
  };
}

const FENCE = /^ {0,12}(`{3,20}|~{3,20})([^`]{0,200})$/;

/** The open fence after this line. */
function fenceAfter(open: string | undefined, line: string): string | undefined {
  const [, mark, words = ""] = FENCE.exec(line.slice(0, 240)) ?? [];
  if (mark === undefined) return open;
  if (open === undefined) return mark;
  return mark.startsWith(open) && words.trim() === "" ? undefined : open;
}

/** Finishes the rest of the reply. */
function withoutAnswer(state: ChatState): ChatState {
  const { body, line, begun } = state.answer;
  const text = body + line;
  if (text.trim() === "") return state.answer === NO_ANSWER ? state : { ...state, answer: NO_ANSWER };
  return { ...withBlock(state, { kind: "answer", text, first: !begun }), answer: NO_ANSWER };
}

function withUsage(
  state: ChatState,
  { usage, ...event }: Of<"model.finished"> | Of<"model.aside">,
): ChatState {
  const { prompt_tokens: prompt, completion_tokens: completion, cost } = usage;
  const { spent } = state;
  const sum = {
    tokens: spent.tokens + (prompt ?? 0) + (completion ?? 0),
    cost: cost === null ? spent.cost : (spent.cost ?? 0) + cost,
  };
  const isMain = event.type === "model.finished" && event.agent === undefined;
  const context = isMain && prompt !== null ? prompt + (completion ?? 0) : state.context;
  return { ...state, spent: sum, context };
}

const isCall =
  ({ call, agent }: { readonly call: string; readonly agent?: string }) =>
  (each: ChatCall): boolean =>
    each.call === call && each.agent === agent;

const withCall = (state: ChatState, event: Of<"call.proposed">): ChatState => ({
  ...state,
  calls: [
    ...state.calls,
    {
      call: event.call,
      agent: event.agent,
      tool: event.tool,
      args: event.args,
      target: targetOf(event.args),
      decided: undefined,
    },
  ],
});

function changedCall(
  state: ChatState,
  event: Of<"call.decided"> | Of<"call.edited">,
  news: Partial<ChatCall>,
): ChatState {
  const is = isCall(event);
  return { ...state, calls: state.calls.map((each) => (is(each) ? { ...each, ...news } : each)) };
}

function endedCall(state: ChatState, event: Of<"call.ended">): ChatState {
  const is = isCall(event);
  const unknown: ChatCall = {
    call: event.call,
    agent: event.agent,
    tool: "?",
    target: "",
    args: {},
    decided: undefined,
  };
  const call: EndedChatCall = { ...(state.calls.find(is) ?? unknown), ended: event };
  const next = { ...state, calls: state.calls.filter((each) => !is(each)) };
  // The plan's own event has already shown it.
  if (call.tool === "plan" && event.kind === "ok") return next;
  return {
    ...withBlock(next, { kind: "call", call }),
    outputs: [...state.outputs, call].slice(-MAX_OUTPUTS),
  };
}

function finishedRun(state: ChatState, event: Of<"run.finished">): ChatState {
  const next: ChatState = { ...withoutAnswer(state), calls: [], replaced: false };
  if (!state.replaced || event.status !== "done" || event.answer === null) return next;
  return withBlock(next, { kind: "answer", text: event.answer, first: true });
}

import type { EventBody } from "../core/events.ts";
import type { ParkedChild } from "../core/session.ts";
import type { AnyTool, ToolResult } from "../core/tool.ts";
import type { Spawn } from "../tools/tool-context.ts";
import { PlainAnswer } from "./final-answer.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History } from "./context/history.ts";
import { Guard, Malformed } from "./repetition-guard.ts";
import { work } from "./loop.ts";
import { type LoopEnd, NEW_BOX, Stopped } from "./outcome.ts";
import type { ChildMemory, Memory } from "./memory.ts";
import type { AgentContext } from "./agent-context.ts";

export interface SubagentOptions {
  readonly parent: AgentContext;
  /** The tools of a child over its memory: the same without `task`. */
  readonly tools: (memory: Memory) => readonly AnyTool[];
  readonly memory: (parked?: ParkedChild) => ChildMemory;
  /** Subagents that were parked and go on when their calls do. */
  readonly parked: readonly ParkedChild[];
  /** Tells the events of one more child as its own. */
  readonly emit: () => (event: EventBody) => void;
  readonly prompt: string;
  readonly compactor: (agent: () => AgentContext, history: History) => Compactor;
}

/**
 * A part of the task by an agent of its own: its memory begins empty and is not kept; policy, budget and box are those of
 * its parent. It has no `task`, so there is one generation only.
 */
export function spawnFrom(options: SubagentOptions): Spawn {
  const waiting = [...options.parked];
  return async ({ prompt, maxTurns }, signal) => {
    const { parent } = options;
    const at = waiting.findIndex((each) => each.prompt === prompt && each.maxTurns === maxTurns);
    const [parked] = at === -1 ? [] : waiting.splice(at, 1);
    const { memory, records } = options.memory(parked);
    const { history } = memory;
    history.pin(options.prompt);
    if (parked === undefined) history.add({ role: "user", text: prompt });
    const tools = options.tools(memory);
    const agent: AgentContext = {
      ...parent,
      tools,
      history,
      compactor: options.compactor(() => agent, history),
      rollBack: (to) => memory.rollBack(to),
      limits: parent.limits.part(maxTurns, parked?.turns),
      guard: new Guard(),
      malformed: new Malformed(),
      answer: new PlainAnswer(),
      ends: null,
      next: parent.next.another(),
      briefing: () => Promise.resolve(undefined),
      emit: options.emit(),
    };
    const end = await work(
      agent,
      signal,
      parked && { malformed: parked.malformed, note: parent.boxNote ?? NEW_BOX },
    );
    if (end.how !== "parked") return resultOf(end);
    const { question, malformed } = end.waiting;
    const { turns } = agent.limits;
    throw new Stopped(question, { prompt, maxTurns, turns, malformed, records, name: memory.name });
  };
}

function resultOf(end: Exclude<LoopEnd, { readonly how: "parked" }>): ToolResult {
  switch (end.how) {
    case "answered":
      return { kind: "ok", text: end.text };
    case "cancelled":
      return { kind: "cancelled", cause: "user", text: "Cancelled." };
    case "limit":
      return { kind: "failed", cause: "program", text: `The subagent did not finish: ${end.text}` };
    case "repeated":
      return {
        kind: "failed",
        cause: "program",
        text: "The subagent was stopped: it kept repeating the same calls.",
      };
    default:
      return { kind: "failed", cause: "program", text: `The subagent did not finish: ${end.reason}` };
  }
}

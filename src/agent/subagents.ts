import type { EventBody } from "../core/events.ts";
import { NO_HOOKS } from "../core/hooks.ts";
import type { ParkedChild } from "../core/session.ts";
import type { AnyTool, ToolResult } from "../core/tool.ts";
import type { Part, Subagents } from "../tools/tool-context.ts";
import { PlainAnswer } from "./ending/final-answer.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History } from "./context/history.ts";
import { Guard, Malformed } from "./repetition-guard.ts";
import { runLoop } from "./loop.ts";
import { type LoopEnd, NEW_BOX, Stopped } from "./ending/outcome.ts";
import type { ChildMemory, Memory } from "./memory.ts";
import type { AgentContext } from "./agent-context.ts";
import { type Beginning, headOf, type Subagent } from "./background-tasks.ts";

export interface SubagentOptions {
  readonly parent: AgentContext;
  /** The tools of a child over its memory: the same without `task`. */
  readonly tools: (memory: Memory) => readonly AnyTool[];
  readonly memory: (parked?: ParkedChild) => ChildMemory;
  /** Tells the events of one more child as its own. */
  readonly emit: () => (event: EventBody) => void;
  readonly prompt: string;
  readonly compactor: (agent: () => AgentContext, history: History) => Compactor;
}

/**
 * A part of the task by an agent of its own: its memory begins empty and is not kept; policy, budget and box are those of
 * its parent. It has no `task`, so there is one generation only.
 */
export function subagent(options: SubagentOptions, part: Part, { parked, background }: Beginning): Subagent {
  const { parent } = options;
  const { prompt, maxTurns } = part;
  const { memory, records } = options.memory(parked);
  const { history } = memory;
  history.pin(options.prompt);
  if (parked === undefined) history.add({ role: "user", text: prompt });
  const { tasks: _, ...shared } = parent;
  const agent: AgentContext = {
    ...shared,
    tools: options.tools(memory),
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
    // Its answer goes to its parent, whose own end is the end.
    hooks: { ...parent.hooks, stop: NO_HOOKS.stop },
    emit: options.emit(),
    ...(background === undefined ? {} : { pause: background.pause }),
  };
  const named = background === undefined ? {} : { task: background.task };
  const tell = (status: Extract<EventBody, { type: "task" }>["status"], text: string): void =>
    agent.emit({ type: "task", ...named, status, text });
  const kept = (): ParkedChild => {
    const { turns } = agent.limits;
    return { prompt, maxTurns, turns, malformed: [], records, name: memory.name, ...named };
  };
  const run: Subagent["run"] = async (signal) => {
    tell("begun", headOf(prompt));
    const left = parked && { malformed: parked.malformed, note: parent.boxNote ?? NEW_BOX };
    const end = await runLoop(agent, signal, left);
    if (end.how === "parked") {
      agent.onceParked.push(() => tell("parked", end.reason));
      const { question, malformed } = end.waiting;
      throw new Stopped(question, { ...kept(), malformed });
    }
    if (end.how === "cancelled" && background?.pause.aborted === true) {
      agent.onceParked.push(() => tell("parked", ""));
      return "paused";
    }
    const result = resultOf(end);
    if (result.kind === "ok") tell("done", "");
    else tell(result.kind === "cancelled" ? "cancelled" : "failed", result.text);
    return result;
  };
  return { prompt, maxTurns, run, turns: () => agent.limits.turns, kept };
}

/** Those that somebody waits for; one that was parked goes on when its call does. */
export function foreground(
  begin: (part: Part, how: Beginning) => Subagent,
  parked: readonly ParkedChild[],
): Subagents["run"] {
  const waiting = parked.filter(({ task }) => task === undefined);
  return async (part, signal) => {
    const at = waiting.findIndex(
      ({ prompt, maxTurns }) => prompt === part.prompt && maxTurns === part.maxTurns,
    );
    const [own] = at === -1 ? [] : waiting.splice(at, 1);
    const result = await begin(part, { parked: own }).run(signal);
    return result === "paused" ? resultOf({ how: "cancelled" }) : result;
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

import type { EventBody } from "../core/events.ts";
import { type AnyTool, NO_HOOKS, type ToolResult } from "../core/tool.ts";
import type { ParkedChild } from "../core/session.ts";
import type { TaskPart, Subagents } from "../tools/tool-context.ts";
import { type LoopEnd, NEW_BOX, PlainAnswer, WaitsForPerson } from "./ending/outcome.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History } from "./context/history.ts";
import { Guard, Malformed } from "./limits.ts";
import { runLoop } from "./loop.ts";
import { offersOf } from "./simple-tools.ts";
import type { ChildMemory, Memory } from "./context/memory.ts";
import type { AgentContext } from "./agent-context.ts";
import { type SubagentStart, headOf, type Subagent } from "./background-tasks.ts";

export interface SubagentOptions {
  readonly parent: AgentContext;
  /** The tools of a child, using its memory: the parent's without `task`. */
  readonly tools: (memory: Memory) => readonly AnyTool[];
  readonly memory: (parked?: ParkedChild) => ChildMemory;
  /** Returns an emitter for the events of one more child. */
  readonly emit: () => (event: EventBody) => void;
  readonly prompt: string;
  readonly compactor: (agent: () => AgentContext, history: History) => Compactor;
}

/**
 * A part of the task, done by a separate agent. Its memory starts empty and is not kept; it shares its parent's policy,
 * budget and box. It has no `task` tool, so it cannot start subagents.
 */
export function subagent(
  options: SubagentOptions,
  part: TaskPart,
  { parked, background }: SubagentStart,
): Subagent {
  const { parent } = options;
  const { prompt, maxTurns } = part;
  const { memory, records } = options.memory(parked);
  const { history } = memory;
  history.pin(options.prompt);
  if (parked === undefined) history.add({ role: "user", text: prompt });
  const { tasks: _, ...shared } = parent;
  const tools = options.tools(memory);
  const agent: AgentContext = {
    ...shared,
    tools,
    offers: offersOf(tools, parent.isWeak),
    history,
    compactor: options.compactor(() => agent, history),
    rollBack: (to) => memory.rollBack(to),
    limits: parent.limits.part(maxTurns, parked?.turns),
    guard: new Guard(),
    malformed: new Malformed(),
    answer: new PlainAnswer(),
    ends: null,
    next: parent.next.forSubagent(),
    briefing: () => Promise.resolve(undefined),
    // The answer goes to the parent, whose own end runs the stop hooks.
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
      throw new WaitsForPerson(question, { ...kept(), malformed });
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

/** Runs subagents that the caller waits for. A parked subagent continues when its call does. */
export function foreground(
  begin: (part: TaskPart, how: SubagentStart) => Subagent,
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

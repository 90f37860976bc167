import type { AgentContext } from "../../src/agent/agent-context.ts";
import { BackgroundTasks, type SubagentStart } from "../../src/agent/background-tasks.ts";
import { boundResult } from "../../src/agent/call-result.ts";
import { Compactor } from "../../src/agent/context/compaction.ts";
import type { Memory } from "../../src/agent/context/memory.ts";
import { foreground, subagent } from "../../src/agent/subagents.ts";
import type { EventBody } from "../../src/core/events.ts";
import type { ParkedChild, SessionRecord } from "../../src/core/session.ts";
import type { AnyTool } from "../../src/core/tool.ts";
import { taskTool } from "../../src/tools/task.ts";
import type { TaskPart, Subagents } from "../../src/tools/tool-context.ts";
import { fakeAgent, type FakeAgent, type Line, linesProvider } from "./agent.ts";
import { fakeBox, type FakeBox } from "./box.ts";

interface CrewOptions {
  readonly lines: readonly Line[];
  /** What each subagent says, by its prompt. */
  readonly children?: Readonly<Record<string, readonly Line[]>>;
  readonly tools?: (memory: Memory) => readonly AnyTool[];
  readonly over?: Partial<AgentContext>;
  readonly box?: FakeBox;
  readonly earlier?: readonly SessionRecord[];
  readonly parked?: readonly ParkedChild[];
}

export interface Crew extends FakeAgent {
  readonly tasks: BackgroundTasks;
  /** Events of subagents, each with its name. */
  readonly told: readonly (EventBody & { readonly agent: string })[];
}

const NONE: readonly Line[] = [];

/** An agent with subagents, as in a run. */
export function crew(options: CrewOptions): Crew {
  const { lines, children = {}, over = {}, box = fakeBox(), earlier = [], parked = [] } = options;
  const told: (EventBody & { readonly agent: string })[] = [];
  const count = { children: 0 };
  const late: { subagents?: Subagents } = {};
  const subagents = (): Subagents => late.subagents ?? raise();
  const task = taskTool({
    run: (part, signal) => subagents().run(part, signal),
    begin: (part, signal) => subagents().begin(part, signal),
    look: (look, signal) => subagents().look(look, signal),
  });
  const provider = linesProvider(({ messages }) => {
    const asked = messages.find(({ role }) => role === "user")?.text ?? "";
    return Object.hasOwn(children, asked) ? (children[asked] ?? NONE) : lines;
  });
  const parent = fakeAgent({ lines, tools: [], box, earlier });
  const { memory } = parent;
  const toolsOf = options.tools ?? (() => []);
  const begin = (part: TaskPart, how: SubagentStart) => {
    count.children += 1;
    const agent = `a${count.children}`;
    return subagent(
      {
        parent: context,
        prompt: "the system prompt",
        emit: () => (event) => void told.push({ ...event, agent }),
        compactor: (child, history) =>
          new Compactor(history, {
            window: 32_768,
            known: true,
            tokens: (messages) => child().size.tokens(messages),
            summarise: () => Promise.resolve("a summary"),
            emit: () => undefined,
            now: () => 0,
          }),
        memory: (child) => memory.child(box.workspace, child),
        tools: toolsOf,
      },
      part,
      how,
    );
  };
  const tasks = new BackgroundTasks({
    begin,
    parked,
    memory: memory.tasks,
    bounded: (result) => boundResult(context, result),
    notice: (text) => parent.emit({ type: "notice", text }),
    now: () => 0,
  });
  const context: Crew = {
    ...parent,
    provider,
    asked: provider.asked,
    tools: [...toolsOf(memory), task],
    tasks,
    told,
    ...over,
  };
  late.subagents = {
    run: foreground(begin, parked),
    begin: (part, signal) => tasks.begin(part, signal),
    look: (look, signal) => tasks.look(look, signal),
  };
  return context;
}

function raise(): never {
  throw new Error("nobody is there yet");
}

import { History } from "../../agent/context/history.ts";
import { toolsOf } from "../../agent/intent/tools.ts";
import { Offer } from "../../agent/seat.ts";
import { SeenState } from "../../agent/seen-state.ts";
import { ShellMemory } from "../../agent/shell-memory.ts";
import type { Session, SessionRecord, SessionStore } from "../../core/session.ts";
import type { AnyTool } from "../../core/tool.ts";
import type { Desk, Spawn } from "../../tools/desk.ts";
import { toolsFor } from "../../tools/index.ts";

/** What goes on from request to request of one session: what the model knows, and the tools it knows it with. */
export interface Memory {
  readonly history: History;
  readonly seen: SeenState;
  readonly tools: readonly AnyTool[];
  readonly offer: Offer;
  readonly childTools: (child: History) => readonly AnyTool[];
  /** Who does the work of `task`, until somebody else does. */
  readonly spawnBy: (spawn: Spawn) => void;
}

export interface MemoryParts {
  readonly session: Session;
  readonly store: SessionStore;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly timeoutMs: number;
  /** For a session that has none yet. */
  readonly prompt: string;
}

export function memoryOf({ session, store, workspace, timeoutMs, prompt }: MemoryParts): Memory {
  const records = session.records();
  const record = (each: SessionRecord): void => session.append(each);
  const history = History.from(records, record);
  history.pin(prompt);
  const seen = SeenState.from(records, () => history.count, record);
  const desk: Omit<Desk, "spawn" | "seen" | "shell"> = {
    workspace,
    outputs: session.outputs,
    notes: store.notes(workspace),
    timeoutMs,
  };
  const held: { spawn?: Spawn } = {};
  const tools = toolsFor({
    ...desk,
    seen,
    shell: new ShellMemory(workspace, records, record),
    spawn: (part, cancel) =>
      held.spawn?.(part, cancel) ??
      Promise.resolve({ kind: "failed", cause: "program", text: "No subagent can be started now." }),
  });
  return {
    history,
    seen,
    tools,
    offer: offerOf(records, tools),
    childTools: (child) =>
      toolsFor({
        ...desk,
        // What its parent has read, it may edit; what it reads itself is no news to its parent.
        seen: seen.copy(() => child.count),
        shell: new ShellMemory(workspace, [], () => undefined),
      }),
    spawnBy: (spawn) => {
      held.spawn = spawn;
    },
  };
}

/** As the last request left it: calls in the history need their tools. */
function offerOf(records: readonly SessionRecord[], tools: readonly AnyTool[]): Offer {
  const offer = new Offer();
  for (const each of records)
    if (each.kind === "turn") offer.widen(each.result.intent, toolsOf(each.result.intent, tools));
  return offer;
}

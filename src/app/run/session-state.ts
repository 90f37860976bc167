import type { Judge } from "../../agent/action-judge.ts";
import { refusedBy } from "../../agent/approvers.ts";
import { Memory } from "../../agent/memory.ts";
import type { Mode } from "../../core/decision.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Index } from "../../core/ports.ts";
import { parkedIn, type Session, type SessionRecord, type SessionStore } from "../../core/session.ts";
import type { AnyTool } from "../../core/tool.ts";
import { toolsFor } from "../../tools/index.ts";
import type { ToolContext, Spawn } from "../../tools/tool-context.ts";

/** What goes on from request to request of one session: what the model knows, and the tools it knows it with. */
export interface SessionState {
  readonly memory: Memory;
  readonly tools: readonly AnyTool[];
  readonly childTools: (child: Memory) => readonly AnyTool[];
  /** Who does the work of `task`, until somebody else does. */
  readonly spawnBy: (spawn: Spawn) => void;
  /** Who says which exported variables go on, until somebody else does. */
  readonly judgedBy: (judge: () => Promise<Judge>, mode: Mode) => void;
}

export interface SessionStateParts {
  readonly session: Session;
  readonly store: SessionStore;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly timeoutMs: number;
  /** For a session that has none yet. */
  readonly prompt: string;
  /** What finds code, when it is asked. */
  readonly index: Index;
  /** Calls that wait for a person are gone on with; else they are given up. */
  readonly waits?: boolean;
}

export function sessionState({
  session,
  store,
  workspace,
  timeoutMs,
  prompt,
  index,
  waits = false,
}: SessionStateParts): SessionState {
  if (!waits) giveUp(session);
  const records = session.records();
  const record = (each: SessionRecord): void => session.append(each);
  const memory = new Memory(workspace, records, record, { open: waits ? "come" : "closed" });
  memory.history.pin(prompt);
  const toolsOver = ({ seen, shell, name: agent }: Memory, spawn?: Spawn): readonly AnyTool[] =>
    toolsFor({
      agent,
      workspace,
      seen,
      shell,
      outputs: session.outputs,
      notes: store.notes(workspace),
      timeoutMs,
      index,
      refused: (variables) => late.refused(variables),
      ...(spawn === undefined ? {} : { spawn }),
    });
  const late: LateTools = {
    spawn: () => Promise.resolve(NOBODY),
    refused: (variables) => Promise.resolve(new Set(variables.keys())),
  };
  const tools = toolsOver(memory, (part, signal) => late.spawn(part, signal));
  return {
    memory,
    tools,
    childTools: (child) => toolsOver(child),
    spawnBy: (spawn) => {
      late.spawn = spawn;
    },
    judgedBy: (judge, mode) => {
      late.refused = refusedBy(judge, mode);
    },
  };
}

/** Withdraws the pending question; it can no longer be approved. */
function giveUp(session: Session): void {
  const question = parkedIn(session.records())?.question;
  if (question === undefined) return;
  const none = { kind: "answered", question, word: "never" } as const;
  if (session.appendIf(none, (records) => parkedIn(records) !== undefined)) return;
  throw new HarnessError(
    EXIT.usage,
    `somebody has just approved what waits in ${session.id}: that run goes on now`,
    `harness sessions show ${session.id}`,
  );
}

interface LateTools {
  spawn: Spawn;
  refused: NonNullable<ToolContext["refused"]>;
}

const NOBODY = { kind: "failed", cause: "program", text: "No subagent can be started now." } as const;

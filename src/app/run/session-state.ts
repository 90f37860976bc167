import type { Judge } from "../../agent/action-judge.ts";
import { refusedBy } from "../../agent/approvers.ts";
import { Memory } from "../../agent/memory.ts";
import type { Mode } from "../../core/decision.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type AnyTool, type Extensions, type Hooks, NO_HOOKS } from "../../core/tool.ts";
import type { Plan } from "../../core/run-record.ts";
import type { Index } from "../../core/ports.ts";
import { parkedIn, type Session, type SessionRecord, type SessionStore } from "../../core/session.ts";
import { toolsFor } from "../../tools/index.ts";
import type { AskPerson, Subagents, ToolContext } from "../../tools/tool-context.ts";

/** State that lasts from request to request of one session: what the model knows, and its tools. */
export interface SessionState {
  readonly memory: Memory;
  /** The current tools: the built-in ones, then those that users added. */
  readonly tools: readonly AnyTool[];
  readonly hooks: Hooks;
  readonly childTools: (child: Memory) => readonly AnyTool[];
  /** Sets the code that does the work of `task`. */
  readonly subagentsBy: (subagents: Subagents) => void;
  /** Sets the receiver of new plans. */
  readonly planTo: (show: (plan: Plan) => void) => void;
  /** Sets the model that works with the tools, and the judge of its exported variables. */
  readonly workedOnBy: (who: WorkedOnBy) => void;
}

interface WorkedOnBy {
  /** The model has few parameters. */
  readonly isWeak: boolean;
  readonly judge: () => Promise<Judge>;
  readonly mode: Mode;
}

export interface SessionStateParts {
  readonly session: Session;
  readonly store: SessionStore;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly timeoutMs: number;
  /** The system prompt for a session that has none yet. */
  readonly prompt: string;
  readonly index: Index;
  readonly extensions: Pick<Extensions, "tools" | "hooks">;
  /** The person whom the model can ask, if there is one. */
  readonly person?: AskPerson | undefined;
  /** A replay: notes are read, but none is stored. */
  readonly passing?: boolean;
  /** Resume calls that wait for a person; otherwise they are given up. */
  readonly waits?: boolean;
}

export function sessionState({
  session,
  store,
  workspace,
  timeoutMs,
  prompt,
  index,
  extensions,
  person,
  passing = false,
  waits = false,
}: SessionStateParts): SessionState {
  if (!waits) giveUp(session);
  const records = session.records();
  const record = (each: SessionRecord): void => session.append(each);
  const memory = new Memory(workspace, records, record, { open: waits ? "come" : "closed" });
  memory.history.pin(prompt);
  const kept = store.notes(workspace);
  const notes = passing ? { find: kept.find.bind(kept), write: () => undefined } : kept;
  const builtIn = (
    { seen, shell, name: agent }: Memory,
    own: Pick<ToolContext, "subagents" | "plan" | "person"> = {},
  ): readonly AnyTool[] =>
    toolsFor({
      agent,
      workspace,
      seen,
      shell,
      outputs: session.outputs,
      notes,
      timeoutMs,
      isWeak: () => late.isWeak,
      index,
      refused: (variables) => late.refused(variables),
      ...own,
    });
  const late: LateTools = {
    isWeak: false,
    subagents: NOBODY,
    refused: (variables) => Promise.resolve(new Set(variables.keys())),
    planned: () => undefined,
  };
  const main = builtIn(memory, {
    subagents: {
      run: (part, signal) => late.subagents.run(part, signal),
      begin: (part, signal) => late.subagents.begin(part, signal),
      look: (look, signal) => late.subagents.look(look, signal),
    },
    plan: (plan) => {
      memory.planned(plan);
      late.planned(plan);
    },
    ...(person === undefined ? {} : { person }),
  });
  const tools = withAdded(main, extensions.tools);
  return {
    memory,
    hooks: extensions.hooks ?? NO_HOOKS,
    get tools() {
      return tools();
    },
    childTools: (child) => withAdded(builtIn(child), extensions.tools)(),
    subagentsBy: (subagents) => {
      late.subagents = subagents;
    },
    planTo: (show) => {
      late.planned = show;
    },
    workedOnBy: ({ isWeak, judge, mode }) => {
      late.isWeak = isWeak;
      late.refused = refusedBy(judge, mode);
    },
  };
}

/** Returns the same list as long as nothing was added or removed. */
function withAdded(builtIn: readonly AnyTool[], added: () => readonly AnyTool[]): () => readonly AnyTool[] {
  const last: { added: readonly AnyTool[]; all: readonly AnyTool[] } = { added: [], all: builtIn };
  return () => {
    const now = added();
    if (now !== last.added) Object.assign(last, { added: now, all: [...builtIn, ...now] });
    return last.all;
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
    `somebody has just approved what waits in ${session.id}: that run continues now`,
    `harness sessions show ${session.id}`,
  );
}

interface LateTools {
  isWeak: boolean;
  subagents: Subagents;
  refused: NonNullable<ToolContext["refused"]>;
  planned: (plan: Plan) => void;
}

const NONE = { kind: "failed", cause: "program", text: "No subagent can be started now." } as const;
const NOBODY: Subagents = {
  run: () => Promise.resolve(NONE),
  begin: () => NONE,
  look: () => Promise.resolve(NONE),
};

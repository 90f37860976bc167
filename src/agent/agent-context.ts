import type { Checkpoints } from "../core/checkpoint-port.ts";
import type { Mode } from "../core/decision.ts";
import type { Emit } from "../core/events.ts";
import type { Hooks } from "../core/hooks.ts";
import type { Lasting } from "../core/lasting.ts";
import type { Provider } from "../core/model-provider.ts";
import type { GrantSaid } from "../core/network.ts";
import type { Approver, Box } from "../core/ports.ts";
import type { EndedCall, Outputs } from "../core/session.ts";
import type { AnyTool } from "../core/tool.ts";
import type { Judge } from "./action-judge.ts";
import type { BackgroundTasks, WriteOrder } from "./background-tasks.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History } from "./context/history.ts";
import type { PromptSize } from "./context/prompt-size.ts";
import type { AnswerGate } from "./ending/final-answer.ts";
import type { Deeds } from "./ending/deeds.ts";
import type { EndRules } from "./ending/earned-end.ts";
import type { RunIntent } from "./ending/intent.ts";
import type { Limits, Spent } from "./limits.ts";
import type { NextReply } from "./next-reply.ts";
import type { Guard, Malformed } from "./repetition-guard.ts";

/** What one run and all its subagents share. */
interface SharedContext {
  readonly model: string;
  /** It has few parameters: it repeats itself, and writes the part of a file that it thinks of for the whole of it. */
  readonly isWeak: boolean;
  readonly provider: Provider;
  readonly mode: Mode;
  readonly limits: Limits;
  readonly spent: Spent;
  readonly checkpoints: Checkpoints;
  /** Loaded with its tables when it is first asked for. */
  readonly judge: () => Promise<Judge>;
  readonly approver: Approver;
  /**
   * Has the box reach what a person granted, and later calls judged by it; what it gives takes that back. It rejects with a
   * HarnessError where it cannot be.
   */
  readonly grant: (said: GrantSaid, signal: AbortSignal) => Promise<() => void>;
  readonly outputs: Outputs;
  /** Verified, and the same each time, unless another one took its place; rejects when there can be none. */
  readonly box: () => Promise<Box>;
  /** Has the box begin to start. */
  readonly warm: () => void;
  /** Said to the model where a parked turn goes on; left out, the box is a new one. */
  readonly boxNote?: string;
  /** Fires when there can be no box, or no more; its reason is a HarnessError. */
  readonly walls: AbortSignal;
  /** Left out where a box that is lost ends the run. */
  readonly lasting?: Lasting;
  readonly writes: WriteOrder;
  /** What became of every call, in order. */
  readonly ended: EndedCall[];
  /** What is told of calls that wait, once their question is kept; never, where the run ends otherwise. */
  readonly untold: (() => void)[];
  readonly deeds: Deeds;
  readonly now: () => number;
  readonly intent: RunIntent;
  /** Of the user and of the project; subagents have the same. */
  readonly hooks: Hooks;
  /** Takes secrets out of what leaves for a model that is not local. */
  readonly clean: (text: string) => string;
}

/** What the loop works with. A subagent sits on another agent: its own memory, the ground shared. */
export interface AgentContext extends SharedContext {
  /** The same list in every request, unless what users added changes: that has servers read the whole prompt anew. */
  readonly tools: readonly AnyTool[];
  readonly history: History;
  /** Takes the history, and what goes with it, back to a count. */
  readonly rollBack: (to: number) => void;
  readonly compactor: Compactor;
  readonly size: PromptSize;
  readonly guard: Guard;
  readonly malformed: Malformed;
  readonly answer: AnswerGate;
  /** What an answer has to be worth to be the end; null where a person reads it, or another agent. */
  readonly ends: EndRules | null;
  readonly next: NextReply;
  /** Said to the model with the next results, once: what the box knows of the workspace. */
  readonly briefing: () => Promise<string | undefined>;
  readonly emit: Emit;
  /** Its tasks in the background; a subagent has none. */
  readonly tasks?: BackgroundTasks;
  /** Has its loop stop between two turns, as if it was cancelled there. */
  readonly pause?: AbortSignal;
}

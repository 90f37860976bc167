import type { Checkpoints } from "../core/checkpoint-port.ts";
import type { Mode } from "../core/decision.ts";
import type { Emit } from "../core/events.ts";
import type { Hooks } from "../core/hooks.ts";
import type { BoxRecovery } from "../core/box-recovery.ts";
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
  /** It has few parameters: it repeats itself, and writes a part of a file as if it were the whole. */
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
   * Opens the box's network to what a person granted, and has later calls judged by it. The returned function withdraws
   * the grant. Rejects with a HarnessError where it cannot be granted.
   */
  readonly grant: (said: GrantSaid, signal: AbortSignal) => Promise<() => void>;
  readonly outputs: Outputs;
  /** The verified box, the same each time unless a lost one was replaced; rejects when there can be none. */
  readonly box: () => Promise<Box>;
  /** Starts the box in the background. */
  readonly warm: () => void;
  /** For the model when a parked turn is resumed; left out, the box is a new one. */
  readonly boxNote?: string;
  /** Aborted when there can be no box, or none any more; its reason is a HarnessError. */
  readonly noBox: AbortSignal;
  /** Left out where a box that is lost ends the run. */
  readonly recovery?: BoxRecovery;
  readonly writes: WriteOrder;
  /** What became of every call, in order. */
  readonly ended: EndedCall[];
  /** Emits the events of waiting calls, once their question is stored; dropped where the run ends otherwise. */
  readonly onceParked: (() => void)[];
  readonly deeds: Deeds;
  readonly now: () => number;
  readonly intent: RunIntent;
  /** The hooks of the user and of the project; subagents share them. */
  readonly hooks: Hooks;
  /** Masks secrets in what is sent to a model that is not local. */
  readonly clean: (text: string) => string;
}

/** What the loop works with. A subagent has a memory of its own, and shares the rest with its parent. */
export interface AgentContext extends SharedContext {
  /** The same list in every request unless what users added changes: a changed list voids the server's prompt cache. */
  readonly tools: readonly AnyTool[];
  readonly history: History;
  /** Takes the history, and what goes with it, back to a count. */
  readonly rollBack: (to: number) => void;
  readonly compactor: Compactor;
  readonly size: PromptSize;
  readonly guard: Guard;
  readonly malformed: Malformed;
  readonly answer: AnswerGate;
  /** What an answer must prove to end the run; null where a person or another agent reads it. */
  readonly ends: EndRules | null;
  readonly next: NextReply;
  /** What the box found out about the workspace, told to the model once with the next results. */
  readonly briefing: () => Promise<string | undefined>;
  readonly emit: Emit;
  /** Its tasks in the background; a subagent has none. */
  readonly tasks?: BackgroundTasks;
  /** Stops its loop between two turns, as if it was cancelled there. */
  readonly pause?: AbortSignal;
}

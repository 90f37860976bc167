import type { Checkpoints, EndedCall, Outputs } from "../core/session.ts";
import type { Mode } from "../core/decision.ts";
import type { Emit } from "../core/events.ts";
import type { AnyTool, Hooks } from "../core/tool.ts";
import type { Approver, Box, BoxRecovery } from "../core/ports.ts";
import type { Provider, ToolOffer } from "../core/model-provider.ts";
import type { AnswerGrant } from "../core/network.ts";
import type { Judge } from "./action-judge.ts";
import type { BackgroundTasks, WriteOrder } from "./background-tasks.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History, PromptSize } from "./context/history.ts";
import type { AnswerGate } from "./ending/outcome.ts";
import type { Deeds } from "./ending/deeds.ts";
import type { EndRules } from "./ending/end-rules.ts";
import type { RunIntent } from "./ending/intent.ts";
import type { Guard, Limits, Malformed, Spent } from "./limits.ts";
import type { NextReply } from "./next-reply.ts";

/** Shared by a run and all its subagents. */
interface SharedContext {
  readonly model: string;
  /** The model has few parameters: it repeats itself, and writes part of a file as if it were the whole. */
  readonly isWeak: boolean;
  readonly provider: Provider;
  readonly mode: Mode;
  readonly limits: Limits;
  readonly spent: Spent;
  readonly checkpoints: Checkpoints;
  /** Loads the policy and its tables on first use. */
  readonly judge: () => Promise<Judge>;
  readonly approver: Approver;
  /**
   * Opens the box's network to what a person granted, and includes the grant when later calls are judged. The returned
   * function withdraws the grant. Rejects with a HarnessError when it cannot be granted.
   */
  readonly grant: (grant: AnswerGrant, signal: AbortSignal) => Promise<() => void>;
  readonly outputs: Outputs;
  /** The verified box. It is the same each time unless a lost one was replaced. Rejects when there can be none. */
  readonly box: () => Promise<Box>;
  /** Starts the box in the background. */
  readonly warm: () => void;
  /** For the model when a parked turn is resumed; left out when the box is a new one. */
  readonly boxNote?: string;
  /** Aborted when there can be no box, or none any more; its reason is a HarnessError. */
  readonly noBox: AbortSignal;
  /** Left out when losing the box ends the run. */
  readonly recovery?: BoxRecovery;
  readonly writes: WriteOrder;
  /** The outcome of every call, in order. */
  readonly ended: EndedCall[];
  /** Emit the events of waiting calls once their question is stored; dropped if the run ends otherwise. */
  readonly onceParked: (() => void)[];
  readonly deeds: Deeds;
  readonly now: () => number;
  readonly intent: RunIntent;
  /** The hooks of the user and of the project, shared by subagents. */
  readonly hooks: Hooks;
  /** Masks secrets in text sent to a model that is not local. */
  readonly clean: (text: string) => string;
}

/** What the loop works with. A subagent has its own memory and shares the rest with its parent. */
export interface AgentContext extends SharedContext {
  /** The same list in every request unless users' extensions change: a change voids the server's prompt cache. */
  readonly tools: readonly AnyTool[];
  /** What the model is told of them; a small model is told of fewer. */
  readonly offers: readonly ToolOffer[];
  readonly history: History;
  /** Rolls the history, and what belongs to it, back to a count. */
  readonly rollBack: (to: number) => void;
  readonly compactor: Compactor;
  readonly size: PromptSize;
  readonly guard: Guard;
  readonly malformed: Malformed;
  readonly answer: AnswerGate;
  /** What an answer must prove to end the run; null when a person or another agent reads it. */
  readonly ends: EndRules | null;
  readonly next: NextReply;
  /** What the box found out about the workspace, told to the model once with the next results. */
  readonly briefing: () => Promise<string | undefined>;
  readonly emit: Emit;
  /** Background tasks of the agent; a subagent has none. */
  readonly tasks?: BackgroundTasks;
  /** Stops the loop between two turns, as if it were cancelled there. */
  readonly pause?: AbortSignal;
}

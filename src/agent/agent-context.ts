import type { Checkpoints } from "../core/checkpoint-port.ts";
import type { Mode } from "../core/decision.ts";
import type { Emit, Intent } from "../core/events.ts";
import type { Provider } from "../core/model-provider.ts";
import type { Approver, Box } from "../core/ports.ts";
import type { EndedCall, Outputs } from "../core/session.ts";
import type { AnyTool } from "../core/tool.ts";
import type { Judge } from "./action-judge.ts";
import type { Compactor } from "./context/compaction.ts";
import type { History } from "./context/history.ts";
import type { PromptSize } from "./context/prompt-size.ts";
import type { AnswerGate } from "./final-answer.ts";
import type { Limits, Spent } from "./limits.ts";
import type { Guard, Malformed } from "./repetition-guard.ts";

/** What one run and all its subagents share. */
interface Ground {
  readonly model: string;
  readonly provider: Provider;
  readonly mode: Mode;
  readonly limits: Limits;
  readonly spent: Spent;
  readonly checkpoints: Checkpoints;
  /** Loaded with its tables when it is first asked for. */
  readonly judge: () => Promise<Judge>;
  readonly approver: Approver;
  readonly outputs: Outputs;
  /** Verified, and the same each time; rejects when there can be none. */
  readonly box: () => Promise<Box>;
  /** Has the box begin to start. */
  readonly warm: () => void;
  /** Said to the model where a parked turn goes on; left out, the box is a new one. */
  readonly boxNote?: string;
  /** Fires when there can be no box, or no more; its reason is a HarnessError. */
  readonly walls: AbortSignal;
  /** What became of every call, in order. */
  readonly ended: EndedCall[];
  readonly now: () => number;
  /** Takes secrets out of what leaves for a model that is not local. */
  readonly clean: (text: string) => string;
}

/** What the loop works with. A subagent sits on another seat: its own memory and offer, the ground shared. */
export interface Seat extends Ground {
  /** All of them; `offer` says which the model sees. */
  readonly tools: readonly AnyTool[];
  readonly offer: Offer;
  readonly history: History;
  /** Takes the history, and what goes with it, back to a count. */
  readonly rollBack: (to: number) => void;
  readonly compactor: Compactor;
  readonly size: PromptSize;
  readonly guard: Guard;
  readonly malformed: Malformed;
  readonly answer: AnswerGate;
  /** Said to the model with the next results, once: what the box knows of the workspace. */
  readonly briefing: () => Promise<string | undefined>;
  readonly emit: Emit;
}

/** The tools that the model sees. They only ever grow, as each change makes servers read the prompt anew. */
export class Offer {
  #tools: readonly AnyTool[] = [];
  #intent: Intent = "direct";
  #fixed = false;

  get tools(): readonly AnyTool[] {
    return this.#tools;
  }

  get intent(): Intent {
    return this.#intent;
  }

  /** The user has said what is wanted, so no call of the model makes it more. */
  get fixed(): boolean {
    return this.#fixed;
  }

  widen(intent: Intent, tools: readonly AnyTool[], fixed = false): void {
    this.#intent = intent;
    this.#fixed = fixed;
    if (tools.length > this.#tools.length) this.#tools = tools;
  }
}

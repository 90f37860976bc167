import type { Emit } from "./events.ts";
import type { HookOwner } from "./hook-form.ts";
import type { ToolCall } from "./messages.ts";
import type { ToolResult } from "./tool.ts";

/** What a hook call needs from the run. */
export interface HookAsker {
  /** Emits events of the agent that the hook runs for. */
  readonly emit: Emit;
  readonly signal: AbortSignal;
}

/** What becomes of a call before the policy judges it. */
export type BeforeCall =
  | {
      readonly kind: "goes_on";
      /** The same object if nothing was changed. */
      readonly args: ToolCall["args"];
      /** The hook that changed the arguments last; left out if none did. */
      readonly by?: string;
    }
  /** The call is not run. */
  | { readonly kind: "vetoed"; readonly by: string; readonly owner: HookOwner; readonly reason: string };

export type AtStop =
  | { readonly kind: "answers"; readonly text: string }
  /** The answer is not the end; this text goes to the model. */
  | { readonly kind: "continues"; readonly text: string };

/**
 * The answers of a run's hooks, as the loop sees them. Whatever hooks say is judged, guarded and recorded like the
 * model's words: they cannot approve anything. Rejects only when the box is lost.
 */
export interface Hooks {
  readonly before: (call: ToolCall, asker: HookAsker) => Promise<BeforeCall>;
  /** What the model is told of a result; undefined if no hook ran. A hook may also have changed files. */
  readonly after: (call: ToolCall, result: ToolResult, asker: HookAsker) => Promise<string | undefined>;
  /** After a number of continuations it is no longer asked, so that every request ends. */
  readonly stop: (answer: string, asker: HookAsker) => Promise<AtStop>;
  /** Call when a request of the user begins; the text follows the request to the model. Empty when there is none. */
  readonly begin: (asker: HookAsker) => Promise<string>;
  /** Text to keep word for word beside the summary of older messages; empty when there is none. */
  readonly compacting: (trigger: string, asker: HookAsker) => Promise<string>;
}

export const NO_HOOKS: Hooks = {
  before: ({ args }) => Promise.resolve({ kind: "goes_on", args }),
  after: () => Promise.resolve(undefined),
  stop: (text) => Promise.resolve({ kind: "answers", text }),
  begin: () => Promise.resolve(""),
  compacting: () => Promise.resolve(""),
};

import type { Emit } from "./events.ts";
import type { HookOwner } from "./hook-form.ts";
import type { ToolCall } from "./messages.ts";
import type { ToolResult } from "./tool.ts";

/** Who asks. */
export interface HookAsker {
  /** Of the agent that it is asked for. */
  readonly emit: Emit;
  readonly signal: AbortSignal;
}

/** What becomes of a call before anything judges it. */
export type BeforeCall =
  | {
      readonly kind: "goes_on";
      /** The same object where nothing was changed. */
      readonly args: ToolCall["args"];
      /** Who changed it last; left out where nobody did. */
      readonly by?: string;
    }
  /** It is not run. */
  | { readonly kind: "vetoed"; readonly by: string; readonly owner: HookOwner; readonly reason: string };

export type AtStop =
  | { readonly kind: "answers"; readonly text: string }
  /** The answer is not the end: this is said to the model. */
  | { readonly kind: "continues"; readonly text: string };

/**
 * What the hooks of a run say, as its loop sees them. Whatever they say is judged, guarded and recorded as what the model
 * says: there is no approval among it. Only the loss of the box rejects.
 */
export interface Hooks {
  readonly before: (call: ToolCall, asker: HookAsker) => Promise<BeforeCall>;
  /** What the model is told of a result; undefined where no hook was asked, which may have changed files as well. */
  readonly after: (call: ToolCall, result: ToolResult, asker: HookAsker) => Promise<string | undefined>;
  /** Asked so often that it goes on, it no longer is: a request has an end. */
  readonly stop: (answer: string, asker: HookAsker) => Promise<AtStop>;
  /** A request of the user begins: said to the model behind the first one; empty where there is nothing. */
  readonly begin: (asker: HookAsker) => Promise<string>;
  /** Kept word for word beside the summary of older messages; empty where there is nothing. */
  readonly compacting: (trigger: string, asker: HookAsker) => Promise<string>;
}

export const NO_HOOKS: Hooks = {
  before: ({ args }) => Promise.resolve({ kind: "goes_on", args }),
  after: () => Promise.resolve(undefined),
  stop: (text) => Promise.resolve({ kind: "answers", text }),
  begin: () => Promise.resolve(""),
  compacting: () => Promise.resolve(""),
};

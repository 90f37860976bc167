import type { Hooks } from "./hooks.ts";
import type { AnyTool } from "./tool.ts";

/**
 * What users add to a run, as its loop sees it. Whatever acts is a tool that is judged as any other, or a command that runs
 * in the box: there is no way around the policy.
 */
export interface Extensions extends AsyncDisposable {
  /**
   * Behind the built-in ones, as they are now: servers come, change and go. The same list as long as nothing changed, as
   * another one has servers of models read the whole prompt anew. None has the name of a built-in tool.
   */
  readonly tools: () => readonly AnyTool[];
  /** Said at the end of the system prompt of a new session; empty where there is nothing. */
  readonly prompt: string;
  /** Before the first request of a run, and before each of a person: what takes time to come is waited for, within bounds. */
  readonly ready?: () => Promise<void>;
  /** Ends what it keeps going in the box, which is about to be parked. Only disposing follows. */
  readonly rest?: () => Promise<void>;
  /** Who is asked at the fixed places of a run; left out where nobody is. */
  readonly hooks?: Hooks;
}

export const NO_EXTENSIONS: Extensions = {
  tools: () => NO_TOOLS,
  prompt: "",
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
const NO_TOOLS: readonly AnyTool[] = [];

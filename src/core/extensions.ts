import type { Hooks } from "./hooks.ts";
import type { AnyTool } from "./tool.ts";

/**
 * What users add to a run, as its loop sees it. Everything that acts is a tool that is judged like any other, or a
 * command that runs in the box: nothing gets around the policy.
 */
export interface Extensions extends AsyncDisposable {
  /**
   * Added tools, listed after the built-in ones. Servers come, change and go; the returned list is the same object as
   * long as nothing changed, because another list makes model servers read the whole prompt again. No tool has the name
   * of a built-in one.
   */
  readonly tools: () => readonly AnyTool[];
  /** Added at the end of a new session's system prompt; empty when there is nothing. */
  readonly prompt: string;
  /** Call before a run's first request, and before each of a person: waits, within limits, for slow tools. */
  readonly ready?: () => Promise<void>;
  /** Ends what the extensions keep running in the box before it is parked. Only disposing follows. */
  readonly rest?: () => Promise<void>;
  /** Asked at fixed places of a run; left out when there are no hooks. */
  readonly hooks?: Hooks;
}

export const NO_EXTENSIONS: Extensions = {
  tools: () => NO_TOOLS,
  prompt: "",
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
const NO_TOOLS: readonly AnyTool[] = [];

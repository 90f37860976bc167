import type { z } from "zod";
import type { Box } from "./ports.ts";

/** The single thing that ended a call. */
export type Cause =
  | "program"
  | "policy"
  | "filesystem"
  | "network"
  | "memory"
  | "pids"
  | "disk"
  | "timeout"
  | "user";

interface Ended {
  /** Bounded; what was cut is said in the text itself. */
  readonly text: string;
  /** Where the full output is kept, when the text is not all of it. */
  readonly full?: string;
}

/** Every way a tool call can end. Nothing throws into the loop. */
export type ToolResult =
  | (Ended & { readonly kind: "ok" })
  | (Ended & { readonly kind: "failed" | "blocked" | "denied"; readonly cause: Cause })
  | (Ended & { readonly kind: "invalid"; readonly issues: readonly string[] })
  | (Ended & { readonly kind: "timed_out"; readonly cause: "timeout" })
  | (Ended & { readonly kind: "cancelled"; readonly cause: "user" });

/** What a call will touch, stated before it runs, for the policy to judge. */
export interface Facts {
  readonly commands: readonly string[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly hosts: readonly string[];
}

export interface Tool<I> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<I>;
  facts(input: I): Facts;
  /** Must not throw; the input is frozen. */
  run(input: I, box: Box, signal: AbortSignal): Promise<ToolResult>;
}

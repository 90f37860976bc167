import type { Decision } from "./decision.ts";
import type { ToolCall } from "./messages.ts";
import type { ToolResult } from "./tool.ts";

interface Stamp {
  readonly run: string;
  readonly seq: number;
}

/** Everything observable. Screen, JSON lines, session log and tests only subscribe. */
export type AgentEvent = Stamp &
  (
    | { readonly type: "run.started"; readonly task: string }
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "call.proposed"; readonly call: string; readonly proposal: ToolCall }
    | { readonly type: "call.decided"; readonly call: string; readonly decision: Decision }
    | { readonly type: "call.ended"; readonly call: string; readonly result: ToolResult }
    | {
        readonly type: "run.finished";
        readonly status: string;
        readonly exit_code: number;
        readonly reason: string;
      }
  );

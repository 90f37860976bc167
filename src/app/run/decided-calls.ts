import type { Verdict } from "../../core/decision.ts";
import type { AgentEvent } from "../../core/events.ts";

/** A call that was asked about or denied, and its outcome. */
export interface DecidedCall {
  readonly tool: string;
  /** The judged command or path; empty if the call itself was judged. */
  readonly what: string;
  readonly decision: Verdict;
  readonly runs: boolean;
  readonly by: Extract<AgentEvent, { readonly type: "call.decided" }>["by"];
  readonly rule: string;
  readonly reason: string;
}

/** A chat's latest calls that were not simply allowed, collected from its events. */
export class DecidedCalls {
  readonly #tools = new Map<string, string>();
  readonly #last: DecidedCall[] = [];

  get last(): readonly DecidedCall[] {
    return this.#last;
  }

  take(event: AgentEvent): void {
    if (event.type === "run.started") this.#tools.clear();
    if (event.type === "call.proposed") this.#tools.set(event.call, event.tool);
    if (event.type !== "call.decided" || (event.decision === "allow" && event.runs)) return;
    this.#last.push(decidedCall(event, this.#tools.get(event.call) ?? ""));
    if (this.#last.length > MAX) this.#last.shift();
  }
}

type Decided = Extract<AgentEvent, { readonly type: "call.decided" }>;

function decidedCall({ decision, runs, by, judged, rules }: Decided, tool: string): DecidedCall {
  const { commands = [], writes = [], reads = [] } = judged ?? {};
  const [what = ""] = [...commands, ...writes, ...reads];
  const [rule = { id: "", reason: "" }] = rules;
  return { tool, what, decision, runs, by, rule: rule.id, reason: rule.reason };
}

const MAX = 20;

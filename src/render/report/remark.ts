import { formatDuration } from "../../core/bounds.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Remark } from "./report.ts";

/** What is told of an event that is neither a reply nor a call. */
export function remarkOf(event: AgentEvent): Pick<Remark, "tone" | "text"> | undefined {
  switch (event.type) {
    case "intent":
      return { tone: "quiet", text: `taken for: ${event.intent} (by ${event.by})` };
    case "box.ready":
      return { tone: "quiet", text: `box ready after ${formatDuration(event.ms)}` };
    case "model.waiting":
      return {
        tone: "warning",
        text: `${event.reason}; asked again after ${formatDuration(event.ms)} (attempt ${event.attempt})`,
      };
    case "model.failed":
      return {
        tone: "error",
        text: [`model: ${event.reason}`, event.remedy].filter(Boolean).join("; next: "),
      };
    case "call.parked":
      return { tone: "warning", text: `waits for a word: ${event.tool} ${event.text}` };
    case "approval":
      return {
        tone: "warning",
        text: `${event.by} said ${event.said === "deny" ? "no" : `yes (${event.said})`} to: ${event.text}`,
      };
    case "notice":
      return { tone: "warning", text: event.text };
    case "compaction":
      return compactionOf(event);
    case "rolled_back":
      return { tone: "warning", text: `taken back to ${event.record_count} messages` };
    default:
      return undefined;
  }
}

function compactionOf({
  status,
  before,
  after,
  reason,
}: Extract<AgentEvent, { readonly type: "compaction" }>): Pick<Remark, "tone" | "text"> | undefined {
  const sizes = `about ${before} to ${after ?? "?"} tokens`;
  switch (status) {
    case "started":
      return undefined;
    case "pruned":
      return { tone: "quiet", text: `old results of tools left out: ${sizes}` };
    case "succeeded":
      return { tone: "quiet", text: `older turns summarised: ${sizes}` };
    case "failed":
      return { tone: "warning", text: `older turns not summarised: ${reason}` };
  }
}

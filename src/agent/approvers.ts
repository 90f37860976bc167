import type { Answer, Approver, Question } from "../core/ports.ts";

/** Who answers where nobody is there to be asked. */

export type OnAsk = "refuse" | "contained";

/** By DESIGN's table: what stays inside the workspace and reaches no network runs, in workspace-write. */
export function unattended(onAsk: OnAsk): Approver {
  return { ask: (question) => Promise.resolve(answerTo(question, onAsk)) };
}

function answerTo({ mode, decision: { contained } }: Question, onAsk: OnAsk): Answer {
  // The policy has made an allow of it already; a rule of the user that says ask is all that is left.
  if (mode === "danger-full-access") return { runs: true, by: "mode", reason: "" };
  if (mode === "read-only") return refused("the mode is read-only, and nobody is there to be asked");
  if (onAsk === "refuse") return refused("nobody is there to be asked");
  if (contained) return { runs: true, by: "contained", reason: "" };
  return refused("nobody is there to be asked, and it reaches out of the workspace");
}

const refused = (reason: string): Answer => ({ runs: false, by: "nobody", reason });

import type { Decision, Mode } from "../../core/decision.ts";

/** Whether it runs where nobody is there to be asked. */
export const runsUnattended = (
  { decision, contained }: Pick<Decision, "decision" | "contained">,
  mode: Mode,
): boolean => decision === "allow" || (decision === "ask" && contained && mode !== "read-only");

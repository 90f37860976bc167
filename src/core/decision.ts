export const MODES = ["read-only", "workspace-write", "danger-full-access"] as const;
export type Mode = (typeof MODES)[number];

/** Ordered from mild to strict, so that the strictest of several is a maximum. */
export const VERDICTS = ["allow", "ask", "deny"] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface MatchedRule {
  readonly id: string;
  readonly reason: string;
  /** Offsets into the judged text, end exclusive. */
  readonly span: readonly [start: number, end: number];
}

/** The verdict of the policy on one action. It can restrict; it can never loosen the sandbox. */
export interface Decision {
  readonly decision: Verdict;
  /**
   * The box alone contains it: it stays in the workspace and /tmp, undo reverts it, and it reaches only granted hosts.
   */
  readonly contained: boolean;
  readonly rules: readonly MatchedRule[];
}

/** How an unattended run treats `ask`: refuse, run when contained, or park until a person answers. */
export type OnAsk = "refuse" | "contained" | "park";

/** Whether an action runs when nobody is there to be asked, by the table of modes. No other place decides this. */
export function runsUnattended(
  { decision, contained }: Pick<Decision, "decision" | "contained">,
  mode: Mode,
  onAsk: OnAsk = "contained",
): boolean {
  if (decision !== "ask") return decision === "allow";
  if (mode === "danger-full-access") return true;
  return mode === "workspace-write" && contained && onAsk !== "refuse";
}

/** An empty list is deny, and so is an unknown word: nothing judged means nothing understood. */
export function strictest(verdicts: readonly Verdict[]): Verdict {
  const ranks = verdicts.map((verdict) => VERDICTS.indexOf(verdict));
  return ranks.includes(-1) ? "deny" : (VERDICTS[Math.max(...ranks)] ?? "deny");
}

/** Where an added program does its work. `host`: outside the box, which only the user's own settings can allow. */
export const PROGRAM_PLACES = ["box", "host"] as const;
export type ProgramPlace = (typeof PROGRAM_PLACES)[number];

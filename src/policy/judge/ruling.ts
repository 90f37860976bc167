import type { Verdict } from "../../core/decision.ts";
import type { Span } from "../shell/syntax.ts";

/** What one effect, or one flaw of the text, is worth. */
export interface Ruling {
  readonly id: string;
  readonly reason: string;
  readonly span: Span;
  /** In workspace-write; read-only may be stricter. */
  readonly verdict: Verdict;
  readonly readOnly: Verdict;
  readonly contained: boolean;
}

export type Worth = Pick<Ruling, "verdict" | "readOnly" | "contained">;

export const HARMLESS: Worth = { verdict: "allow", readOnly: "allow", contained: true };
/** Allowed where the workspace may change. */
export const IN_WORKSPACE: Worth = { verdict: "allow", readOnly: "ask", contained: true };
export const CONTAINED: Worth = { verdict: "ask", readOnly: "ask", contained: true };
export const ASKED: Worth = { verdict: "ask", readOnly: "ask", contained: false };
export const DENIED: Worth = { verdict: "deny", readOnly: "deny", contained: false };

import type { GrantSaid } from "../core/network.ts";
import type { Answer, Question } from "../core/ports.ts";
import type { RuleForm } from "../policy/rule.ts";

/** What is wanted of one part of a change, and with `all` and `quit` of what follows. */
export type PartAnswer = "yes" | "no" | "all" | "quit";

/**
 * Yes with what the question names granted, and for how long; where it names nothing, yes for the session or, by a rule,
 * always. Or yes and no as it stands, a no with a word to the model, or another command in place of the one that was asked.
 */
export type Reply =
  | "yes"
  | "no"
  | "interrupt"
  | GrantSaid["for"]
  | { readonly no: string }
  | { readonly edited: string };

/** The user's rules that would allow it from now on, as they would be written; or why there can be none. */
export type RulesShown =
  | {
      readonly kind: "rules";
      readonly rules: readonly RuleForm[];
      /** As they would stand in the file; nothing of it acts on a terminal. */
      readonly text: string;
      readonly file: string;
    }
  | { readonly kind: "none"; readonly reason: string };

/** The person at the terminal. Where nobody is there, there is no prompter. */
export interface Prompter {
  /** No, unless it is answered with yes. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** Whether one part of a change is wanted; the end of the input is `quit`. */
  readonly pickPart: () => Promise<PartAnswer>;
  /** Shows a call that waits, and reads the answer. */
  readonly approve: (
    question: Question,
    signal: AbortSignal,
    rulesFor: (question: Question) => Promise<RulesShown>,
  ) => Promise<Reply>;
}

/** What needs no person, though one is there. */
export function settledByMode({ mode, writes }: Pick<Question, "mode" | "writes">): Answer | undefined {
  // The policy has made an allow of it already; a rule of the user that says ask is all that is left.
  if (mode === "danger-full-access") return { runs: true, by: "mode", reason: "" };
  if (mode === "read-only" && writes) return { runs: false, by: "mode", reason: "the mode is read-only" };
  return undefined;
}

import type { GrantSaid } from "../core/network.ts";
import type { Answer, Approver, Question } from "../core/ports.ts";
import { isSameQuestion } from "../core/session.ts";
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

export const YES: Answer = { runs: true, by: "person", reason: "" };
export const NO: Answer = { runs: false, by: "person", reason: "" };

/** A person who is there: the answer never has to wait for another process. */
export interface Person extends Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

/** Asks a person one thing at a time, and what is settled for the session not again. */
export function askedInTurn(settled: () => readonly Question[], ask: Person["ask"]): Person {
  let last: Promise<unknown> = Promise.resolve();
  const after = async (earlier: Promise<unknown>, ...[question, signal]: Parameters<Person["ask"]>) => {
    await earlier.catch(() => undefined);
    if (signal.aborted) return NO;
    return settled().some((each) => isSameQuestion(each, question)) ? YES : ask(question, signal);
  };
  return {
    ask: (question, signal) => {
      const known = settledByMode(question);
      if (known !== undefined) return Promise.resolve(known);
      const answer = after(last, question, signal);
      last = answer;
      return answer;
    },
  };
}

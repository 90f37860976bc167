import { askedInTurn, type LastingRules, NO, type Person, type Reply, YES } from "../../app/run/prompter.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import type { Answer, Question } from "../../core/ports.ts";
import { type Session, settledIn } from "../../core/session.ts";

export interface Asking {
  /** Shows the question and waits for a person's keys. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Reply>;
  /** A person who interrupts the question ends the request. */
  readonly cancel: () => void;
  /** Questions that were approved for this session. */
  readonly settled: () => readonly Question[];
  /** Records a yes that lasts longer than a call. */
  readonly keep: (question: Question, term: "session" | "always") => Promise<void>;
}

/** Where a yes that lasts longer than a call is recorded. */
export function sessionYes(
  session: () => Session | undefined,
  lasting: LastingRules,
  quiet: boolean,
): Pick<Asking, "settled" | "keep"> {
  return {
    settled: () => settledIn(session()?.records() ?? []),
    keep: async (question, term) => {
      session()?.append({ kind: "answered", question, word: term });
      if (term === "session") return;
      const written = await lasting.write(question);
      if (written.kind === "written") noteTo(quiet)(`allowed from now on by ${written.file}`);
      else noteTo(false)(`no rule was written: ${written.reason}; it is allowed for this session`);
    },
  };
}

/** A person at the terminal, who is asked one thing at a time, and not again about what they approved for longer. */
export function person({ ask, cancel, settled, keep }: Asking): Person {
  const answered = async (question: Question, reply: Reply): Promise<Answer> => {
    if (typeof reply === "object")
      return "no" in reply ? { ...NO, word: reply.no } : { ...NO, edited: reply.edited };
    if (reply === "interrupt") cancel();
    if (reply === "yes") return YES;
    if (reply === "no" || reply === "interrupt") return NO;
    const domains = question.grants ?? [];
    if (domains.length > 0) return { ...YES, grant: { domains, for: reply } };
    // The question named nothing that could be granted.
    if (reply === "call") return YES;
    await keep(question, reply);
    return YES;
  };
  return askedInTurn(settled, async (question, signal) => answered(question, await ask(question, signal)));
}

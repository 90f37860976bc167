import type { Answer, Approver, Question } from "../../core/ports.ts";
import type { Reply } from "./yes-no.ts";

export interface Asking {
  /** Shows the question and waits for the keys of a person. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Reply>;
  /** A person who interrupts the question ends the request. */
  readonly cancel: () => void;
}

export interface Person extends Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

/** A person at the terminal, who is asked one thing at a time. */
export function person({ ask, cancel }: Asking): Person {
  let last: Promise<unknown> = Promise.resolve();
  const behind = async (earlier: Promise<unknown>, question: Question, signal: AbortSignal) => {
    await earlier.catch(() => undefined);
    if (signal.aborted) return NO;
    const reply = await ask(question, signal);
    if (reply === "interrupt") cancel();
    return reply === "yes" ? YES : NO;
  };
  return {
    ask: (question, signal) => {
      const settled = byMode(question);
      if (settled !== undefined) return Promise.resolve(settled);
      const answer = behind(last, question, signal);
      last = answer;
      return answer;
    },
  };
}

const YES: Answer = { runs: true, by: "person", reason: "" };
const NO: Answer = { runs: false, by: "person", reason: "" };

/** What needs no person: by DESIGN's table of modes. */
function byMode({ mode, writes }: Question): Answer | undefined {
  // The policy has made an allow of it already; a rule of the user that says ask is all that is left.
  if (mode === "danger-full-access") return { runs: true, by: "mode", reason: "" };
  if (mode === "read-only" && writes) return { runs: false, by: "mode", reason: "the mode is read-only" };
  return undefined;
}

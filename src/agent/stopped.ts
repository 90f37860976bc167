import type { Parked, ParkedChild } from "../core/parked.ts";
import type { Question } from "../core/ports.ts";

/** What waits when a loop stops at a call that needs a person. */
export type Waiting = Pick<Parked, "question" | "malformed" | "children">;

/** Thrown by a call that cannot go on without a person, through the tool that has started a subagent too. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly question: Question;
  /** The subagent that it was asked in. */
  readonly child: ParkedChild | undefined;

  constructor(question: Question, child?: ParkedChild) {
    super("it waits for a person");
    this.question = question;
    this.child = child;
  }
}

/** For people: what waits, and why. */
export function waitsFor({ tool, text, decision: { rules } }: Question): string {
  const [rule] = rules;
  const why = rule === undefined ? "" : ` (${rule.reason})`;
  return `${[tool, text].filter(Boolean).join(": ")}${why}`;
}

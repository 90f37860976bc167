import { headWithin } from "../core/bytes.ts";
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

/** For the model, with the first results that come after it. */
export const NEW_BOX =
  "A person was asked about this, which took time. The box is a new one: background jobs and /tmp are gone, and files may have changed.";

/** The same where the box has waited with it. */
export const SAME_BOX =
  "A person was asked about this, which took time. The box has waited: background jobs and /tmp are as they were, but files of the workspace may have changed.";

/** All of it stands with the question. */
const NAMED = 300;

/** For people: what waits, and why. */
export function waitsFor({ tool, text, decision: { rules } }: Question): string {
  const [rule] = rules;
  const why = rule === undefined ? "" : ` (${rule.reason})`;
  const head = headWithin(text, NAMED);
  return `${[tool, head === text ? text : `${head}…`].filter(Boolean).join(": ")}${why}`;
}

import type { Message } from "../../core/messages.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { NOTICE } from "../context/history.ts";
import type { LoopEnd } from "./outcome.ts";

/** What is done with a reply that calls nothing. */
export interface AnswerGate {
  /** What the next reply should fit. */
  readonly format: () => JsonSchema | undefined;
  /** The end, or a message to the model that asks for more. `circled`: it was cut because it said the same over and over. */
  take(text: string, cut: boolean, circled?: boolean): LoopEnd | Extract<Message, { readonly role: "user" }>;
  /** The model called something: what it said before is no beginning of its answer. */
  called(): void;
}

/** A reply that the server cut at its length has so many parts at most; cut once more, it is no answer. */
const MAX_PARTS = 3;

const brokenOff = (times: number): LoopEnd => ({
  how: "model_broken",
  reason: `The model's answer was cut at its length limit ${times} times in a row, and has no end.`,
});

/** Nothing of it is gone on with: that would be the circle again. */
class Rounds {
  #inARow = 0;

  over(): void {
    this.#inARow = 0;
  }

  take(): ReturnType<AnswerGate["take"]> {
    this.#inARow += 1;
    if (this.#inARow >= MAX_PARTS)
      return {
        how: "model_broken",
        reason: `The model said the same over and over, ${this.#inARow} replies in a row.`,
      };
    return {
      role: "user",
      text: `${NOTICE}You said the same over and over, so your reply was ended, and nothing of it counts. Begin anew: make one call, or give your answer in a few sentences.`,
    };
  }
}

export class PlainAnswer implements AnswerGate {
  readonly #parts: string[] = [];
  readonly #rounds = new Rounds();

  format(): undefined {
    return undefined;
  }

  called(): void {
    this.#parts.length = 0;
    this.#rounds.over();
  }

  take(text: string, cut: boolean, circled = false): ReturnType<AnswerGate["take"]> {
    if (circled) {
      this.#parts.length = 0;
      return this.#rounds.take();
    }
    this.#rounds.over();
    this.#parts.push(text);
    if (!cut) return { how: "answered", text: this.#parts.splice(0).join("") };
    if (this.#parts.length >= MAX_PARTS) return brokenOff(this.#parts.length);
    return {
      role: "user",
      text: `${NOTICE}Your reply was cut at its length limit. Go on exactly where it stopped.`,
    };
  }
}

/** What a schema says of a text: the JSON in it, or what is wrong. */
export type CheckAnswer = (
  text: string,
) => { readonly json: string } | { readonly issues: readonly string[] };

const MAX_REPAIRS = 3;

/** The answer has to be JSON of a form; the model is told what is wrong, a few times. */
export class FittedAnswer implements AnswerGate {
  #repairs = 0;
  readonly #rounds = new Rounds();
  readonly #schema: JsonSchema;
  readonly #check: CheckAnswer;

  constructor(schema: JsonSchema, check: CheckAnswer) {
    this.#schema = schema;
    this.#check = check;
  }

  format(): JsonSchema | undefined {
    // Before the first answer a format would keep the model from calling tools.
    return this.#repairs === 0 ? undefined : this.#schema;
  }

  called(): void {
    this.#rounds.over();
  }

  take(text: string, cut: boolean, circled = false): ReturnType<AnswerGate["take"]> {
    if (circled) return this.#rounds.take();
    this.#rounds.over();
    // The beginning of a number is one, too.
    const checked = cut ? { issues: ["it was cut at its length limit"] } : this.#check(text);
    if ("json" in checked) return { how: "answered", text: checked.json };
    const issues = checked.issues.join("; ");
    if (cut && this.#repairs >= MAX_REPAIRS) return brokenOff(this.#repairs + 1);
    if (this.#repairs >= MAX_REPAIRS)
      return { how: "misfit", reason: `the answer does not fit the output schema: ${issues}` };
    this.#repairs += 1;
    return {
      role: "user",
      text: `${NOTICE}The final answer must be JSON alone that fits this schema:\n${JSON.stringify(this.#schema)}\nWrong with yours: ${issues}\nAnswer again with nothing but the JSON.`,
    };
  }
}

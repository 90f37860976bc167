import type { Message } from "../../core/messages.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { NOTICE } from "../context/history.ts";
import type { LoopEnd } from "./outcome.ts";

/** Decides what happens with a reply that calls nothing. */
export interface AnswerGate {
  /** The format for the next reply. */
  readonly format: () => JsonSchema | undefined;
  /** Returns the end, or a message that asks for more. `circled`: the reply was cut because it repeated itself. */
  take(text: string, cut: boolean, circled?: boolean): LoopEnd | Extract<Message, { readonly role: "user" }>;
  /** The model called something: its earlier text is not the beginning of its answer. */
  called(): void;
}

/** Most parts of a reply that the server cuts at its length limit; after one more cut it is not an answer. */
const MAX_PARTS = 3;

const brokenOff = (times: number): LoopEnd => ({
  how: "model_broken",
  reason: `The model's answer was cut off at its length limit ${times} times in a row and never finished.`,
});

/** Handles replies that repeat themselves. They are not continued: that would only repeat them further. */
class RepeatedReplies {
  #inARow = 0;

  over(): void {
    this.#inARow = 0;
  }

  take(): ReturnType<AnswerGate["take"]> {
    this.#inARow += 1;
    if (this.#inARow >= MAX_PARTS)
      return {
        how: "model_broken",
        reason: `The model repeated itself endlessly in ${this.#inARow} replies in a row.`,
      };
    return {
      role: "user",
      text: `${NOTICE}You said the same over and over, so your reply was ended, and nothing of it counts. Begin anew: make one call, or give your answer in a few sentences.`,
    };
  }
}

export class PlainAnswer implements AnswerGate {
  readonly #parts: string[] = [];
  readonly #rounds = new RepeatedReplies();

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

/** Checks a text against a schema: returns its JSON, or what is wrong. */
export type CheckAnswer = (
  text: string,
) => { readonly json: string } | { readonly issues: readonly string[] };

const MAX_REPAIRS = 3;

/** The answer has to be JSON that fits a schema; the model is told what is wrong, a few times. */
export class FittedAnswer implements AnswerGate {
  #repairs = 0;
  readonly #rounds = new RepeatedReplies();
  readonly #schema: JsonSchema;
  readonly #check: CheckAnswer;

  constructor(schema: JsonSchema, check: CheckAnswer) {
    this.#schema = schema;
    this.#check = check;
  }

  format(): JsonSchema | undefined {
    // Before the first answer, a format would keep the model from calling tools.
    return this.#repairs === 0 ? undefined : this.#schema;
  }

  called(): void {
    this.#rounds.over();
  }

  take(text: string, cut: boolean, circled = false): ReturnType<AnswerGate["take"]> {
    if (circled) return this.#rounds.take();
    this.#rounds.over();
    // A cut-off number is still a valid number.
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

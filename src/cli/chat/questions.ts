import type { Question } from "../../core/ports.ts";
import { approvalText } from "../../render/tty/approval.ts";
import type { Keyboard } from "./keyboard.ts";
import { type Reply, YesNo } from "./yes-no.ts";
import { type Output } from "../../render/tty/output.ts";

export interface QuestionParts {
  readonly keyboard: Keyboard;
  readonly output: Output;
  /** Nothing else is written until what it gives is called. */
  readonly pause: () => () => void;
}

/** Questions on the terminal. Only keys that are pressed after one is on the screen answer it. */
export function questionsOn({ keyboard, output, pause }: QuestionParts) {
  return async (question: Question, signal: AbortSignal): Promise<Reply> => {
    const resume = pause();
    try {
      // What was typed before may still be on its way here; what comes behind the question is never dropped.
      for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      keyboard.drop();
      if (signal.aborted) return "no";
      output.write(approvalText(question, output));
      return await answered(keyboard, output, signal);
    } finally {
      resume();
    }
  };
}

function answered(keyboard: Keyboard, output: Output, signal: AbortSignal): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const answer = new YesNo();
  const end = (reply: Reply): void => {
    keyboard.done(take);
    signal.removeEventListener("abort", cancelled);
    resolve(reply);
  };
  const take: Parameters<Keyboard["read"]>[0] = (piece) => {
    const { echo, reply } = answer.take(piece);
    output.write(echo);
    if (reply !== undefined) end(reply);
  };
  const cancelled = (): void => {
    output.write("\n");
    end("no");
  };
  signal.addEventListener("abort", cancelled, { once: true });
  keyboard.read(take);
  return promise;
}

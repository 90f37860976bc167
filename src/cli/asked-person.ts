import { visible } from "../core/visible.ts";
import { fitted, widthOfStream, wrapped } from "../render/tty/columns.ts";
import { type Output, styleText } from "../render/tty/output.ts";
import type { AskPerson } from "../tools/tool-context.ts";
import { type Keyboard, Prompt } from "./terminal-input.ts";

interface PersonParts {
  readonly keyboard: Keyboard;
  readonly output: Output;
  /** Stops all other output until the returned function is called. */
  readonly pause: () => () => void;
  /** A person who interrupts the question ends the request. */
  readonly cancel: () => void;
}

/** Questions of the model, answered by a line of words or the number of a choice. */
export function personOn({ keyboard, output, pause, cancel }: PersonParts): AskPerson {
  return async (asked, signal) => {
    const resume = pause();
    const prompt = new Prompt(keyboard, output, () => [[], ""], "answer> ");
    const leave = (): void => prompt.leave();
    try {
      // Keys typed before the question are no answer.
      await new Promise((resolve) => setImmediate(resolve));
      keyboard.drop();
      if (signal.aborted) return undefined;
      output.write(questionText(asked, output));
      signal.addEventListener("abort", leave, { once: true });
      const line = await prompt.ask();
      if (line.kind === "interrupt") cancel();
      return line.kind === "line" ? answerIn(line.text, asked.choices) : undefined;
    } finally {
      signal.removeEventListener("abort", leave);
      resume();
    }
  };
}

/** No part of the model's text acts on the terminal. */
export function questionText({ question, choices }: Parameters<AskPerson>[0], output: Output): string {
  const width = widthOfStream(output) - 2;
  const words = visible(question)
    .split("\n")
    .flatMap((line) => wrapped(line, width));
  const rows = choices.map((choice, at) => `  ${at + 1}  ${fitted(choice, width - 5)}`);
  return ["", ...words.map((line) => styleText("bold", line, { stream: output })), ...rows, ""].join("\n");
}

/** An empty line is no answer; a number selects a choice if there is one with this number. */
export function answerIn(text: string, choices: readonly string[]): string | undefined {
  const said = text.trim();
  if (said === "") return undefined;
  return (/^[1-9]$/.test(said) ? choices[Number(said) - 1] : undefined) ?? said;
}

type Work<T> = () => Promise<T>;

/** Runs work one piece after the other, in order of arrival: there is only one keyboard. */
export function inTurn(): <T>(work: Work<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.catch(() => undefined).then(work);
    last = next;
    return next;
  };
}

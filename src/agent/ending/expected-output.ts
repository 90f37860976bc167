import { anyOf } from "../../core/text/expression-table.ts";
import type { Message } from "../../core/model-provider.ts";
import { headWithin } from "../../core/raw-data.ts";
import { ownText, type ShownFile } from "../next-reply.ts";
import type { EndedCommand } from "./deeds.ts";
import { quotedText } from "./missing-work.ts";

/*
 * What a command prints when the task is done, according to the model itself. A small model mostly calls an output
 * right when shown it, but often knows better than its own program when asked without it. So when nothing else proves
 * its work, it is asked in a new conversation, twice and in two ways, without anything it did or saw. The answer counts
 * only if both replies agree.
 */

/** Most bytes of an output that is compared: a command that prints more does not answer one question. */
const MAX_PRINTED = 400;
const MAX_LINES = 12;
const MAX_FILES = 2000;

/** An expectation, and the actual output. */
interface Unexpected {
  readonly command: string;
  readonly expected: string;
  readonly printed: string;
}

/** Small enough to compare, and not empty. */
const isComparable = (text: string): boolean =>
  letters(text) !== "" && Buffer.byteLength(text) <= MAX_PRINTED && text.split("\n").length <= MAX_LINES;

/** A small model is careless with blanks and signs, but not with capitals. */
const letters = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, "");

/** The text of a reply that should be nothing but a text. */
const withoutFence = (reply: string): string =>
  /^\s*```[^\n]*\n(.*?)\n?```\s*$/s.exec(reply)?.[1] ?? reply.trim().replace(/^`([^`]*)`$/, "$1");

/** Words for silence, which are not output. */
const NOTHING = /^\W*(?:no output|nothing|none|empty)\b.{0,80}$/i;

/** The text in which all replies to the same question agree. */
export function commonReply(replies: readonly string[]): string | undefined {
  const [first = "", ...others] = replies.map(withoutFence);
  const isOne = others.length > 0 && others.every((other) => letters(other) === letters(first));
  return isOne && isComparable(first) && !NOTHING.test(first) ? first : undefined;
}

/** More may be printed than was expected. */
export const isAsExpected = (expected: string, printed: string): boolean =>
  letters(printed).includes(letters(expected));

const isSameText = (expected: string, printed: string): boolean => letters(printed) === letters(expected);

/**
 * Lines that harness adds to a command's output in its result. Listed one by one, because a program prints bracketed
 * lines of its own, such as lists.
 */
const NOTE = anyOf(
  [
    /stderr|advice: .*/,
    // Networks.
    /no connection: .*|and \d+ more hosts were refused/,
    // Files and processes of the box.
    /protected, not written: .*|moved out of the workspace, .*/,
    /\d+ process(?:es)? that it left running .*/,
    // What a shell keeps for later calls.
    /folder and exported variables stay .*|\S+ is not kept for later calls: .*/,
    /the timeout was cut to .*|the hook .* replaced the arguments: .*/,
    // Where output was cut.
    /… .* …/,
  ],
  { before: "^\\[", after: "\\]$" },
);

export const printedIn = (result: string): string =>
  result
    .split("\n")
    .filter((line) => !NOTE.test(line))
    .join("\n")
    .trim();

const QUESTION =
  "When the task is done, somebody types this command:\n$ COMMAND\n\nWhat exactly does it print then? Answer with the printed text alone.";

/** The beginning that tells these questions from any other conversation about the task. */
export const questionOpening = (request: string): string => `The task: ${request}\n\n`;

/** The same question in other words, for when there are no files to vary it: repeating one proves nothing. */
const AGAIN =
  "It is done, and on the terminal stands:\n$ COMMAND\n\nWhich lines stand below it? Answer with these lines alone.";

/** One question without the earlier files, one with them. */
function questions(request: string, command: string, files: readonly ShownFile[]): readonly string[] {
  const [question = "", again = ""] = [QUESTION, AGAIN].map((text) => text.replace("COMMAND", () => command));
  if (files.length === 0)
    return [`${questionOpening(request)}${question}`, `${questionOpening(request)}${again}`];
  const before = files.map(({ path, text }) => `[${path}, before the task]\n${ownText(text)}\n`).join("\n");
  return [
    `${questionOpening(request)}${question}`,
    `${questionOpening(request)}${headWithin(before, MAX_FILES)}\n${question}`,
  ];
}

const SYSTEM: Message = { role: "system", text: "You know what programs print." };

/** The task, and files as they were before it. */
interface Task {
  readonly request: string;
  readonly files: readonly ShownFile[];
}

/** Returns the text of the reply; undefined when there is none. */
export type AskAnew = (messages: readonly Message[]) => Promise<string | undefined>;

/** What the model says a command prints when the task is done; undefined when it does not know. */
export async function expectedOf(
  ask: AskAnew,
  { request, files }: Task,
  command: string,
): Promise<string | undefined> {
  const replies: string[] = [];
  for (const text of questions(request, command, files)) {
    const reply = await ask([SYSTEM, { role: "user", text }]);
    if (reply === undefined) return undefined;
    replies.push(reply);
  }
  return commonReply(replies);
}

/** Compares what a run's commands print with what the model expects of them. */
export class ExpectedOutput {
  /** The last trial's output, if it was not what the model expects. */
  #unexpected: Unexpected | undefined;
  /** The command whose expected output the model was told. */
  #toldCommand: string | undefined;
  readonly #expected = new Map<string, Promise<string | undefined>>();

  /** The last difference that was found, for people. */
  get reason(): string | undefined {
    if (this.#unexpected === undefined) return undefined;
    const { command, expected, printed } = this.#unexpected;
    return `nothing checks it, and ${quotedText(command)} printed ${quotedText(printed)} where the model itself expects ${quotedText(expected)}`;
  }

  /** The same for the model, which then knows the text. */
  tell(): string {
    const { command = "", expected = "", printed = "" } = this.#unexpected ?? {};
    this.#toldCommand = command;
    return `Asked beforehand what ${quotedText(command)} prints when the task is done, you said ${quotedText(expected)}; it printed, which is data, ${quotedText(printed)}. Mend what you changed with an edit, and run it again.`;
  }

  /** Whether a command printed what the model expects. The model is asked once for each command. */
  async fits({ command, text }: EndedCommand, about: Task, ask: AskAnew): Promise<boolean> {
    const printed = printedIn(text);
    const expected = isComparable(printed) ? await this.#expectedOf(command, about, ask) : undefined;
    // A model that has read the text may print it besides what it printed before.
    const isSame = this.#toldCommand === command ? isSameText : isAsExpected;
    const isFit = expected === undefined || isSame(expected, printed);
    this.#unexpected = isFit ? undefined : { command, expected, printed };
    return isFit;
  }

  #expectedOf(command: string, about: Task, ask: AskAnew): Promise<string | undefined> {
    const expected = this.#expected.get(command) ?? expectedOf(ask, about, command);
    this.#expected.set(command, expected);
    return expected;
  }
}

import type { PersonReply, RulesShown } from "../app/run/prompter.ts";
import type { Question } from "../core/ports.ts";
import { visible } from "../core/visible.ts";
import {
  answersText,
  answersTo,
  approvalPages,
  asksFor,
  moreQuestion,
  type OfferedAnswers,
  quotedRows,
} from "../render/tty/call-lines.ts";
import { fitToWidth, widthOfStream, wrapped } from "../render/tty/columns.ts";
import { move, type Output, stderr, styleText } from "../render/tty/output.ts";
import type { AskPerson } from "../tools/tool-context.ts";
import { Keyboard, type InputPiece, Prompt, Suspension } from "./terminal-input.ts";

/** The meaning of a key: a reply, or the next thing to ask. */
export type Choice = PersonReply | "more" | "tell" | "edit";

/** The echo of a key, and the choice once it is made. */
interface Step {
  readonly echo: string;
  readonly choice?: Choice;
}

/** Longer than any yes. */
const MAX_TYPED = 40;

const YES: readonly (readonly [string, Choice])[] = [
  ["y", "yes"],
  ["yes", "yes"],
];
const LASTING: readonly (readonly [string, Choice])[] = [
  ["s", "session"],
  ["a", "always"],
];
const MORE: ReadonlyMap<string, Choice> = new Map([
  ["", "more"],
  ["y", "more"],
]);

const NEXT = [
  ["y", "shows the next page"],
  ["n", "refuses it"],
] as const;

/** A question that is not about a call. */
export const yesOrNo = (asks: string): Omit<QuestionStep, "shown" | "prompt"> => ({
  asks,
  answers: [
    ["y", "yes"],
    ["n", "no"],
  ],
  choices: new Map(YES),
});

/** Only what was on the screen can be approved. */
export const choicesOf = ({ grants, edits, whole }: OfferedAnswers): ReadonlyMap<string, Choice> =>
  new Map<string, Choice>([
    ["t", "tell"],
    ...(whole ? [...YES, ...LASTING] : []),
    ...(whole && grants ? [["g", "call"] as const] : []),
    ...(whole && edits ? [["e", "edit"] as const] : []),
  ]);

/**
 * Reads the keys after a question: only a choice and Enter choose, everything else is a no. Pasted text is ignored,
 * since it was not meant as an answer.
 */
export class TypedChoice {
  readonly #choices: ReadonlyMap<string, Choice>;
  #typed = "";

  constructor(choices: ReadonlyMap<string, Choice> = new Map(YES)) {
    this.#choices = choices;
  }

  take(piece: InputPiece | undefined): Step {
    if (piece === undefined) return { echo: "\n", choice: "no" };
    if (piece.kind === "interrupt") return { echo: "^C\n", choice: "interrupt" };
    if (piece.kind !== "keys") return { echo: "" };
    // Arrows and similar keys are not part of an answer.
    let echo = "";
    for (const key of piece.text.replaceAll(/\u001B(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|.)?/g, "")) {
      if (key === "\r") return { echo: `${echo}\n`, choice: this.#choice() };
      if (key === "\u0004") return { echo: `${echo}\n`, choice: "no" };
      echo += this.#edit(key);
    }
    return { echo };
  }

  #edit(key: string): string {
    if (key === "\u007F" || key === "\b") {
      if (this.#typed === "") return "";
      this.#typed = this.#typed.slice(0, -1);
      return move("rubout");
    }
    if (!/^[ -~]$/.test(key) || this.#typed.length >= MAX_TYPED) return "";
    this.#typed += key;
    return key;
  }

  #choice(): Choice {
    return this.#choices.get(this.#typed.trim().toLowerCase()) ?? "no";
  }
}

interface QuestionParts {
  readonly keyboard: Keyboard;
  readonly output: Output;
  /** Stops all other output until the returned function is called. */
  readonly pause: () => () => void;
  /** The rules that an "always" would write; left out if none can be shown. */
  readonly rulesFor?: TerminalQuestion["rulesFor"];
  /** The asker can run another command instead of the one in question. */
  readonly edits?: boolean;
}

/** One step of a question: what is shown, and the possible answers. */
export interface QuestionStep {
  /** Empty if everything is already on the screen. */
  readonly shown: string;
  /** The question with its answers in words, for lines of text. */
  readonly prompt: string;
  /** The question alone, for answers that are picked. */
  readonly asks: string;
  readonly answers: readonly (readonly [key: string, does: string])[];
  readonly choices: ReadonlyMap<string, Choice>;
}

/** Where questions are shown and answered. */
export interface QuestionPlace {
  /** For width, height and colours only; nothing is written to it here. */
  readonly output: Output;
  /** Rows that a page leaves free; left out: enough for a line of text. */
  readonly beside?: number;
  /** Only keys that are pressed after the step is on the screen count. */
  readonly choose: (step: QuestionStep, signal: AbortSignal) => Promise<Choice>;
  /** Reads a line of words; undefined if it is discarded. */
  readonly line: (words: string, initial: string, signal: AbortSignal) => Promise<string | undefined>;
  readonly tell: (text: string) => void;
}

/** A question, and where it is asked. */
export interface TerminalQuestion {
  readonly place: QuestionPlace;
  readonly question: Question;
  readonly signal: AbortSignal;
  readonly rulesFor?: ((question: Question) => Promise<RulesShown>) | undefined;
  readonly edits?: boolean | undefined;
}

/** Questions on the terminal. Only keys that are pressed after a question is on the screen answer it. */
export function questionsOn({ pause, rulesFor, edits, ...terminal }: QuestionParts) {
  const place = placeOn(terminal);
  return async (question: Question, signal: AbortSignal): Promise<PersonReply> => {
    const resume = pause();
    try {
      return await replyTo({ place, rulesFor, edits, question, signal });
    } finally {
      resume();
    }
  };
}

/** Asks a yes-or-no question that is not about a call. */
export async function saysYes(
  { pause, ...terminal }: Pick<QuestionParts, "keyboard" | "output" | "pause">,
  prompt: string,
): Promise<boolean> {
  const resume = pause();
  try {
    const { signal } = new AbortController();
    return (await placeOn(terminal).choose({ shown: "", prompt, ...yesOrNo("") }, signal)) === "yes";
  } finally {
    resume();
  }
}

/** Leads through all pages of the question, to a reply. */
export async function replyTo(asking: TerminalQuestion): Promise<PersonReply> {
  const { place, question, signal } = asking;
  const { output } = place;
  const { pages, whole } = approvalPages(question, output, place.beside);
  for (const [at, shown] of pages.slice(0, -1).entries()) {
    const prompt = moreQuestion(at + 1, pages.length, output);
    const asks = `page ${at + 1} of ${pages.length}`;
    const choice = await place.choose({ shown, prompt, asks, answers: NEXT, choices: MORE }, signal);
    if (choice === "no" || choice === "interrupt") return choice;
  }
  const offers = {
    grants: (question.grants ?? []).length > 0,
    edits: asking.edits === true && question.fixed !== true && editable(question) !== undefined,
    whole,
  };
  let shown = pages.at(-1) ?? "";
  for (;;) {
    const step = {
      shown,
      prompt: answersText(offers, output),
      asks: asksFor(offers),
      answers: answersTo(offers),
      choices: choicesOf(offers),
    };
    const reply = await replyFrom(asking, await place.choose(step, signal));
    shown = "";
    if (reply !== undefined) return reply;
  }
}

/** The command, if it can be edited unchanged on one line. */
function editable({ args }: Question): string | undefined {
  const { command } = args;
  if (typeof command !== "string" || command.length > MAX_EDITED) return undefined;
  return /[\n\t]/.test(command) || visible(command) !== command ? undefined : command;
}

const MAX_EDITED = 1000;

/** The reply that follows from a choice; undefined if the question is still open. */
async function replyFrom(asking: TerminalQuestion, choice: Choice): Promise<PersonReply | undefined> {
  const { place, question, signal } = asking;
  switch (choice) {
    case "tell": {
      const line = await place.line("tell the model> ", "", signal);
      if (line === undefined) return undefined;
      return line.trim() === "" ? "no" : { no: line.trim() };
    }
    case "edit": {
      const command = editable(question) ?? "";
      const line = await place.line("edit> ", command, signal);
      const isOther = line !== undefined && line.trim() !== "" && line !== command;
      return isOther ? { edited: line } : undefined;
    }
    case "always":
      return (question.grants ?? []).length > 0 || (await isRuleWanted(asking)) ? "always" : undefined;
    case "more":
      return undefined;
    default:
      return choice;
  }
}

/** Shows the rule before anything is written. */
async function isRuleWanted({ place, question, rulesFor, signal }: TerminalQuestion): Promise<boolean> {
  const { output } = place;
  const shown = await rulesFor?.(question);
  const width = widthOfStream(output);
  if (shown === undefined || shown.kind === "none") {
    const why = shown?.reason ?? "rules cannot be written here";
    place.tell(
      `${wrapped(`No rule can be written for this: ${why}. s allows it for this session.`, width).join("\n")}\n`,
    );
    return false;
  }
  const rules = shown.text.split("\n").flatMap((row) => quotedRows(row, output));
  const lines = [...wrapped(`This would be written to ${shown.file}:`, width), ...rules];
  const asks = "write it, and run the command?";
  const prompt = `${styleText("bold", asks, { stream: output })} [y/N] `;
  const step = { shown: `${lines.join("\n")}\n`, prompt, ...yesOrNo(asks) };
  return (await place.choose(step, signal)) === "yes";
}

type Terminal = Pick<QuestionParts, "keyboard" | "output">;

/** Keys typed before a question was on the screen do not answer it. */
const placeOn = (terminal: Terminal): QuestionPlace => ({
  output: terminal.output,
  choose: async ({ shown, prompt, choices }, signal) => {
    await dropEarlierKeys(terminal);
    if (signal.aborted) return "no";
    terminal.output.write(shown + prompt);
    await untilShown(terminal, signal);
    if (signal.aborted) return "no";
    return answered(terminal, new TypedChoice(choices), signal);
  },
  line: (words, initial, signal) => lineOf(terminal, { words, initial, signal }),
  tell: (text) => void terminal.output.write(text),
});

async function dropEarlierKeys({ keyboard }: Terminal): Promise<void> {
  // Earlier keys may still be in transit; keys after the question are never dropped.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  keyboard.drop();
}

/** A blocked terminal shows the question late; keys pressed before that do not answer it. */
async function untilShown({ keyboard, output }: Terminal, signal: AbortSignal): Promise<void> {
  if (!output.isBehind) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onAbort = (): void => resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  await Promise.race([output.allTaken(), promise]);
  signal.removeEventListener("abort", onAbort);
  keyboard.drop();
}

interface LineRequest {
  readonly words: string;
  readonly initial: string;
  readonly signal: AbortSignal;
}

/** Undefined if the line is discarded. */
async function lineOf(
  { keyboard, output }: Terminal,
  { words, initial, signal }: LineRequest,
): Promise<string | undefined> {
  const prompt = new Prompt(keyboard, output, () => [[], ""], words);
  const leave = (): void => prompt.leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    const line = await prompt.ask(initial, true);
    if (line.kind === "line") return line.text;
    return line.kind === "interrupt" ? undefined : "";
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function answered({ keyboard, output }: Terminal, answer: TypedChoice, signal: AbortSignal): Promise<Choice> {
  const { promise, resolve } = Promise.withResolvers<Choice>();
  const end = (choice: Choice): void => {
    keyboard.done(take);
    signal.removeEventListener("abort", cancelled);
    resolve(choice);
  };
  const take: Parameters<Keyboard["read"]>[0] = (piece) => {
    const { echo, choice } = answer.take(piece);
    output.write(echo);
    if (choice !== undefined) end(choice);
  };
  const cancelled = (): void => {
    output.write("\n");
    end("no");
  };
  signal.addEventListener("abort", cancelled, { once: true });
  keyboard.read(take);
  return promise;
}

/** Asks one question on this terminal, outside of a chat. */
export async function askOnce(
  question: Question,
  signal: AbortSignal,
  rulesFor?: QuestionParts["rulesFor"],
): Promise<PersonReply> {
  using keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => stderr.write(text),
    onInterrupt: () => false,
    suspend: () => suspension.begin(unstopped),
  });
  const suspension = new Suspension();
  const resume = (): void => {
    suspension.end();
    keyboard.resume();
  };
  const unstopped = (why: string): void => {
    stderr.write(`\n${why}\n`);
    resume();
  };
  process.on("SIGCONT", resume);
  const ask = questionsOn({ keyboard, output: stderr, pause: () => () => undefined, rulesFor, edits: true });
  try {
    return await ask(question, signal);
  } finally {
    process.removeListener("SIGCONT", resume);
  }
}

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
  return async (question, signal) => {
    const resume = pause();
    const prompt = new Prompt(keyboard, output, () => [[], ""], "answer> ");
    const leave = (): void => prompt.leave();
    try {
      // Keys typed before the question are no answer.
      await new Promise((resolve) => setImmediate(resolve));
      keyboard.drop();
      if (signal.aborted) return undefined;
      output.write(questionText(question, output));
      signal.addEventListener("abort", leave, { once: true });
      const line = await prompt.ask();
      if (line.kind === "interrupt") cancel();
      return line.kind === "line" ? answerIn(line.text, question.choices) : undefined;
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
  const rows = choices.map((choice, at) => `  ${at + 1}  ${fitToWidth(choice, width - 5)}`);
  return ["", ...words.map((line) => styleText("bold", line, { stream: output })), ...rows, ""].join("\n");
}

/** An empty line is no answer; a number selects a choice if there is one with this number. */
export function answerIn(text: string, choices: readonly string[]): string | undefined {
  const typed = text.trim();
  if (typed === "") return undefined;
  return (/^[1-9]$/.test(typed) ? choices[Number(typed) - 1] : undefined) ?? typed;
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

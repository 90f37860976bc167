import type { PartAnswer, Prompter } from "../app/run/prompter.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { stderr } from "../render/tty/output.ts";

/** Whether a person can be asked: questions are shown on stderr, and answered on stdin. */
export const isTerminal = (): boolean => process.stdin.isTTY && stderr.isTTY;

/** The person at the terminal; undefined if there is none. */
export function prompter(): Prompter | undefined {
  if (!isTerminal()) return undefined;
  return {
    confirm: (question) => confirm(question, false),
    pickPart: askForPart,
    approve: async (question, signal, rulesFor) => {
      const { askOnce } = await import("./approval-question.ts");
      return askOnce(question, signal, rulesFor);
    },
  };
}

type ReadAnswer = (text: string) => Promise<string | undefined>;

/**
 * Gives `ask` the person's answers, one line after each question; undefined after Ctrl-D. Ctrl-C ends the command, as it
 * does between questions.
 */
async function withAnswers<T>(
  signal: AbortSignal | undefined,
  ask: (read: ReadAnswer) => Promise<T>,
): Promise<T> {
  // Loaded on demand, because a person is seldom asked.
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: stderr.editor, terminal: true });
  const state = { interrupted: false, ended: false };
  lines.once("SIGINT", () => {
    state.interrupted = true;
    lines.close();
  });
  const closed = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  const read: ReadAnswer = async (text) => {
    if (state.ended) return undefined;
    const reply = lines.question(text, signal === undefined ? {} : { signal });
    const typed = await Promise.race([reply.catch(() => undefined), closed]);
    if (typed !== undefined) return typed;
    state.ended = true;
    stderr.write("\n");
    // Raw mode has kept the terminal from sending the signal that commands wait for.
    if (state.interrupted) process.emit("SIGINT", "SIGINT");
    signal?.throwIfAborted();
    if (state.interrupted)
      throw new HarnessError(EXIT.interrupted, "interrupted", "run the same command again");
    return undefined;
  };
  try {
    return await ask(read);
  } finally {
    lines.close();
  }
}

/** Asks a yes/no question on the terminal; without a person the answer is `unattended`, and Ctrl-D is a no. */
export async function confirm(question: string, unattended: boolean, signal?: AbortSignal): Promise<boolean> {
  if (!isTerminal() || unattended) return unattended;
  // Control characters would act on the line editor, even within the question.
  return withAnswers(signal, async (read) =>
    /^y(?:es)?$/i.test(((await read(`${visible(question)} [y/N] `)) ?? "").trim()),
  );
}

/**
 * The index of the row that the person picks by its number; Enter takes the first, n and Ctrl-D none of them. Without a
 * person: the first with `yes`, otherwise none. An invalid answer is asked again.
 */
export async function choose(
  question: string,
  rows: readonly string[],
  { yes, signal }: { readonly yes: boolean; readonly signal: AbortSignal },
): Promise<number | null> {
  if (yes) return rows.length > 0 ? 0 : null;
  if (!isTerminal() || rows.length === 0) return null;
  stderr.write(`${visible(question)}\n`);
  for (const [at, row] of rows.entries()) stderr.write(`  ${at + 1}  ${visible(row)}\n`);
  return withAnswers(signal, async (read) => {
    for (;;) {
      const typed = (await read(`Which one? [1-${rows.length}, Enter for 1, n for none] `)) ?? "n";
      const word = typed.trim().toLowerCase();
      if (/^no?$/.test(word)) return null;
      const number = word === "" ? 1 : /^\d{1,3}$/.test(word) ? Number(word) : 0;
      if (number >= 1 && number <= rows.length) return number - 1;
    }
  });
}

const PART_QUESTION =
  "Apply this part? [y,n,a,q] (yes; no; all: this one and the rest; quit: neither this one nor the rest) ";
const PART_ANSWERS: Readonly<Record<string, PartAnswer>> = { y: "yes", n: "no", a: "all", q: "quit" };

/** Asks again after an invalid answer; Ctrl-D quits. */
async function askForPart(): Promise<PartAnswer> {
  return withAnswers(undefined, async (read) => {
    for (;;) {
      const typed = (await read(PART_QUESTION)) ?? "q";
      const answer = PART_ANSWERS[typed.trim().toLowerCase().slice(0, 1)];
      if (answer !== undefined) return answer;
    }
  });
}

/** The piped input, until it is disposed of: after that, an open pipe keeps nothing waiting. */
export function pipedInput(): Disposable & { readonly input?: AsyncIterable<Uint8Array> } {
  // A person's keyboard is not passed to a command without a terminal.
  if (process.stdin.isTTY) return { [Symbol.dispose]: () => undefined };
  const input = process.stdin as AsyncIterable<Uint8Array>;
  return { input, [Symbol.dispose]: () => void process.stdin.destroy() };
}

const MAX_PROMPT_BYTES = 2 ** 20;

/** What a person must give, with examples. */
interface PromptWords {
  readonly what: string;
  readonly typed: string;
  readonly piped: string;
  /** What to do with a text that is too long. */
  readonly shorter: string;
}

const TASK: PromptWords = {
  what: "task",
  typed: 'harness run "fix the failing test"',
  piped: "harness run - < task.md",
  shorter: "put it in a file in the workspace and name that file",
};

export const NOTE: PromptWords = {
  what: "text of a note",
  typed: 'harness notes edit 3 "make all"',
  piped: 'harness notes add "Build" - < build.md',
  shorter: "a note holds at most 10000 characters",
};

/** The task, or another text: from the words of the command line, or from the pipe for `-`. */
export async function promptFrom(
  words: readonly string[],
  otherwise?: string,
  prompt: PromptWords = TASK,
): Promise<string> {
  if (words.length === 1 && words[0] === "-") return fromPipe(prompt);
  const text = words.join(" ").trim();
  if (text !== "") return text;
  if (otherwise !== undefined) return otherwise;
  throw new HarnessError(EXIT.usage, `no ${prompt.what} was given`, prompt.typed);
}

const fromPipe = (prompt: PromptWords): Promise<string> =>
  pipedText(prompt, { bytes: MAX_PROMPT_BYTES, size: "1 MiB" });

interface PipeBound {
  /** Refuse bytes that are not UTF-8. */
  readonly exact?: boolean;
  readonly bytes: number;
  readonly size: string;
}

/** The whole piped input. */
export async function pipedText(
  { what, piped: how, shorter }: Omit<PromptWords, "typed">,
  { bytes: most, size, exact = false }: PipeBound,
): Promise<string> {
  using piped = pipedInput();
  if (piped.input === undefined)
    throw new HarnessError(EXIT.usage, `- reads the ${what} from a pipe, but stdin is a terminal`, how);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of piped.input) {
    bytes += chunk.length;
    if (bytes > most) throw new HarnessError(EXIT.usage, `the ${what} is longer than ${size}`, shorter);
    chunks.push(chunk);
  }
  const text = decoded(Buffer.concat(chunks), exact, { what, how }).trim();
  if (text === "") throw new HarnessError(EXIT.usage, `the ${what} from the pipe is empty`, how);
  return text;
}

/** `exact`: bytes that are not UTF-8 are refused, because with them replaced it would be another text. */
function decoded(
  bytes: Buffer,
  exact: boolean,
  { what, how }: { readonly what: string; readonly how: string },
): string {
  try {
    return new TextDecoder("utf-8", { fatal: exact }).decode(bytes);
  } catch {
    throw new HarnessError(EXIT.usage, `the ${what} from the pipe is not UTF-8`, how);
  }
}

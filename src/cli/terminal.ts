import { createInterface } from "node:readline/promises";
import { EXIT, HarnessError } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { stderr } from "../render/tty/output.ts";

/** Asks a yes/no question on the terminal; with nobody there the answer is `unattended`. */
export async function confirm(question: string, unattended: boolean, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !stderr.isTTY || unattended) return unattended;
  const lines = createInterface({ input: process.stdin, output: stderr.editor, terminal: true });
  try {
    // What edits a line would have an effect in the question, too.
    const text = `${visible(question)} [y/N] `;
    const asked = signal === undefined ? lines.question(text) : lines.question(text, { signal });
    return /^y(?:es)?$/i.test((await asked).trim());
  } finally {
    lines.close();
  }
}

/** What is piped in, until it is disposed of: then an open pipe keeps nothing waiting. */
export function pipedInput(): Disposable & { readonly input?: AsyncIterable<Uint8Array> } {
  // A person's keyboard is not handed to a command that has no terminal.
  if (process.stdin.isTTY) return { [Symbol.dispose]: () => undefined };
  const input = process.stdin as AsyncIterable<Uint8Array>;
  return { input, [Symbol.dispose]: () => void process.stdin.destroy() };
}

const MAX_PROMPT_BYTES = 2 ** 20;

/** What a person is to give, and how that looks. */
interface PromptWords {
  readonly what: string;
  readonly typed: string;
  readonly piped: string;
  /** What to do with one that is too long. */
  readonly shorter: string;
}

const TASK: PromptWords = {
  what: "task",
  typed: 'harness run "fix the failing test"',
  piped: "harness run - < task.md",
  shorter: "put it into a file of the workspace, and name that",
};

/** The task, or whatever else it is: the words of the command line, or what is piped in for `-`. */
export async function promptFrom(
  words: readonly string[],
  otherwise?: string,
  given: PromptWords = TASK,
): Promise<string> {
  if (words.length === 1 && words[0] === "-") return fromPipe(given);
  const text = words.join(" ").trim();
  if (text !== "") return text;
  if (otherwise !== undefined) return otherwise;
  throw new HarnessError(EXIT.usage, `there is no ${given.what}`, given.typed);
}

async function fromPipe({ what, piped: how, shorter }: PromptWords): Promise<string> {
  using piped = pipedInput();
  if (piped.input === undefined)
    throw new HarnessError(EXIT.usage, `- reads the ${what} from a pipe, and there is none`, how);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of piped.input) {
    bytes += chunk.length;
    if (bytes > MAX_PROMPT_BYTES)
      throw new HarnessError(EXIT.usage, `the ${what} is longer than 1 MiB`, shorter);
    chunks.push(chunk);
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks)).trim();
  if (text === "") throw new HarnessError(EXIT.usage, `the ${what} that was piped in is empty`, how);
  return text;
}

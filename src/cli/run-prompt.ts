import { EXIT, HarnessError } from "../core/errors.ts";
import { pipedInput } from "./piped-input.ts";

const MOST_BYTES = 2 ** 20;

/** What a person is to give, and how that looks. */
interface Given {
  readonly what: string;
  readonly typed: string;
  readonly piped: string;
  /** What to do with one that is too long. */
  readonly shorter: string;
}

const TASK: Given = {
  what: "task",
  typed: 'harness run "fix the failing test"',
  piped: "harness run - < task.md",
  shorter: "put it into a file of the workspace, and name that",
};

/** The task, or whatever else it is: the words of the command line, or what is piped in for `-`. */
export async function promptFrom(
  words: readonly string[],
  otherwise?: string,
  given: Given = TASK,
): Promise<string> {
  if (words.length === 1 && words[0] === "-") return fromPipe(given);
  const text = words.join(" ").trim();
  if (text !== "") return text;
  if (otherwise !== undefined) return otherwise;
  throw new HarnessError(EXIT.usage, `there is no ${given.what}`, given.typed);
}

async function fromPipe({ what, piped: how, shorter }: Given): Promise<string> {
  using piped = pipedInput();
  if (piped.input === undefined)
    throw new HarnessError(EXIT.usage, `- reads the ${what} from a pipe, and there is none`, how);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of piped.input) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new HarnessError(EXIT.usage, `the ${what} is longer than 1 MiB`, shorter);
    chunks.push(chunk);
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks)).trim();
  if (text === "") throw new HarnessError(EXIT.usage, `the ${what} that was piped in is empty`, how);
  return text;
}

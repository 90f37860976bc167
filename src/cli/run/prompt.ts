import { EXIT, HarnessError } from "../../core/errors.ts";
import { pipedInput } from "../piped-input.ts";

const MOST_BYTES = 2 ** 20;

/** The task: the words of the command line, or what is piped in for `-`. */
export async function promptFrom(words: readonly string[], otherwise?: string): Promise<string> {
  if (words.length === 1 && words[0] === "-") return fromPipe();
  const text = words.join(" ").trim();
  if (text !== "") return text;
  if (otherwise !== undefined) return otherwise;
  throw new HarnessError(EXIT.usage, "there is no task", 'harness run "fix the failing test"');
}

async function fromPipe(): Promise<string> {
  using piped = pipedInput();
  if (piped.input === undefined)
    throw new HarnessError(
      EXIT.usage,
      "- reads the task from a pipe, and there is none",
      "harness run - < task.md",
    );
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of piped.input) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES)
      throw new HarnessError(
        EXIT.usage,
        "the task is longer than 1 MiB",
        "put it into a file of the workspace, and name that",
      );
    chunks.push(chunk);
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks)).trim();
  if (text === "")
    throw new HarnessError(EXIT.usage, "the task that was piped in is empty", "harness run - < task.md");
  return text;
}

import { EXIT, HarnessError } from "../../core/errors.ts";
import { stdout } from "../../render/tty/output.ts";

/** A chat is for a person: what is typed comes from a terminal, and answers go to one. */
export function requireTerminal(hint: string): void {
  if (process.stdin.isTTY && stdout.isTTY) return;
  throw new HarnessError(EXIT.usage, "the chat needs a terminal to read from and to write to", hint);
}

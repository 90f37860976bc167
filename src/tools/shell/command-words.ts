import { quote } from "shell-quote";
import { formatSize } from "../../core/text/bounds.ts";
import type { ExecResult, KeptOutput } from "../../core/ports.ts";
import { lastStates } from "../../core/text/visible.ts";

/** Bytes kept of each stream of a command that is waited for. */
export const KEEP = { head: 2 * 2 ** 20, tail: 2 ** 19 };

/** Output of a command: stdout, then stderr. */
export function wordsOf({ stdout, stderr }: Pick<ExecResult, "stdout" | "stderr">): string {
  return both(streamText(stdout), streamText(stderr));
}

export function both(stdout: string, stderr: string): string {
  const parts = [trimmed(stdout), trimmed(stderr)];
  if (parts[0] !== "" && parts[1] !== "") return parts.join("\n[stderr]\n");
  return parts.join("");
}

/** Lines that overwrite themselves on a terminal are shown in their last state. */
function trimmed(given: string): string {
  const text = lastStates(given);
  let end = text.length;
  while (text[end - 1] === "\n") end -= 1;
  return text.slice(0, end);
}

function streamText({ head, tail, lost }: KeptOutput): string {
  if (lost === 0) return decoded(joined(head, tail));
  return `${decoded(head)}\n[… ${formatSize(lost)} (${lost} bytes) were not kept …]\n${decoded(tail)}`;
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  if (tail.length === 0) return head;
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return whole;
}

const decoded = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** A command as it is judged: with the variables that earlier calls exported, since they change its effects. */
export function judgedText(command: string, env: Readonly<Record<string, string>>): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote([value])}\n`);
  return exports.join("") + command;
}

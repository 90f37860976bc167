import { createInterface } from "node:readline/promises";
import { stderr } from "../render/tty/output.ts";

/** Asks a yes/no question on the terminal; with nobody there the answer is `unattended`. */
export async function confirm(question: string, unattended: boolean, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !stderr.isTTY || unattended) return unattended;
  const lines = createInterface({ input: process.stdin, output: stderr.editor, terminal: true });
  try {
    const asked =
      signal === undefined
        ? lines.question(`${question} [y/N] `)
        : lines.question(`${question} [y/N] `, { signal });
    return /^y(?:es)?$/i.test((await asked).trim());
  } finally {
    lines.close();
  }
}

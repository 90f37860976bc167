import { createInterface } from "node:readline/promises";
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

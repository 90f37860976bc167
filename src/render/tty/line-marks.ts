import type { Output } from "./output.ts";

/** The mark at the start of a line, and the word that replaces it in plain output. */
const MARKS = {
  done: ["✓", "done:"],
  failed: ["✗", "failed:"],
  refused: ["⊘", "refused:"],
  task: ["▸", "task:"],
  doing: ["▸", "doing:"],
  pending: ["·", "to do:"],
  dropped: ["✗", "dropped:"],
  instead: ["~", "instead:"],
  stopped: ["-", "stopped:"],
  warning: ["!", "warning:"],
  loosens: ["!", "loosens:"],
  look: ["?", "look:"],
  waiting: ["~", "waiting:"],
  shorter: ["≡", "note:"],
  added: ["+", "added"],
  modified: ["~", "changed"],
  deleted: ["-", "deleted"],
  /** Starts every line of a text from outside, so none of them can look like our own. */
  quoted: ["  │ ", "  | "],
  between: [" · ", ", "],
  then: [" → ", ", then "],
} as const;

export const mark = (name: keyof typeof MARKS, stream: Output): string => MARKS[name][stream.plain ? 1 : 0];

import type { Output } from "./output.ts";

/** What a line begins with on a screen, and the word for it where marks are not wanted. */
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

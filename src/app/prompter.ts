import type { Question } from "../core/ports.ts";

/** What is wanted of one part of a change, and with `all` and `quit` of what follows. */
export type PartAnswer = "yes" | "no" | "all" | "quit";

/** The person at the terminal. Where nobody is there, there is no prompter. */
export interface Prompter {
  /** No, unless it is answered with yes. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** Whether one part of a change is wanted; the end of the input is `quit`. */
  readonly pickPart: () => Promise<PartAnswer>;
  /** Shows a call that waits, and reads the answer. */
  readonly approve: (question: Question, signal: AbortSignal) => Promise<"yes" | "no" | "interrupt">;
}

import { signalOf } from "../../agent/interrupted.ts";
import type { Signal } from "../../agent/outcome.ts";
import { EXIT, type ExitCode, HarnessError } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import { Keyboard } from "../chat/keyboard.ts";
import { questionsOn } from "../chat/questions.ts";
import { stderr } from "../../render/tty/output.ts";

type Said = Extract<EventBody, { readonly type: "approval" }>["said"];
export type AnswerFlags = Readonly<Record<Said, boolean>>;

export interface Word {
  readonly said: Said;
  readonly from: "terminal" | "flag";
}

/** What a person says: by a flag, or to the question on the terminal. Nothing is said where it is interrupted. */
export async function wordOn(
  question: Question,
  { id, flags }: { readonly id: string; readonly flags: AnswerFlags },
  signal: AbortSignal,
): Promise<Word> {
  const given = (["once", "session", "always", "deny"] as const).find((each) => flags[each]);
  if (given !== undefined) return { said: given, from: "flag" };
  if (!process.stdin.isTTY || !stderr.isTTY)
    throw new HarnessError(
      EXIT.usage,
      "there is no terminal to ask you on: say it with a flag",
      `harness approve ${id} --once (or --session, --always, --deny)`,
    );
  return { said: await typed(question, id, signal), from: "terminal" };
}

const CODES = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGHUP: EXIT.hangup,
  "reader-left": EXIT.hangup,
} as const satisfies Record<Signal, ExitCode>;

export const unsaid = (id: string, signal: Signal): HarnessError =>
  new HarnessError(CODES[signal], "nothing was said: it still waits", `harness approve ${id}`);

async function typed(question: Question, id: string, signal: AbortSignal): Promise<Said> {
  using keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => stderr.write(text),
    onInterrupt: () => false,
    suspend: () => process.kill(process.pid, "SIGTSTP"),
  });
  const resume = (): void => keyboard.resume();
  process.on("SIGCONT", resume);
  const ask = questionsOn({ keyboard, output: stderr, pause: () => () => undefined });
  try {
    const reply = await ask(question, signal);
    if (reply === "interrupt") throw unsaid(id, "SIGINT");
    if (signal.aborted) throw unsaid(id, signalOf(signal));
    return reply === "yes" ? "once" : "deny";
  } finally {
    process.removeListener("SIGCONT", resume);
  }
}

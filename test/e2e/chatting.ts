import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { type Model, type Replies, startModel } from "./run-command.ts";
import { onTerminal, type Terminal } from "./terminal.ts";

/** A chat on a terminal, line by line. */

export const PROMPT = /harness> $/;
/** The prompt below what was typed: a line that is edited shows it too. */
export const AGAIN = /\n(?:[\s\S]*\n)?harness> $/;

interface Chatting {
  readonly files?: Readonly<Record<string, string>>;
  /** What else lies there before the chat starts. */
  readonly prepare?: (place: Scratch) => Promise<unknown>;
  readonly model?: "flags" | "smallFlags";
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

interface Chat extends AsyncDisposable {
  readonly place: Scratch;
  readonly model: Model;
  readonly terminal: Terminal;
  /** What is shown until the next prompt. */
  readonly ask: (text: string) => Promise<string>;
  /** What is shown before the question, and what after the answer. */
  readonly asks: (text: string, answer: string) => Promise<readonly [string, string]>;
}

/** At its first prompt. */
export async function chatting(
  replies: Replies,
  { files = {}, prepare, model: which = "flags", flags = [], env = {} }: Chatting = {},
): Promise<Chat> {
  await using opened = new AsyncDisposableStack();
  const place = opened.use(await household(files));
  await prepare?.(place);
  const model = opened.use(await startModel(replies));
  const terminal = opened.use(onTerminal(place, [...model[which], ...flags], env));
  await terminal.until(PROMPT);
  const ask = (text: string): Promise<string> => {
    terminal.type(`${text}\r`);
    return terminal.until(AGAIN);
  };
  const asks = async (text: string, answer: string): Promise<readonly [string, string]> => {
    terminal.type(`${text}\r`);
    const shown = await terminal.until(/\[y\/N\] $/);
    return [shown, await ask(answer)];
  };
  const all = opened.move();
  return { place, model, terminal, ask, asks, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

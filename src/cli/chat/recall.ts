import type { Message } from "../../core/messages.ts";
import { fitted, widthOfStream } from "../../render/tty/fitted.ts";
import { isTyped, withoutMode } from "./mode-note.ts";
import { type Output, styleText } from "../../render/tty/output.ts";

const MOST = 6;

/** The last things that were said, each in a line, so that a person knows where they are. */
export function recalled(messages: readonly Message[], stream: Output): string {
  const said = messages.flatMap((message) => saidIn(message) ?? []);
  const width = widthOfStream(stream) - 2;
  const earlier = said.length - MOST;
  return [
    ...(earlier > 0 ? [`  (${earlier} earlier)`] : []),
    ...said.slice(-MOST).map(({ mark, text }) => `${mark}${fitted(text, width)}`),
  ]
    .map((line) => `${styleText("dim", line, { stream })}\n`)
    .join("");
}

interface Said {
  readonly mark: string;
  readonly text: string;
}

function saidIn(message: Message): Said | undefined {
  if (isTyped(message)) return { mark: "› ", text: withoutMode(message.text) };
  const text = message.role === "assistant" ? message.text.trim() : "";
  return text === "" ? undefined : { mark: "  ", text };
}

/** What a person has typed, oldest first. */
export const requestsIn = (messages: readonly Message[]): readonly string[] =>
  messages.filter(isTyped).map(({ text }) => withoutMode(text));

import type { Finished } from "../agent/agent-run.ts";
import { isTyped, withoutMode } from "../app/run/person-request.ts";
import type { AgentEvent } from "../core/events.ts";
import type { Handoff } from "../core/run-record.ts";
import type { Message } from "../core/model-provider.ts";
import { isPlainEnding } from "../core/errors.ts";
import { ReplacedAnswer } from "../core/tool.ts";
import { visibleLine } from "../core/visible.ts";
import { type AnswerStream, answerStream } from "../render/tty/answer-text.ts";
import { fitted, widthOfStream, wrapped } from "../render/tty/columns.ts";
import { systemClock } from "../render/tty/paced-writer.ts";
import { mark } from "../render/tty/line-marks.ts";
import { type Output, styleText } from "../render/tty/output.ts";
import { RunLines } from "../render/tty/run-lines.ts";
import { commitRows, movedRows, splitNext } from "../render/tty/run-summary.ts";

/** Shows a request: the answer on stdout, everything else on stderr, which may be the same screen. */
export class ChatView {
  readonly #lines: RunLines;
  readonly #answer: AnswerStream;
  readonly #output: Output;
  /** Keeps other output off the line of a reply that is still arriving. */
  #release: (() => void) | undefined;
  #shown = "";
  readonly #replaced = new ReplacedAnswer();
  #closed = false;
  /** The number of open questions: a background task may ask while the model answers. */
  #asking = 0;
  /** Parts of the reply that arrived during a question. */
  #later: AgentEvent[] = [];

  constructor(output: Output, errors: Output, quiet: boolean) {
    this.#output = output;
    this.#answer = answerStream(output);
    this.#lines = new RunLines(errors, { quiet, answerIsSeen: true, clock: systemClock });
  }

  take(event: AgentEvent): void {
    if (this.#closed) return;
    const isOfReply = event.agent === undefined && (event.type === "text" || ENDS_REPLY.has(event.type));
    if (isOfReply && this.#asking > 0) {
      this.#later.push(event);
      return;
    }
    const said = event.type === "text" && event.agent === undefined ? event.text : this.#replaced.take(event);
    if (isOfReply && event.type !== "text") this.#endReply();
    this.#lines.take(event);
    if (said === undefined) return;
    this.#release ??= this.#lines.pause();
    this.#write(this.#answer.push(said));
  }

  /** Gives the terminal to the caller until the returned function is called. */
  pause(): () => void {
    this.#endReply();
    this.#asking += 1;
    const resume = this.#lines.pause();
    return () => {
      resume();
      this.#asking -= 1;
      if (this.#asking === 0) for (const event of this.#later.splice(0)) this.take(event);
    };
  }

  /** Between requests. */
  end(): void {
    if (this.#closed) return;
    this.#endReply();
    this.#lines.end();
  }

  /** The terminal is gone. */
  close(): void {
    this.#closed = true;
  }

  #endReply(): void {
    if (this.#release === undefined) return;
    this.#write(this.#answer.end());
    if (this.#shown !== "" && !this.#shown.endsWith("\n")) this.#output.write("\n");
    this.#shown = "";
    this.#release();
    this.#release = undefined;
  }

  #write(text: string): void {
    // Models like to begin with an empty line.
    const said = this.#shown === "" ? text.replace(/^\s*\n/, "") : text;
    if (said === "") return;
    this.#output.write(said);
    this.#shown = said;
  }
}

const ENDS_REPLY: ReadonlySet<AgentEvent["type"]> = new Set([
  "model.finished",
  "model.failed",
  "model.waiting",
  "turn.started",
  "call.proposed",
  "rolled_back",
  "run.finished",
]);

const MAX_HANDED = 8;

/** Paths that a person should look at before running anything in the folder: each path once in a chat. */
export class HandoffNotes {
  readonly #told = new Set<string>();

  /** Empty if there is nothing new. */
  lines(handoff: readonly Handoff[], stream: Output): string {
    const fresh = handoff.filter((each) => !this.#told.has(keyOf(each)));
    for (const each of fresh) this.#told.add(keyOf(each));
    if (fresh.length === 0) return "";
    const rows = fresh.slice(0, MAX_HANDED).map(({ path, tier, reason }) => {
      return `  ${mark(tier === "dangerous" ? "warning" : "look", stream)} ${visibleLine(path.toWellFormed())}: ${reason}`;
    });
    const more = fresh.length - rows.length;
    const all = [
      `${mark("warning", stream)} check these before you run anything here:`,
      ...rows,
      ...(more > 0 ? [`  ${more} more: harness diff`] : []),
    ];
    const width = widthOfStream(stream);
    return all.map((line) => `${styleText("yellow", fitted(line, width), { stream })}\n`).join("");
  }
}

const keyOf = ({ path, tier, reason }: Handoff): string => [path, tier, reason].join("\0");

const BACK = "the conversation is as it was before; what finished calls changed in files stays";

/** The message at the end of a request without an answer; empty if everything is already on the screen. */
export function closing({ status, reason, tool_calls }: Finished, stream: Output): string {
  switch (status) {
    case "done":
      return isPlainEnding(reason) ? "" : lines(`${mark("warning", stream)} `, reason, stream);
    case "refused":
      return "";
    case "interrupted":
      return lines(stream.plain ? "" : "~ ", tool_calls === 0 ? "cancelled" : `cancelled: ${BACK}`, stream);
    case "budget":
      return lines(`${mark("warning", stream)} `, `${reason} Say "go on" to continue.`, stream);
    default:
      return failedLines(reason, stream);
  }
}

/** The remedy gets a line of its own. */
function failedLines(reason: string, stream: Output): string {
  const { said, next } = splitNext(reason);
  const shown = lines(`${mark("failed", stream)} `, said, stream, "red");
  return next === "" ? shown : `${shown}  next: ${next}\n`;
}

/** Files that were moved out of the workspace, and commits that were made; empty if there are none. */
export function movedAndCommitted(finished: Finished, stream: Output): string {
  const [moved, commits] = [movedRows(finished), commitRows(finished, widthOfStream(stream) - INDENT.length)];
  const rows = [
    ...(moved.length === 0
      ? []
      : [`${mark("warning", stream)} made in the box and moved out of the workspace:`, ...indented(moved)]),
    ...(commits.length === 0 ? [] : [`${stream.plain ? "" : "~ "}committed:`, ...indented(commits)]),
  ];
  return rows.map((row) => `${styleText("yellow", row, { stream })}\n`).join("");
}

const INDENT = "  ";
const indented = (rows: readonly string[]): readonly string[] => rows.map((row) => INDENT + row);

const lines = (head: string, text: string, stream: Output, colour: "red" | "yellow" = "yellow"): string =>
  wrapped(`${head}${text}`, widthOfStream(stream))
    .map((line) => `${styleText(colour, line, { stream })}\n`)
    .join("");

const MAX_RECALLED = 6;

/** The last messages of the conversation, one line each, so that a person knows where they are. */
export function recalled(messages: readonly Message[], stream: Output): string {
  const said = messages.flatMap((message) => messageIn(message) ?? []);
  const width = widthOfStream(stream) - 2;
  const earlier = said.length - MAX_RECALLED;
  const head = (typed: boolean): string => (!typed ? "  " : stream.plain ? "you: " : "› ");
  return [
    ...(earlier > 0 ? [`  (${earlier} earlier)`] : []),
    ...said.slice(-MAX_RECALLED).map(({ typed, text }) => `${head(typed)}${fitted(text, width)}`),
  ]
    .map((line) => `${styleText("dim", line, { stream })}\n`)
    .join("");
}

interface ShownMessage {
  readonly typed: boolean;
  readonly text: string;
}

function messageIn(message: Message): ShownMessage | undefined {
  if (isTyped(message)) return { typed: true, text: withoutMode(message.text) };
  const text = message.role === "assistant" ? message.text.trim() : "";
  return text === "" ? undefined : { typed: false, text };
}

/** The person's messages, oldest first. */
export const requestsIn = (messages: readonly Message[]): readonly string[] =>
  messages.filter(isTyped).map(({ text }) => withoutMode(text));

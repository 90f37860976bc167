import type { Finished } from "../../agent/agent-run.ts";
import { isTyped, typedText } from "../../app/run/person-request.ts";
import {
  askInTurn,
  NO,
  type Person,
  type PersonReply,
  type RulesShown,
  YES,
  type LastingRules,
} from "../../app/run/prompter.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { isPlainEnding } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Message } from "../../core/model-provider.ts";
import type { Answer, Question } from "../../core/ports.ts";
import type { Handoff } from "../../core/run-record.ts";
import { type Session, settledIn } from "../../core/session.ts";
import { ReplacedAnswer } from "../../core/tool.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { type AnswerStream, answerStream } from "../../render/tty/answer-text.ts";
import { fitToWidth, mark, widthOfStream, wrapped } from "../../render/tty/columns.ts";
import { systemClock } from "../../render/tty/live-lines.ts";
import { type Output, stderr, stdout, styleText } from "../../render/tty/output.ts";
import { RunLines } from "../../render/tty/run-lines.ts";
import { commitRows, movedRows, splitNext } from "../../render/tty/run-summary.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { inTurn, personOn, questionsOn, saysYes } from "../approval-question.ts";
import { type Completion, Keyboard, type Line, Prompt, Suspension } from "../terminal-input.ts";

/**
 * Where a chat is shown, and a person enters text. Texts that are not events are written to stdout and stderr as
 * everywhere; a screen that draws puts them above its drawing.
 */
export interface ChatScreen extends Disposable {
  /** Shows what a request does. The request never waits for the screen. */
  readonly take: (event: AgentEvent) => void;
  /** A request is over. */
  readonly end: () => void;
  /** Reads the next message; `initial` is the text to start with, to be sent or edited. */
  line(initial: string): Promise<Line>;
  /** Messages that wait for their turn stay where they are, visible, until this is called with false. */
  hold(on: boolean): void;
  /** Asks one question at a time; only keys pressed after all of it was shown answer it. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<PersonReply>;
  /** A question of the model, answered in words. */
  readonly askInWords: AskPerson;
  /** False unless the answer is yes. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** Sets what the keys for earlier messages bring back, oldest first. */
  remember(texts: readonly string[]): void;
  /** Ctrl-C by a signal. */
  interrupt(): void;
  /** The program continues after it was stopped. */
  resume(): void;
  /** The terminal is gone: nothing more is shown. */
  close(): void;
  /** No more input will come. */
  leave(): void;
}

/** What a screen gets from the chat. */
export interface ScreenParts {
  readonly quiet: boolean;
  /** For Ctrl-C, or another stop: false if there is nothing to interrupt. */
  readonly onInterrupt: () => boolean;
  /** Ends the current request. */
  readonly cancel: () => void;
  /** The rules that an "always" would write. */
  readonly rulesFor: (question: Question) => Promise<RulesShown>;
  /** For the tab key: candidates, and the part of the line that they would replace. */
  readonly complete: (line: string) => Completion;
  /** The same after an `@`; undefined if the line does not end with a mention. */
  readonly files: (line: string) => Promise<Completion> | undefined;
  readonly facts: () => ChatFacts;
}

/** The facts at the foot of a chat's screen. */
export interface ChatFacts {
  readonly model: string;
  readonly mode: string;
  /** Tokens that the model can hold; undefined until known. */
  readonly window: number | undefined;
  readonly hasBox: boolean;
  readonly workspace: string;
}

/** Lines below each other, as they come: for a terminal that cannot do more, a screen reader, or by preference. */
export function plainScreen(parts: ScreenParts): ChatScreen {
  stdout.neverBlocks();
  stderr.neverBlocks();
  const view = new ChatView(stdout, stderr, parts.quiet);
  const keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => stdout.write(text),
    onInterrupt: parts.onInterrupt,
    suspend: () => suspension.begin(unstopped),
  });
  const suspension = new Suspension();
  const unstopped = (why: string): void => {
    stdout.write(`\n${why}\n`);
    resume();
  };
  const resume = (): void => {
    suspension.end();
    keyboard.resume();
    prompt.redraw();
  };
  const terminal = { keyboard, output: stdout, pause: () => view.pause() };
  const turns = inTurn();
  const question = questionsOn({ ...terminal, rulesFor: parts.rulesFor, edits: true });
  const words = personOn({ ...terminal, cancel: parts.cancel });
  const prompt = new Prompt(keyboard, stdout, (line) => parts.files(line) ?? parts.complete(line));
  return {
    take: (event) => view.take(event),
    end: () => view.end(),
    line: async (initial) => {
      // A box that is still starting may have something to say.
      const release = stderr.taken((text) => prompt.besides(() => stderr.writeNow(text)));
      try {
        return await prompt.ask(initial);
      } finally {
        release();
      }
    },
    // Keys typed ahead are a terminal's own, as in a shell.
    hold: () => undefined,
    ask: (wanted, signal) => turns(() => question(wanted, signal)),
    askInWords: (wanted, signal) => turns(() => words(wanted, signal)),
    confirm: (text) =>
      turns(() => saysYes(terminal, `${styleText("bold", visible(text), { stream: stdout })} [y/N] `)),
    remember: (texts) => prompt.remember(texts),
    interrupt: () => keyboard.interrupt(),
    resume,
    close: () => view.close(),
    leave: () => keyboard.end(),
    [Symbol.dispose]: () => keyboard[Symbol.dispose](),
  };
}

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
    const fresh =
      event.type === "text" && event.agent === undefined ? event.text : this.#replaced.take(event);
    if (isOfReply && event.type !== "text") this.#endReply();
    this.#lines.take(event);
    if (fresh === undefined) return;
    this.#release ??= this.#lines.pause();
    this.#write(this.#answer.push(fresh));
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
    const shown = this.#shown === "" ? text.replace(/^\s*\n/, "") : text;
    if (shown === "") return;
    this.#output.write(shown);
    this.#shown = shown;
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
  readonly #reported = new Set<string>();

  /** Empty if there is nothing new. */
  lines(handoff: readonly Handoff[], stream: Output): string {
    const fresh = handoff.filter((each) => !this.#reported.has(keyOf(each)));
    for (const each of fresh) this.#reported.add(keyOf(each));
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
    return all.map((line) => `${styleText("yellow", fitToWidth(line, width), { stream })}\n`).join("");
  }
}

const keyOf = ({ path, tier, reason }: Handoff): string => [path, tier, reason].join("\0");

const BACK = "the conversation is as it was before; what finished calls changed in files stays";

/**
 * The message at the end of a request without an answer; empty if everything is already on the screen. `shown`: the
 * failure that has been reported when it happened.
 */
export function closingMessage({ status, reason, tool_calls }: Finished, stream: Output, shown = ""): string {
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
      return reason === shown ? "" : failedLines(reason, stream);
  }
}

/** The remedy gets a line of its own. */
function failedLines(reason: string, stream: Output): string {
  const { statement, next } = splitNext(reason);
  const shown = lines(`${mark("failed", stream)} `, statement, stream, "red");
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
  const shown = messages.flatMap((message) => messageIn(message) ?? []);
  const width = widthOfStream(stream) - 2;
  const earlier = shown.length - MAX_RECALLED;
  const head = (typed: boolean): string => (!typed ? "  " : stream.plain ? "you: " : "› ");
  return [
    ...(earlier > 0 ? [`  (${earlier} earlier)`] : []),
    ...shown.slice(-MAX_RECALLED).map(({ typed, text }) => `${head(typed)}${fitToWidth(text, width)}`),
  ]
    .map((line) => `${styleText("dim", line, { stream })}\n`)
    .join("");
}

interface ShownMessage {
  readonly typed: boolean;
  readonly text: string;
}

function messageIn(message: Message): ShownMessage | undefined {
  if (isTyped(message)) return { typed: true, text: typedText(message.text) };
  const text = message.role === "assistant" ? message.text.trim() : "";
  return text === "" ? undefined : { typed: false, text };
}

/** The person's messages, oldest first. */
export const requestsIn = (messages: readonly Message[]): readonly string[] =>
  messages.filter(isTyped).map(({ text }) => typedText(text));

interface Asking {
  /** Shows the question and waits for a person's keys. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<PersonReply>;
  /** A person who interrupts the question ends the request. */
  readonly cancel: () => void;
  /** Questions that were approved for this session. */
  readonly settled: () => readonly Question[];
  /** Records a yes that lasts longer than a call. */
  readonly keep: (question: Question, term: "session" | "always") => Promise<void>;
}

/** Where a yes that lasts longer than a call is recorded. */
export function sessionYes(
  session: () => Session | undefined,
  lasting: LastingRules,
  quiet: boolean,
): Pick<Asking, "settled" | "keep"> {
  return {
    settled: () => settledIn(session()?.records() ?? []),
    keep: async (question, term) => {
      session()?.append({ kind: "answered", question, word: term });
      if (term === "session") return;
      const written = await lasting.write(question);
      if (written.kind === "written") noteTo(quiet)(`allowed from now on by ${written.file}`);
      else noteTo(false)(`no rule was written: ${written.reason}; it is allowed for this session`);
    },
  };
}

/** A person at the terminal, who is asked one thing at a time, and not again about what they approved for longer. */
export function person({ ask, cancel, settled, keep }: Asking): Person {
  const answered = async (question: Question, reply: PersonReply): Promise<Answer> => {
    if (typeof reply === "object")
      return "no" in reply ? { ...NO, word: reply.no } : { ...NO, edited: reply.edited };
    if (reply === "interrupt") cancel();
    if (reply === "yes") return YES;
    if (reply === "no" || reply === "interrupt") return NO;
    const domains = question.grants ?? [];
    if (domains.length > 0) return { ...YES, grant: { domains, for: reply } };
    // The question named nothing that could be granted.
    if (reply === "call") return YES;
    await keep(question, reply);
    return YES;
  };
  return askInTurn(settled, async (question, signal) => answered(question, await ask(question, signal)));
}

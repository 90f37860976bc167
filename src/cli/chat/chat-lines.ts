import { describeFailure, renderFailure } from "../../app/stderr-messages.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { visible } from "../../core/visible.ts";
import { widthOfStream, wrappedRow } from "../../render/tty/columns.ts";
import { isStyled, type Output, styleText } from "../../render/tty/output.ts";
import { answerTo, COMMANDS, slashOf } from "../slash/chat-commands.ts";
import { movedAndCommitted, closing, HandoffNotes, requestsIn } from "../chat-view.ts";
import type { ChatScreen } from "./chat-screen.ts";

/** The texts that a person typed here and in earlier chats. */
export interface TypedTexts {
  readonly keep: (text: string) => Promise<void>;
  /** Kept texts followed by these, each once. */
  readonly with: (texts: readonly string[]) => readonly string[];
  /** An extra line for the model on files that the text names, or nothing. */
  readonly named: (text: string) => Promise<string>;
}

interface ChatParts {
  readonly chat: ChatController;
  readonly screen: ChatScreen;
  readonly typed: TypedTexts;
  readonly output: Output;
  readonly errors: Output;
  /** Whether the chat was ended from outside. */
  readonly over: () => boolean;
}

/** Tables keep their columns as long as they fit. */
function fittedLines(text: string, stream: Output): string {
  const width = widthOfStream(stream) - 1;
  return text
    .split("\n")
    .flatMap((line) => (line.length <= width || isStyled(line) ? line : wrappedRow(line, width)))
    .join("\n");
}

/** Reads and handles line after line of a person, until they leave. */
export class ChatLines {
  readonly #parts: ChatParts;
  /** Ctrl-C at an empty prompt: the first one says how to leave. */
  #warned = false;
  readonly #handed = new HandoffNotes();
  /** A request without a result is offered again. */
  #initial = "";

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { screen, over } = this.#parts;
    while (!over()) {
      const line = await screen.line(this.#initial);
      this.#initial = "";
      if (line.kind === "end") return;
      if (line.kind === "interrupt") {
        if (line.empty && this.#warned) return;
        if (line.empty) this.#tell("press Ctrl-C again to leave, or Ctrl-D, or type exit");
        this.#warned = line.empty;
        continue;
      }
      this.#warned = false;
      await this.#parts.typed.keep(line.text);
      if ((await this.#take(line.text)) === "leave") return;
    }
  }

  async #take(text: string): Promise<"leave" | undefined> {
    if (text.trim() === "") return undefined;
    const slash = slashOf(text, COMMANDS);
    if (slash.kind === "leave") return "leave";
    if (slash.kind === "command") await this.#command(slash.name, slash.argument);
    else if (text.trimStart().startsWith("/") && (await this.#added(text))) return undefined;
    else if (slash.kind === "unknown")
      this.#tell(
        `there is no /${visible(slash.name)}${slash.near === undefined ? "; /help lists all commands" : `; did you mean /${slash.near}?`}`,
      );
    else await this.#request(text);
    return undefined;
  }

  /** Expands commands that users added, and sends the text as a request; false if the line names none. */
  async #added(text: string): Promise<boolean> {
    const held: { found?: Awaited<ReturnType<ChatController["expansion"]>> } = {};
    await this.#orSay(async () => {
      held.found = await this.#parts.chat.expansion(text);
    });
    const { found } = held;
    if (found === undefined) return true;
    if (typeof found === "string") {
      if (found !== "") this.#tell(visible(found));
      return false;
    }
    this.#tell(visible(found.note));
    await this.#request(found.text, text);
    return true;
  }

  async #command(name: string, argument: string): Promise<void> {
    const { chat, screen, output, typed } = this.#parts;
    const before = chat.conversation;
    await this.#orSay(async () => {
      const show = (text: string): void => void output.write(`${fittedLines(text, output)}\n`);
      const text = await answerTo(name, { chat, argument, output, show, confirm: screen.confirm });
      if (text !== "") show(text);
    });
    if (chat.conversation !== before && chat.conversation !== undefined)
      screen.remember(typed.with(requestsIn(chat.conversation.memory.history.messages)));
  }

  async #request(text: string, typed = text): Promise<void> {
    const { chat, errors, over } = this.#parts;
    const count = (): number => chat.conversation?.memory.history.count ?? 0;
    const before = count();
    await this.#orSay(async () => {
      const finished = await chat.request(text + (await this.#parts.typed.named(typed)));
      // Also shown at the very end: a person who is not told could not find the moved files.
      errors.write(movedAndCommitted(finished, errors));
      if (!over()) errors.write(closing(finished, errors) + this.#handed.lines(finished.handoff, errors));
    });
    if (!over()) errors.write("\n");
    if (count() <= before) this.#initial = typed;
  }

  /** An error in one line does not end the chat. */
  async #orSay(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!this.#parts.over()) renderFailure(describeFailure(thrown, []), false);
    }
  }

  #tell(text: string): void {
    this.#parts.errors.write(`${styleText("dim", text, { stream: this.#parts.errors })}\n`);
  }
}

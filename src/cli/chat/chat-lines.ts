/** The lines that a person types in a chat: what is done with each, and what the tab key completes. */
import { sessionWords } from "../../app/known-values.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { describeFailure, renderFailure } from "../../app/stderr-messages.ts";
import { PROVIDERS } from "../../config/setting-words.ts";
import { MODES } from "../../core/decision.ts";
import { PRESETS } from "../../core/network.ts";
import { visible } from "../../core/visible.ts";
import { widthOfStream, wrappedRow } from "../../render/tty/columns.ts";
import { isStyled, type Output, styleText } from "../../render/tty/output.ts";
import type { Completion } from "../terminal-input.ts";
import { answerTo, COMMANDS, type SlashName, slashOf } from "./chat-commands.ts";
import {
  type ChatScreen,
  closingMessage,
  HandoffNotes,
  movedAndCommitted,
  requestsIn,
} from "./chat-screen.ts";

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
  /** The last failure of the model that is on the screen. */
  readonly failure: () => string;
  /** Whether the chat was ended from outside. */
  readonly over: () => boolean;
}

/** Ends of a request after which a message that waited still makes sense. */
const ANSWERS: ReadonlySet<string> = new Set(["done", "refused", "budget"]);

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
    const expansion: { found?: Awaited<ReturnType<ChatController["expansion"]>> } = {};
    await this.#orSay(async () => {
      expansion.found = await this.#parts.chat.expansion(text);
    });
    const { found } = expansion;
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
    const { chat, screen, errors, failure, over } = this.#parts;
    const count = (): number => chat.conversation?.memory.history.count ?? 0;
    const before = count();
    // What waits was written for after an answer.
    screen.hold(true);
    await this.#orSay(async () => {
      const finished = await chat.request(text + (await this.#parts.typed.named(typed)));
      // Also shown at the very end: a person who is not told could not find the moved files.
      errors.write(movedAndCommitted(finished, errors));
      screen.hold(!ANSWERS.has(finished.status));
      if (over()) return;
      errors.write(
        closingMessage(finished, errors, failure()) + this.#handed.lines(finished.handoff, errors),
      );
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

/** Tables keep their columns as long as they fit. */
function fittedLines(text: string, stream: Output): string {
  const width = widthOfStream(stream) - 1;
  return text
    .split("\n")
    .flatMap((line) => (line.length <= width || isStyled(line) ? line : wrappedRow(line, width)))
    .join("\n");
}

type Values = Readonly<Record<string, readonly string[]>>;

const FIXED: Values = {
  mode: MODES,
  provider: PROVIDERS,
  grant: ["always", ...PRESETS],
  diff: ["stat"],
  undo: ["files"],
};
const PATIENCE_MS = 5000;

/** Values that can follow the commands of a chat. Models are listed in the background, and kept. */
export class SlashValues {
  readonly #chat: ChatController;
  #models: readonly string[] = [];
  #server = "";

  constructor(chat: ChatController) {
    this.#chat = chat;
  }

  /** Keyed by command; values that need a look-up are found when they are needed. */
  of(added: readonly SlashName[] = []): Values {
    const models = (): readonly string[] => this.#modelsNow();
    const { host, workspace } = this.#chat;
    return {
      ...FIXED,
      help: [...COMMANDS.map(({ name }) => name), ...added.map(({ name }) => name), "exit"],
      get model() {
        return models();
      },
      get resume() {
        return sessionWords(host, workspace).map(({ value }) => value);
      },
    };
  }

  /** The model list of the current server. At first it is only requested, and ready for the next tab. */
  #modelsNow(): readonly string[] {
    if (this.#server !== serverOf(this.#chat)) void this.look();
    return this.#models;
  }

  /** A server without a list completes nothing. */
  async look(): Promise<void> {
    this.#server = serverOf(this.#chat);
    this.#models = [];
    try {
      const { models } = await (await this.#chat.model()).list(AbortSignal.timeout(PATIENCE_MS));
      this.#models = models ?? [];
    } catch {
      // The command itself reports the reason.
    }
  }
}

const serverOf = ({ settings }: ChatController): string => `${settings.provider} ${settings.base_url ?? ""}`;

const OPEN = /(?<!\S)@(?:"([^"]*)|([^\s"]*))$/;

/**
 * Completion for the tab key after an `@`; undefined if the line does not end with a mention. A later request ends the
 * earlier one, which then gives nothing.
 */
export function fileCompletion(
  find: (typed: string, signal: AbortSignal) => Promise<readonly string[]>,
): (line: string) => Promise<Completion> | undefined {
  const last = { asked: new AbortController() };
  return (line) => {
    last.asked.abort();
    const open = OPEN.exec(line);
    if (open === null) return undefined;
    last.asked = new AbortController();
    const of = open[0];
    return find(open[1] ?? open[2] ?? "", last.asked.signal).then(
      (files) => [keepTypedText(files.map(mention), of), of],
      () => [[], of],
    );
  };
}

const mention = (file: string): string => (/\s/.test(file) ? `@"${file}"` : `@${file}`);

/** Prevents the common start of several candidates from replacing the typed text, by adding that text to them. */
const keepTypedText = (hits: readonly string[], of: string): readonly string[] =>
  hits.length > 1 && hits.some((hit) => !hit.startsWith(of)) ? [of, ...hits] : hits;

/** The characters with which all candidates begin. */
export function commonStart([first = "", ...rest]: readonly string[]): string {
  let length = 0;
  while (length < first.length && rest.every((hit) => hit[length] === first[length])) length += 1;
  return first.slice(0, length);
}

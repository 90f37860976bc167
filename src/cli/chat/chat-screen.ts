import type { Reply } from "../../app/prompter.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import type { RulesShown } from "../../app/prompter.ts";
import type { Completion } from "./file-completion.ts";

/** What a person says next. */
export type Line =
  | { readonly kind: "line"; readonly text: string }
  /** Ctrl-C; `empty` when there was nothing to throw away. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  /** Ctrl-D, or the terminal is gone. */
  | { readonly kind: "end" };

/**
 * What a chat is shown on, and where a person says things. Texts that are no events are written to stdout and stderr as
 * everywhere: a screen that draws puts them above what it draws.
 */
export interface ChatScreen extends Disposable {
  /** What a request does, as it does it. It is not waited for: whoever works is not slowed by what is shown. */
  readonly take: (event: AgentEvent) => void;
  /** A request is over. */
  readonly end: () => void;
  /** The next message; `initial` stands there to be sent or edited. */
  line(initial: string): Promise<Line>;
  /** One at a time; only what is pressed after all of it was shown answers it. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Reply>;
  /** A question of the model, answered in words. */
  readonly askInWords: AskPerson;
  /** No, unless it is answered with yes. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** What the keys for earlier messages bring back, oldest first. */
  remember(texts: readonly string[]): void;
  /** Ctrl-C by a signal. */
  interrupt(): void;
  /** After the program was stopped and goes on. */
  resume(): void;
  /** The terminal is gone: nothing more is shown. */
  close(): void;
  /** Nobody says anything more. */
  leave(): void;
}

/** What a screen is told and asks of the chat. */
export interface ScreenParts {
  readonly quiet: boolean;
  /** Ctrl-C, or what else stops: false when nothing goes on that it could be meant for. */
  readonly onInterrupt: () => boolean;
  /** Ends the request that is worked on. */
  readonly cancel: () => void;
  /** The rules that an "always" would write. */
  readonly rulesFor: (question: Question) => Promise<RulesShown>;
  /** For the tab key: what could stand there, and the part of the line that it would replace. */
  readonly complete: (line: string) => Completion;
  /** The same behind an `@`: undefined where the line does not end with one. */
  readonly files: (line: string) => Promise<Completion> | undefined;
  readonly facts: () => ChatFacts;
}

/** What is said of a chat at the foot of its screen. */
export interface ChatFacts {
  readonly model: string;
  readonly mode: string;
  /** Tokens that the model can hold; undefined as long as nobody has said. */
  readonly window: number | undefined;
  readonly hasBox: boolean;
  readonly workspace: string;
}

import type { Reply, RulesShown } from "../../app/run/prompter.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import type { Completion, Line } from "../terminal-input.ts";

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
  /** Asks one question at a time; only keys pressed after all of it was shown answer it. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Reply>;
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

/** The keys of a drawn chat, and the questions that take them while they are open. */
import { move, stdout } from "../../render/tty/output.ts";
import type { Choosing, Writing } from "../../render/tui/chat-frame.ts";
import { type EditorState, newEditor, press, withText } from "../../render/tui/line-editor.ts";
import { type Key, TerminalKeys } from "../../render/tui/terminal-keys.ts";
import type { Choice, QuestionStep } from "../approval-question.ts";
import { Suspension } from "../terminal-input.ts";

/** The outcome of a key: undefined while the question is open. */
export type Settled<T> = { readonly is: T } | undefined;

export interface Panel<T> {
  readonly shown: Choosing | Writing;
  readonly take: (key: Key) => Settled<T>;
}

/** Longer than any answer. */
const MAX_TYPED = 40;

type Step = Pick<QuestionStep, "asks" | "answers" | "choices">;

/**
 * Answers to pick from, by key or by the arrows. Enter gives the marked one, which is "no" if the typed letters match
 * nothing.
 */
export class ChoicePanel {
  readonly #step: Step;
  #typed = "";
  #at: number;

  constructor(step: Step) {
    this.#step = step;
    this.#at = this.#placeOf("");
  }

  get shown(): Choosing {
    const { asks, answers } = this.#step;
    return { kind: "choosing", asks, answers, at: this.#at };
  }

  /** A choice in words, for the history on the screen. It may differ from the marked answer: Ctrl-D is always a no. */
  wordsOf(choice: Choice): string {
    if (choice === "interrupt") return "interrupted";
    const { answers, choices } = this.#step;
    const wanted = choice === "no" ? undefined : choice;
    return answers.find(([key]) => choices.get(key) === wanted)?.[1] ?? "no";
  }

  take(key: Key): Settled<Choice> {
    if (key.kind === "paste") return undefined;
    if (key.kind === "text") {
      this.#typed = (this.#typed + key.text).slice(0, MAX_TYPED);
      this.#at = this.#placeOf(this.#typed.trim().toLowerCase());
      return undefined;
    }
    return this.#named(key.name);
  }

  #named(name: string): Settled<Choice> {
    switch (name) {
      case "up":
        return this.#moved(-1);
      case "down":
        return this.#moved(1);
      case "backspace":
        this.#typed = this.#typed.slice(0, -1);
        this.#at = this.#placeOf(this.#typed.trim().toLowerCase());
        return undefined;
      case "enter":
        return { is: this.#choice() };
      case "ctrl+c":
      case "escape":
        return { is: "interrupt" };
      case "ctrl+d":
        return { is: "no" };
      default:
        return undefined;
    }
  }

  #moved(by: -1 | 1): undefined {
    this.#typed = "";
    this.#at = Math.max(0, Math.min(this.#step.answers.length - 1, this.#at + by));
    return undefined;
  }

  #choice(): Choice {
    const key = this.#step.answers[this.#at]?.[0] ?? "";
    return this.#step.choices.get(key) ?? "no";
  }

  /** The position of the answer that these letters select, or of the "no" if they select none. */
  #placeOf(typed: string): number {
    const { answers, choices } = this.#step;
    const wanted = choices.get(typed);
    const at = answers.findIndex(([key]) => choices.get(key) === wanted);
    return Math.max(0, at);
  }
}

/** A line of words, separate from the line of messages. Undefined if it is discarded. */
export class LinePanel {
  readonly #mark: string;
  #editor: EditorState;

  constructor(mark: string, initial: string, width: number) {
    this.#mark = mark;
    this.#editor = withText(newEditor(Math.max(10, width - mark.length)), initial);
  }

  get shown(): Writing {
    return { kind: "writing", mark: this.#mark, editor: this.#editor };
  }

  take(key: Key): Settled<string | undefined> {
    const isBlank = this.#editor.text.trim() === "";
    if (key.kind === "key" && key.name === "enter" && isBlank) return { is: "" };
    if (key.kind === "key" && (key.name === "escape" || key.name === "ctrl+c")) return { is: undefined };
    const { state, did } = press(this.#editor, key);
    this.#editor = state;
    if (did.kind === "submit") return { is: did.text };
    return did.kind === "leave" ? { is: "" } : undefined;
  }
}

/** An open question: it gets the keys once it is visible. */
export class OpenPanel<T> {
  /** The question is on the screen: from now on, keys count. */
  isSeen: boolean;
  readonly settled: Promise<Settled<T>>;
  readonly #panel: Panel<T>;
  readonly #settle: (settled: Settled<T>) => void;

  constructor(panel: Panel<T>, isSeen: boolean) {
    const { promise, resolve } = Promise.withResolvers<Settled<T>>();
    this.isSeen = isSeen;
    this.settled = promise;
    this.#panel = panel;
    this.#settle = resolve;
  }

  get shown(): Choosing | Writing {
    return this.#panel.shown;
  }

  /** Whether the key answered the question; later keys do not belong to it. */
  settles(key: Key): boolean {
    const settled = this.#panel.take(key);
    if (settled !== undefined) this.#settle(settled);
    return settled !== undefined;
  }

  giveUp(): void {
    this.#settle(undefined);
  }
}

/** An escape that nothing follows within this time was the key itself. */
const ESCAPE_MS = 40;

/** The keys of a terminal in raw mode, until it is released. */
export class TuiKeys implements Disposable {
  readonly #keys = new TerminalKeys();
  readonly #suspension = new Suspension();
  readonly #take: (key: Key) => void;
  readonly #ended: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(take: (key: Key) => void, ended: () => void) {
    this.#take = take;
    this.#ended = ended;
    const { stdin } = process;
    stdin.setEncoding("utf8");
    stdin.on("data", this.#data);
    stdin.on("end", ended);
    stdin.on("error", ended);
    process.on("exit", this.#release);
    this.#grab();
    stdin.resume();
  }

  readonly #data = (text: string): void => {
    clearTimeout(this.#timer);
    this.#hand(this.#keys.push(text));
    if (this.#keys.waits) this.#timer = setTimeout(() => this.#hand(this.#keys.flush()), ESCAPE_MS);
  };

  #hand(keys: readonly Key[]): void {
    for (const key of keys) this.#take(key);
  }

  /**
   * Turns raw mode off and on, because a shell may have changed the terminal meanwhile, and Node does not set a mode
   * that it believes to be set.
   */
  #grab(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    stdout.writeNow(move("pasteson"));
  }

  /** Restores the terminal, and stops the program; `unstopped` is called where it cannot be stopped. */
  suspend(unstopped: (why: string) => void): void {
    this.#release();
    this.#suspension.begin(unstopped);
  }

  /** Until `resume`, the terminal belongs to the shell. */
  get isSuspended(): boolean {
    return this.#suspension.isOn;
  }

  /** The program goes on. What a frame left behind below the cursor is erased if others stopped the program. */
  resume(): void {
    if (!this.#suspension.end()) stdout.writeNow(move("below"));
    this.#grab();
  }

  readonly #release = (): void => {
    stdout.writeNow(move("pastesoff") + move("cursor"));
    process.stdin.setRawMode(false);
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#suspension.end();
    const { stdin } = process;
    stdin.removeListener("data", this.#data);
    stdin.removeListener("end", this.#ended);
    stdin.removeListener("error", this.#ended);
    process.removeListener("exit", this.#release);
    this.#release();
    stdin.pause();
  }
}

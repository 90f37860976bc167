import type { PersonReply } from "../../app/run/prompter.ts";
import type { AgentEvent } from "../../core/events.ts";
import { fitToWidth, widthOfStream } from "../../render/tty/columns.ts";
import { stderr, stdout, styleText } from "../../render/tty/output.ts";
import { systemClock } from "../../render/tty/live-lines.ts";
import { Activities } from "../../render/tty/run-activity.ts";
import { wordsOf } from "../../render/tty/run-lines.ts";
import { answerRowsOn, blockRows, plainRows } from "../../render/tui/block-rows.ts";
import { Canvas } from "../../render/tui/canvas.ts";
import { frameOf, hintRows, MARK_WIDTH } from "../../render/tui/chat-frame.ts";
import {
  afterEvent,
  type ChatState,
  NEW_CHAT,
  withBlock,
  withoutFinished,
} from "../../render/tui/chat-state.ts";
import {
  type EditorState,
  replaceBeforeCursor,
  newEditor,
  press,
  resized,
  withHistory,
  withText,
  withTexts,
} from "../../render/tui/line-editor.ts";
import type { Key } from "../../render/tui/terminal-keys.ts";
import {
  answerIn,
  type Choice,
  inTurn,
  type QuestionPlace,
  type QuestionStep,
  questionText,
  replyTo,
  yesOrNo,
} from "../approval-question.ts";
import type { Completion, Line } from "../terminal-input.ts";
import type { ChatScreen, ScreenParts } from "./chat-screen.ts";
import { commonStart } from "./chat-lines.ts";
import { ChoicePanel, LinePanel, OpenPanel, type Panel, type Settled, TuiKeys } from "./tui-panel.ts";

/** The time between two drawings; everything that happens in between is drawn at once. */
const FRAME_MS = 40;
const TICK_MS = 120;
/** Work that ends sooner shows no activity. */
const ACTIVITY_DELAY_MS = 150;
/** A larger number of blocks at once would delay the keys. */
const BLOCKS_A_FRAME = 200;
/** Rows of a question's answers, and of what is below the page. */
const QUESTION_ROWS = 12;

const ANSWER = answerRowsOn(stdout);

/**
 * A chat that is drawn: finished parts stay above, current work is repainted below them, and the last lines are for the
 * person. Events only change a state, which is drawn at a limited rate.
 */
export class TuiScreen implements ChatScreen {
  readonly #parts: ScreenParts;
  readonly #canvas = new Canvas(stdout);
  readonly #keys: TuiKeys;
  readonly #activities = new Activities(false);
  readonly #turns = inTurn();
  readonly #releases: (() => void)[];
  #state: ChatState = NEW_CHAT;
  #editor: EditorState;
  #queue: string[] = [];
  /** Nothing is sent from the queue. */
  #held = false;
  #waiter: ((line: Line) => void) | undefined;
  /** Keys that leave the chat, pressed before anything waited for a line. */
  #early: Line[] = [];
  /** Rows of an open question, which are printed above before anything else. */
  #urgent: string[] = [];
  #open: Pick<OpenPanel<unknown>, "shown" | "settles" | "isSeen"> | undefined;
  /** Keys right after the one that settled a question; they go to the next receiver of keys. */
  #behind: Key[] | undefined;
  /** The text was offered to be sent again: typing anything else replaces it. */
  #offered = false;
  #hints: readonly string[] = [];
  /** When the current work began. */
  #since: number | undefined;
  #ticks = 0;
  #ticking: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #left = false;
  #closed = false;
  /** How many of the expandable outputs were shown as a whole. */
  #opened = 0;

  constructor(parts: ScreenParts) {
    this.#parts = parts;
    this.#editor = newEditor(this.#room);
    stdout.neverBlocks();
    this.#releases = [
      stdout.taken(this.#above),
      stderr.taken(this.#above),
      stdout.on("resize", () => this.#resized()),
    ];
    this.#keys = new TuiKeys(
      (key) => this.#key(key),
      () => this.leave(),
    );
    this.#plan();
  }

  readonly take = (event: AgentEvent): void => {
    if (this.#closed) return;
    const before = this.#state;
    this.#state = afterEvent(before, event);
    const call = "call" in event ? before.calls.find((each) => each.call === event.call) : undefined;
    const callWords = call === undefined ? "" : wordsOf(call);
    this.#activities.take(event, { now: systemClock.now(), callWords });
    if (this.#state !== before) this.#opened = event.type === "call.ended" ? 0 : this.#opened;
    this.#plan();
  };

  readonly end = (): void => this.#plan();

  line(initial: string): Promise<Line> {
    this.#working(false);
    const early = this.#early.shift();
    if (this.#left) return Promise.resolve({ kind: "end" });
    if (early !== undefined) return Promise.resolve(early);
    const next = this.#held ? undefined : this.#queue.shift();
    if (next !== undefined) {
      this.#showRequest(next);
      return Promise.resolve({ kind: "line", text: next });
    }
    if (initial !== "" && this.#editor.text === "") {
      this.#editor = withText(this.#editor, initial);
      this.#offered = true;
    }
    this.#plan();
    return new Promise((resolve) => {
      this.#waiter = (line) => {
        this.#waiter = undefined;
        if (line.kind === "line") this.#showRequest(line.text);
        resolve(line);
      };
    });
  }

  readonly hold = (on: boolean): void => void (this.#held = on);

  readonly ask: ChatScreen["ask"] = (question, signal) =>
    this.#turns(async (): Promise<PersonReply> => {
      const place: QuestionPlace = {
        output: stdout,
        beside: QUESTION_ROWS,
        choose: (step, going) => this.#choose(step, going),
        line: (words, initial, going) => this.#write(words, initial, going),
        tell: (text) => void this.#urgent.push(...text.trimEnd().split("\n")),
      };
      return replyTo({ place, question, signal, rulesFor: this.#parts.rulesFor, edits: true });
    });

  readonly askInWords: ChatScreen["askInWords"] = (question, signal) =>
    this.#turns(async () => {
      if (signal.aborted) return undefined;
      this.#urgent.push(...questionText(question, stdout).trimEnd().split("\n"));
      const text = await this.#write("answer> ", "", signal, false);
      if (text === undefined && !signal.aborted) this.#parts.cancel();
      return text === undefined ? undefined : answerIn(text, question.choices);
    });

  readonly confirm = (question: string): Promise<boolean> =>
    this.#turns(async () => {
      const { signal } = new AbortController();
      return (await this.#choose({ shown: "", prompt: "", ...yesOrNo(question) }, signal)) === "yes";
    });

  readonly remember = (texts: readonly string[]): void =>
    void (this.#editor = withHistory(this.#editor, texts));

  readonly interrupt = (): void => this.#key({ kind: "key", name: "ctrl+c" });

  resume(): void {
    // Before the program stops itself, the frame is removed.
    if (!this.#keys.isSuspended) this.#canvas.abandon();
    this.#keys.resume();
    this.#draw();
  }

  close(): void {
    this.#closed = true;
  }

  leave(): void {
    this.#left = true;
    this.#waiter?.({ kind: "end" });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#ticking?.();
    this.#working(false);
    if (this.#keys.isSuspended) this.#keys.resume();
    while (!this.#closed && (this.#state.finished.length > 0 || this.#urgent.length > 0)) this.#draw();
    this.#closed = true;
    for (const release of this.#releases) release();
    this.#canvas.close();
    this.#keys[Symbol.dispose]();
  }

  get #width(): number {
    return widthOfStream(stdout);
  }

  get #room(): number {
    return this.#width - MARK_WIDTH;
  }

  /** Shows the output of other code above, too. Blank lines are left out: they only separate parts on other screens. */
  readonly #above = (text: string): void => {
    if (this.#closed || text.trim() === "") return;
    const last = this.#state.finished.at(-1);
    if (last?.kind === "lines" && !last.text.endsWith("\n")) {
      const joined = { kind: "lines", text: last.text + text } as const;
      const finished = [...this.#state.finished.slice(0, -1), joined];
      this.#state = { ...this.#state, finished };
    } else this.#state = withBlock(this.#state, { kind: "lines", text });
    this.#plan();
  };

  #showRequest(text: string): void {
    this.#state = withBlock(this.#state, { kind: "said", text });
    this.#hints = [];
    this.#working(true);
    this.#plan();
  }

  #working(on: boolean): void {
    this.#since = on ? systemClock.now() : undefined;
    this.#ticking?.();
    const tick = (): void => {
      this.#ticks += 1;
      this.#plan();
    };
    this.#ticking = on ? systemClock.every(TICK_MS, tick) : undefined;
  }

  #plan(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => this.#drawIfTaken(), FRAME_MS);
  }

  /** Draws on a blocked terminal once it accepts output again; everything until then is drawn at once. */
  #drawIfTaken(): void {
    if (stdout.isBehind) void stdout.allTaken().then(() => this.#draw());
    else this.#draw();
  }

  #draw(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The terminal belongs to the shell while the program is suspended.
    if (this.#closed || this.#keys.isSuspended) return;
    const now = systemClock.now();
    const busy = this.#since !== undefined && now - this.#since >= ACTIVITY_DELAY_MS;
    const above = this.#takeRows();
    const view = {
      state: this.#state,
      busy,
      status: this.#activities.status(now),
      ticks: this.#ticks,
      queue: this.#queue,
      held: this.#waiter !== undefined,
      editor: this.#editor,
      asking: this.#open?.shown,
      answerable: this.#open?.isSeen === true,
      hints: this.#hints,
      foot: this.#parts.facts(),
    };
    this.#canvas.draw(above, frameOf(view, stdout, ANSWER));
    if (this.#state.finished.length > 0 && this.#open === undefined) this.#plan();
  }

  /** Takes the rows that are finished. An open question must not be pushed off the screen. */
  #takeRows(): readonly string[] {
    const urgent = this.#urgent;
    this.#urgent = [];
    if (this.#open !== undefined) return urgent;
    const { finished } = this.#state;
    const blocks = finished.slice(0, BLOCKS_A_FRAME);
    this.#state = { ...withoutFinished(this.#state), finished: finished.slice(BLOCKS_A_FRAME) };
    return [...urgent, ...blocks.flatMap((block) => blockRows(block, stdout, ANSWER))];
  }

  #resized(): void {
    this.#editor = resized(this.#editor, this.#room);
    this.#plan();
  }

  #key(key: Key): void {
    if (key.kind === "key" && key.name === "ctrl+z") return this.#suspend();
    const open = this.#open;
    if (this.#behind !== undefined) this.#behind.push(key);
    else if (open?.isSeen === true && !this.#keys.isSuspended)
      this.#behind = open.settles(key) ? [] : undefined;
    else if (key.kind === "key" && this.#taken(key.name)) this.#hints = [];
    else this.#edit(key);
    this.#plan();
  }

  #handBehind(): void {
    const keys = this.#behind ?? [];
    this.#behind = undefined;
    for (const key of keys) this.#key(key);
  }

  /** Handles keys for the chat itself, not for the text. */
  #taken(name: string): boolean {
    const isBusy = this.#waiter === undefined;
    switch (name) {
      case "ctrl+o":
        this.#showWhole();
        return true;
      case "escape":
        if (isBusy) this.#parts.cancel();
        return this.#takeBack(this.#queue.length) || isBusy;
      case "ctrl+c":
        if (!isBusy) return false;
        if (!this.#parts.onInterrupt())
          this.#early.push({ kind: "interrupt", empty: this.#editor.text === "" });
        this.#takeBack(this.#queue.length);
        return true;
      case "up":
        return this.#editor.text === "" && this.#takeBack(1);
      default:
        return false;
    }
  }

  /** Returns waiting messages to the editor; false if there are none. */
  #takeBack(count: number): boolean {
    const texts = count === 0 ? [] : this.#queue.splice(-count);
    if (texts.length === 0) return false;
    // An offered text was sent before these.
    this.#editor = withTexts(this.#editor, texts, this.#offered ? "behind" : "before");
    this.#offered = false;
    return true;
  }

  #edit(key: Key): void {
    this.#hints = [];
    if (this.#offered && key.kind !== "key") this.#editor = withText(this.#editor, "");
    this.#offered = false;
    const { state, did } = press(this.#editor, key);
    this.#editor = state;
    switch (did.kind) {
      case "submit":
        if (this.#waiter === undefined) this.#queue.push(did.text);
        else this.#waiter({ kind: "line", text: did.text });
        return;
      case "complete":
        return this.#complete();
      case "leave":
        return this.#give({ kind: "end" });
      case "interrupt":
        return this.#give({ kind: "interrupt", empty: did.empty });
      case "redraw":
        this.#canvas.close();
        return this.#draw();
      default:
        if (/^\/\S*$/.test(state.text))
          this.#hints = hintRows(this.#parts.complete(state.text)[0], this.#width - 1);
    }
  }

  #give(line: Line): void {
    if (this.#waiter === undefined) this.#early.push(line);
    else this.#waiter(line);
  }

  #complete(): void {
    const { text, cursor } = this.#editor;
    const before = text.slice(0, cursor);
    const files = this.#parts.files(before);
    if (files === undefined) return this.#fill(this.#parts.complete(before));
    void this.#fillLater(files);
  }

  /** Completes the line unless something was typed since. */
  async #fillLater(files: Promise<Completion>): Promise<void> {
    const { text, cursor } = this.#editor;
    const found = await files;
    if (this.#editor.text !== text || this.#editor.cursor !== cursor) return;
    this.#fill(found);
    this.#draw();
  }

  #fill([hits, of]: Completion): void {
    const { cursor } = this.#editor;
    const [first] = hits;
    if (first === undefined) return;
    const fill = hits.length === 1 ? `${first} ` : commonStart(hits);
    if (fill.length > of.length) this.#editor = replaceBeforeCursor(this.#editor, cursor - of.length, fill);
    this.#hints = hits.length === 1 ? [] : hintRows(hits, this.#width - 1);
  }

  /** Shows the last output as a whole; pressed again, the one before it. */
  #showWhole(): void {
    this.#opened += 1;
    const call = this.#state.outputs.at(-this.#opened);
    if (call !== undefined) this.#state = withBlock(this.#state, { kind: "whole", call });
  }

  #suspend(): void {
    this.#canvas.close();
    this.#keys.suspend((why) => {
      this.#above(styleText("dim", `${why}\n`, { stream: stdout }));
      this.resume();
    });
  }

  async #choose({ shown, ...step }: QuestionStep, signal: AbortSignal): Promise<Choice> {
    const panel = new ChoicePanel(step);
    const choice = await this.#show<Choice>(panel, shown, signal);
    if (choice === undefined) return "no";
    // A question without a text of its own is shown next to its answer, for the history on the screen.
    const question = shown === "" ? fitToWidth(step.asks, this.#width - QUESTION_ROWS) : "";
    const chosen = `${question}  ❯ ${panel.wordsOf(choice.is)}`;
    this.#urgent.push(styleText("dim", chosen, { stream: stdout }));
    return choice.is;
  }

  /** If the person asked for the line, keys typed before it appears are meant for it. */
  async #write(
    words: string,
    initial: string,
    signal: AbortSignal,
    wanted = true,
  ): Promise<string | undefined> {
    const panel = new LinePanel(words, initial, this.#width);
    const line = await this.#show<string | undefined>(panel, "", signal, wanted);
    const typed = line?.is ?? "";
    // For the history on the screen.
    if (typed.trim() !== "" && typed !== initial)
      this.#urgent.push(...plainRows(`  › ${typed}`, this.#width - 1));
    return line?.is;
  }

  /** Only keys after the question is completely visible count; undefined if nothing waits for the answer any more. */
  async #show<T>(panel: Panel<T>, shown: string, signal: AbortSignal, isSeen = false): Promise<Settled<T>> {
    if (signal.aborted || this.#left) return undefined;
    // Earlier output is shown first.
    if (this.#open === undefined) this.#draw();
    if (shown !== "") this.#urgent.push("", ...shown.replace(/\n$/, "").split("\n"));
    const open = new OpenPanel(panel, isSeen);
    this.#open = open;
    const cancelled = (): void => open.giveUp();
    signal.addEventListener("abort", cancelled, { once: true });
    try {
      this.#draw();
      await this.#canvas.written();
      await Promise.race([stdout.allTaken(), open.settled]);
      // Earlier keys may still be in transit.
      for (let turn = 0; turn < 2; turn += 1) await new Promise((done) => setImmediate(done));
      open.isSeen = true;
      this.#draw();
      return await open.settled;
    } finally {
      signal.removeEventListener("abort", cancelled);
      this.#open = undefined;
      // A line that was asked for is open by then; a question is not, because it is not drawn yet.
      setImmediate(() => this.#handBehind());
      this.#plan();
    }
  }
}

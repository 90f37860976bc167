import type { Message, ToolCall } from "../../core/messages.ts";
import type { Compaction, SessionRecord } from "../../core/session.ts";
import { openCalls, viewOf } from "./model-view.ts";
/** Begins messages of harness itself, which have the role of the user. */
export const NOTICE = "[harness] ";
const INTERRUPTED = "No result: the call was interrupted before it ended.";
const UNANSWERED = "not run: parked and never approved";

/**
 * The transcript of one agent and how the model sees it. A compaction never removes anything, so a count always names
 * the same place, and going back to it restores what was shown there.
 */
export class History {
  readonly #record: (record: SessionRecord) => void;
  #pinned: string | undefined;
  readonly #messages: Message[] = [];
  /** In the order of their counts; the last one applies. */
  readonly #compactions: Compaction[] = [];
  /** The result given to calls that are still open. */
  #noResult = INTERRUPTED;

  /** `record` gets every change before it takes effect, and has stored it durably when it returns. */
  constructor(record: (record: SessionRecord) => void) {
    this.#record = record;
  }

  /**
   * Rebuilds the history that an earlier process recorded. Missing results are recorded as interrupted, unless `open`
   * says that they will still come.
   */
  static from(
    records: readonly SessionRecord[],
    record: (record: SessionRecord) => void,
    open: "closed" | "come" = "closed",
  ): History {
    const history = new History(record);
    for (const earlier of records) history.#apply(earlier);
    if (open === "closed") history.#closeCalls();
    return history;
  }

  /** The last reply whose calls wait for results, and its position. */
  get openReply(): { readonly at: number; readonly calls: readonly ToolCall[] } | undefined {
    const calls = openCalls(this.#messages);
    const at = this.#messages.findLastIndex(({ role }) => role === "assistant");
    return calls.length === 0 ? undefined : { at, calls };
  }

  /** Number of messages, shown or not; the pinned prompt is not counted. */
  get count(): number {
    return this.#messages.length;
  }

  get pinned(): string | undefined {
    return this.#pinned;
  }

  /** The whole transcript. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** The compaction that applies. */
  get compaction(): Compaction | undefined {
    return this.#compactions.at(-1);
  }

  /** The first pin wins; later ones are ignored. */
  pin(text: string): void {
    if (this.#pinned === undefined) this.#change({ kind: "pinned", text });
  }

  /**
   * Adds a message. A system message, or a result without its call before it, is a mistake of the caller. Calls that
   * are still open when another message comes get a result that says so.
   */
  add(message: Message): void {
    if (!this.#fits(message)) throw new Error(`a ${message.role} message that has no place here`);
    if (message.role !== "tool") this.#closeCalls();
    this.#change({ kind: "message", message });
  }

  /** What the model sees: the system prompt first and once. Between two compactions it only grows at its end. */
  view(): readonly Message[] {
    return viewOf(this, this.compaction);
  }

  /** Removes the messages after this count, and every compaction made since. */
  rollBack(to: number): void {
    if (to < this.count) this.#change({ kind: "rolled_back", to: Math.max(0, to) });
  }

  /** Drops the user's last message and all after it; harness's own do not count. Returns its text, if there is one. */
  undo(): string | undefined {
    const last = this.#messages.findLastIndex(
      ({ role, text }) => role === "user" && !text.startsWith(NOTICE),
    );
    const text = this.#messages[last]?.role === "user" ? this.#messages[last].text : undefined;
    if (text !== undefined) this.rollBack(last);
    return text;
  }

  /** Removes everything but the pin. */
  clear(): void {
    if (this.count > 0) this.#change({ kind: "cleared" });
  }

  compact(compaction: Compaction): void {
    this.#change({ kind: "compacted", compaction });
  }

  #fits(message: Message): boolean {
    if (message.role !== "tool") return message.role !== "system";
    return openCalls(this.#messages).some(({ id }) => id === message.call);
  }

  #closeCalls(): void {
    for (const { id } of openCalls(this.#messages))
      this.#change({ kind: "message", message: { role: "tool", call: id, text: this.#noResult } });
  }

  #change(record: SessionRecord): void {
    this.#record(record);
    this.#apply(record);
  }

  #apply(record: SessionRecord): void {
    switch (record.kind) {
      case "pinned":
        this.#pinned ??= record.text;
        break;
      case "message":
        if (this.#fits(record.message)) this.#messages.push(record.message);
        if (record.message.role !== "tool") this.#noResult = INTERRUPTED;
        break;
      case "rolled_back":
        this.#backTo(record.to);
        break;
      case "cleared":
        this.#backTo(0);
        this.#compactions.length = 0;
        break;
      case "compacted":
        this.#compactions.push(record.compaction);
        break;
      case "parked":
        this.#noResult = UNANSWERED;
        break;
      case "answered":
        this.#noResult = record.word === "never" ? UNANSWERED : INTERRUPTED;
        break;
      case "seen":
      case "shell":
      case "plan":
      case "tasks":
      case "turn":
        break;
    }
  }

  #backTo(count: number): void {
    if (count < this.count) this.#messages.length = Math.max(0, count);
    while ((this.compaction?.at ?? 0) > count) this.#compactions.pop();
  }
}

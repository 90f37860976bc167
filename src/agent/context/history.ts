/** The transcript of an agent, what the model sees of it, and how many tokens that takes. */

import type { Message, PromptParts, ToolCall, ToolOffer } from "../../core/model-provider.ts";
import type { Compaction, SessionRecord } from "../../core/session.ts";
import { promptBytes, TokenEstimator } from "../../models/token-usage.ts";
import { standingPart } from "./prompt.ts";
import { excerpt } from "./prompt-text.ts";

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

/** Characters shown of a user's request whose message is no longer shown. */
const MAX_REQUEST = 4000;
const SUMMARY = "[Summary of the earlier work on this. Its messages are no longer shown.]";
/** Shorter results cost about as much as the mark that would replace them. */
const PRUNED_FROM = 300;
/** The marker of a cut output names the id under which the whole is kept. */
const KEPT_AS = /show_full\b[^\n]{0,40}?\bid\W{1,4}([\w-]{1,64})|show_full\(\s*["']?([\w-]{1,64})/;

/** What the model sees under this compaction. For the same head it is the same, whatever follows. */
export function viewOf(
  { pinned, messages }: { readonly pinned: string | undefined; readonly messages: readonly Message[] },
  compaction: Compaction | undefined,
): readonly Message[] {
  const shown = shownBehind(messages, compaction);
  if (pinned === undefined) return shown;
  const standing = standingPart(pinned);
  return [{ role: "system", text: pinned, ...(standing === undefined ? {} : { standing }) }, ...shown];
}

function shownBehind(messages: readonly Message[], compaction: Compaction | undefined): Message[] {
  if (compaction === undefined) return [...messages];
  const keepFrom = borderBefore(messages, compaction.keepFrom);
  const shown: Message[] = keepFrom > 0 ? [{ role: "user", text: summaryText(messages, compaction) }] : [];
  const names = new Map<string, string>();
  for (const message of messages.slice(keepFrom, compaction.pruneBefore)) {
    if (message.role === "assistant") for (const { id, name } of message.calls) names.set(id, name);
    shown.push(isLong(message) ? { ...message, text: markOf(message, names.get(message.call)) } : message);
  }
  return [...shown, ...messages.slice(Math.max(keepFrom, compaction.pruneBefore))];
}

/** Whether the message replaces messages that are no longer shown. */
const isSummary = ({ role, text }: Message): boolean =>
  role === "user" && (text.startsWith(SUMMARY) || text.includes(`\n\n${SUMMARY}\n`));

/** Whether replacing the message by a mark would save anything. */
export const isLong = (message: Message): message is Extract<Message, { role: "tool" }> =>
  message.role === "tool" && message.text.length >= PRUNED_FROM;

function markOf({ text }: { readonly text: string }, tool = "a tool"): string {
  const kept = KEPT_AS.exec(text);
  const id = kept?.[1] ?? kept?.[2];
  const again = id === undefined ? "read it again if you need it" : `show_full has it as ${id}`;
  return `[result of ${tool} no longer shown: ${text.length} characters; ${again}]`;
}

const isRequest = ({ role }: Message): boolean => role === "user";

/**
 * The text that replaces messages no longer shown. Besides the first request, it contains the one that was being worked
 * on when the compaction was made: without it the model would continue with something else.
 */
function summaryText(
  messages: readonly Message[],
  { at, keepFrom, artifact, kept = "" }: Compaction,
): string {
  const first = messages.findIndex(isRequest);
  const last = messages.slice(0, at).findLastIndex(isRequest);
  const hidden = [first, last].filter(
    (index, place, all) => index < keepFrom && all.indexOf(index) === place,
  );
  const requests = hidden.flatMap((index) => messages[index]?.text ?? []);
  const [goal, current] = requests.map((text) => excerpt(text, MAX_REQUEST));
  return [
    ...(goal === undefined ? [] : [goal]),
    ...(current === undefined ? [] : [`[The latest request, word for word]\n${current}`]),
    `${SUMMARY}\n${artifact}\n[End of the summary]`,
    ...(kept === "" ? [] : [kept]),
  ].join("\n\n");
}

/** The calls of the last reply that wait for their results. */
export function openCalls(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.findLastIndex(({ role }) => role !== "tool");
  const reply = messages[last];
  if (reply?.role !== "assistant") return [];
  const answered = new Set(
    messages.slice(last + 1).map((result) => (result.role === "tool" ? result.call : "")),
  );
  return reply.calls.filter(({ id }) => !answered.has(id));
}

/** The nearest position at or before this one that separates no result from its call, even one still to come. */
function borderBefore(messages: readonly Message[], at: number): number {
  let border = at >= messages.length && openCalls(messages).length > 0 ? messages.length - 1 : at;
  while (border > 0 && messages[border]?.role === "tool") border -= 1;
  return border;
}

/** Tokens that a server's template adds to each message. */
const PER_MESSAGE = 4;
/** The weight of that template, compared with bytes of text. */
const BYTES_PER_MESSAGE = 16;

/** Estimates the tokens of a request: by its bytes, until the server's own counts give a better ratio. */
export class PromptSize {
  readonly #model: string;
  readonly #offers: () => readonly ToolOffer[];
  readonly #estimator = new TokenEstimator();
  /** Messages never change, so of a long transcript only new ones are measured. */
  readonly #bytes = new WeakMap<Message | readonly ToolOffer[], number>();

  constructor(model: string, offers: () => readonly ToolOffer[]) {
    this.#model = model;
    this.#offers = offers;
  }

  /** Tokens of a request with these messages and tools; by default, the offered tools. */
  readonly tokens = (messages: readonly Message[], tools = this.#offers()): number =>
    this.#estimator.tokens(this.#model, this.#total(messages, tools)) + PER_MESSAGE * messages.length;

  /**
   * The tokens of a request by purpose. Shares are estimated from bytes; their sum is the server's count, or our
   * estimate if the server gave none.
   */
  parts(
    messages: readonly Message[],
    counted: number | null = null,
    tools: readonly ToolOffer[] = this.#offers(),
  ): PromptParts {
    const bytes = { ...NOTHING, tools: this.#toolBytes(tools) };
    for (const message of messages) {
      const all = this.#messageBytes(message) + BYTES_PER_MESSAGE;
      const instructions = message.role === "system" ? instructionBytes(message.text) : 0;
      bytes.instructions += instructions;
      bytes[partOf(message)] += all - instructions;
    }
    return apportioned(bytes, counted ?? this.tokens(messages, tools));
  }

  /** Learns from the server's count for a request with these messages; null teaches nothing. */
  learn(messages: readonly Message[], counted: number | null, tools = this.#offers()): void {
    if (counted === null) return;
    const text = counted - PER_MESSAGE * messages.length;
    this.#estimator.learn(this.#model, this.#total(messages, tools), text);
  }

  #total(messages: readonly Message[], tools: readonly ToolOffer[]): number {
    let bytes = this.#toolBytes(tools);
    for (const message of messages) bytes += this.#messageBytes(message);
    return bytes;
  }

  #toolBytes(tools: readonly ToolOffer[]): number {
    return this.#bytesOf(tools, { messages: [], tools });
  }

  #messageBytes(message: Message): number {
    return this.#bytesOf(message, { messages: [message], tools: [] });
  }

  #bytesOf(of: Message | readonly ToolOffer[], prompt: Parameters<typeof promptBytes>[0]): number {
    const known = this.#bytes.get(of);
    if (known !== undefined) return known;
    const bytes = promptBytes(prompt);
    this.#bytes.set(of, bytes);
    return bytes;
  }
}

type Part = keyof PromptParts;
type Weights = Readonly<Record<Part, number>>;

const NOTHING = {
  system: 0,
  instructions: 0,
  tools: 0,
  summary: 0,
  requests: 0,
  replies: 0,
  results: 0,
} satisfies Weights;

const ROLES = { system: "system", user: "requests", assistant: "replies", tool: "results" } as const;

const partOf = (message: Message): Part => (isSummary(message) ? "summary" : ROLES[message.role]);

/** As rendered by `renderInstructions`: no text in an element can end it. */
const MAX_INSTRUCTION_BYTES = /<project_instructions path=[^>]*>.*?<\/project_instructions>/gs;

const instructionBytes = (text: string): number =>
  (text.match(MAX_INSTRUCTION_BYTES) ?? []).reduce((sum, each) => sum + Buffer.byteLength(each), 0);

/** Splits `total` into whole numbers in these proportions; the remainder goes to the largest fractions. */
function apportioned(weights: Weights, total: number): PromptParts {
  const names = Object.keys(NOTHING) as readonly Part[];
  const whole = names.reduce((sum, name) => sum + weights[name], 0);
  const exact = (name: Part): number => (whole === 0 ? 0 : (weights[name] / whole) * total);
  const parts = Object.fromEntries(names.map((name) => [name, Math.floor(exact(name))])) as Record<
    Part,
    number
  >;
  let left = total - names.reduce((sum, name) => sum + parts[name], 0);
  for (const name of names.toSorted((a, b) => (exact(b) % 1) - (exact(a) % 1))) {
    if (left <= 0) break;
    parts[name] += 1;
    left -= 1;
  }
  return parts;
}

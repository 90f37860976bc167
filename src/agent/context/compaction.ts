/** Keeps a conversation within the model's window: old results become marks, then older messages a summary. */

import type { Emit, EventBody } from "../../core/events.ts";
import type { Message, ModelFailure } from "../../core/model-provider.ts";
import type { Compaction } from "../../core/session.ts";
import { type History, isLong, viewOf } from "./history.ts";
import { mergeSummaries, readSummary, renderSummary, SUMMARY_REQUEST } from "./conversation-summary.ts";
import { excerpt, untagged } from "./prompt-text.ts";

/** Shares of the window: when to compact, and how small to make it. */
const TRIGGER_SHARE = 0.8;
const GOAL_SHARE = 0.6;
/** How much a history must have changed, as a share of the window, before a failed compaction is tried again. */
const BACK_OFF = 0.05;
/** A server that refuses a prompt counts more tokens than we do. */
const REFUSED_SHARE = 0.8;
const MAX_PASSES = 8;

export interface CompactorOptions {
  /** Most tokens of a prompt. */
  readonly window: number;
  /** The window is stated by the server, a probe or the user. A guessed window never blocks a request. */
  readonly known: boolean;
  /** Tokens of a request with these messages, including the tools. */
  tokens(messages: readonly Message[]): number;
  /** The reply to these messages. The request has the same tools as ever; calls in the reply are not run. */
  summarise(messages: readonly Message[], signal: AbortSignal): Promise<string | ModelFailure>;
  readonly emit: Emit;
  readonly now: () => number;
  /** Text that stays beside a summary word for word; empty when there is none. */
  readonly kept?: () => string;
  /** Text to keep word for word beside the next summary; empty when there is none. */
  readonly keep?: (trigger: string, signal: AbortSignal) => Promise<string>;
}

type FitResult =
  | { readonly kind: "fits" }
  /** Only for a known window; nothing is left to shorten. */
  | { readonly kind: "too_long"; readonly tokens: number; readonly window: number };

type Trigger = Extract<EventBody, { readonly type: "compaction" }>["trigger"];
type Pass = "shorter" | "nothing" | "failed";

interface CompactionAim {
  readonly trigger: Trigger;
  readonly window: number;
  /** Compacts even if that saves little. */
  readonly forced: boolean;
}

/** Keeps the requests of one history within the window. A failed compaction changes nothing. */
export class Compactor {
  readonly #history: History;
  readonly #options: CompactorOptions;
  /** Tokens of the request at the last failure. */
  #failedAt: number | undefined;
  /** The window learned from a refusal. Requests are planned by it, but never blocked, because it is our own count. */
  #learnedWindow = Number.POSITIVE_INFINITY;
  /** Total time spent waiting for summaries. */
  askedMs = 0;

  constructor(history: History, options: CompactorOptions) {
    this.#history = history;
    this.#options = options;
  }

  /** Call before each request of the loop. */
  async fit(signal: AbortSignal): Promise<FitResult> {
    const { known } = this.#options;
    const window = Math.min(this.#options.window, this.#learnedWindow);
    const tooLong = (): boolean => known && this.#tokens() > this.#options.window;
    if (tooLong() || !this.#backsOff())
      await this.#shorten({ trigger: "pressure", window, forced: tooLong() }, signal);
    if (tooLong() && !signal.aborted) this.#pruneRecent({ trigger: "pressure", window, forced: true });
    return tooLong()
      ? { kind: "too_long", tokens: this.#tokens(), window: this.#options.window }
      : { kind: "fits" };
  }

  /**
   * Compacts because a person asked for it, or because a server refused the prompt as too long. Returns whether the
   * request is shorter now; if not, an event has said why.
   */
  async now(trigger: "manual" | "refused", signal: AbortSignal): Promise<boolean> {
    const before = this.#tokens();
    const window =
      trigger === "manual" ? this.#options.window : Math.min(this.#options.window, before) * REFUSED_SHARE;
    if (trigger === "refused") this.#learnedWindow = Math.min(this.#learnedWindow, window);
    const aim: CompactionAim = { trigger, window, forced: true };
    const last = await (trigger === "manual" ? this.#summarise(aim, signal) : this.#shorten(aim, signal));
    if (trigger === "refused" && this.#tokens() > window && !signal.aborted) this.#pruneRecent(aim);
    const shorter = this.#tokens() < before;
    if (!shorter && last === "nothing")
      this.#emit("failed", aim, before, { reason: "nothing is left to summarise" });
    return shorter;
  }

  #backsOff(): boolean {
    const since = this.#tokens() - (this.#failedAt ?? -Infinity);
    return Math.abs(since) < BACK_OFF * this.#options.window;
  }

  /** Returns how the last pass ended. */
  async #shorten(aim: CompactionAim, signal: AbortSignal): Promise<Pass> {
    let last: Pass = "shorter";
    for (let pass = 0; pass < MAX_PASSES && this.#tokens() > TRIGGER_SHARE * aim.window; pass += 1) {
      if (this.#tryPrune(pruneSteps(this.#history, this.#options, "old"), aim, GOAL_SHARE)) return "shorter";
      last = await this.#summarise(aim, signal);
      if (last !== "shorter") break;
    }
    return last;
  }

  /** Also prunes results that the model may not have read yet: better than a request that cannot be sent. */
  #pruneRecent(aim: CompactionAim): void {
    this.#tryPrune(pruneSteps(this.#history, this.#options, "all"), aim, 1);
  }

  /** Applies the first of the steps that brings the request below this share of the window. */
  #tryPrune(steps: readonly number[], aim: CompactionAim, part: number): boolean {
    const before = this.#tokens();
    for (const pruneBefore of steps) {
      const next = { ...this.#next(), pruneBefore };
      const after = this.#tokens(next);
      if (after > part * aim.window) continue;
      this.#history.compact(next);
      this.#emit("pruned", aim, before, { after });
      return true;
    }
    return false;
  }

  async #summarise(aim: CompactionAim, signal: AbortSignal): Promise<Pass> {
    const before = this.#tokens();
    const part = olderPart(this.#history, this.#options, aim);
    if (part === undefined) return "nothing";
    this.#emit("started", aim, before);
    const keep = (await this.#options.keep?.(aim.trigger, signal)) ?? "";
    const askedAt = this.#options.now();
    const reply = await this.#options.summarise(part.messages, signal);
    this.askedMs += this.#options.now() - askedAt;
    const made =
      typeof reply === "string" ? this.#compactionFrom(reply, keep, part.keepFrom, before) : reply.reason;
    if (typeof made === "string" || signal.aborted) {
      if (!signal.aborted) this.#failedAt = before;
      this.#emit("failed", aim, before, { reason: typeof made === "string" ? made : "cancelled" });
      return "failed";
    }
    this.#history.compact(made);
    this.#failedAt = undefined;
    this.#emit("succeeded", aim, before, { after: this.#tokens() });
    return "shorter";
  }

  /** The compaction, or why there is none. */
  #compactionFrom(reply: string, keep: string, keepFrom: number, before: number): Compaction | string {
    const read = readSummary(reply);
    if (read === undefined) return "the summary is empty";
    const summary = renderSummary(mergeSummaries(this.#next().artifact, read));
    const artifact = keep === "" ? summary : `${summary}\n${quotedLines(keep)}`;
    const made = { ...this.#next(), keepFrom, artifact };
    return this.#tokens(made) < before ? made : "the summary is not shorter than what it would replace";
  }

  /** The current compaction, as it would be made again now. */
  #next(): Compaction {
    const { kept: _, ...now } = this.#history.compaction ?? { pruneBefore: 0, keepFrom: 0, artifact: "" };
    const kept = this.#options.kept?.() ?? "";
    return { ...now, at: this.#history.count, ...(kept === "" ? {} : { kept }) };
  }

  #tokens(under?: Compaction): number {
    return this.#options.tokens(viewOf(this.#history, under ?? this.#history.compaction));
  }

  #emit(
    status: "pruned" | "started" | "succeeded" | "failed",
    { trigger }: CompactionAim,
    before: number,
    { after = null, reason = "" }: { readonly after?: number | null; readonly reason?: string } = {},
  ): void {
    this.#options.emit({ type: "compaction", status, trigger, before, after, reason });
  }
}

/** Quotes the text, so that the next summary does not take its lines for entries. */
const quotedLines = (text: string): string =>
  untagged(text)
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");

/** Share of the window; newest results up to this size are never dropped for being old. */
const PROTECTED_SHARE = 0.25;
/** The model is still working with the results of this many replies. */
const PROTECTED_REPLIES = 2;

type WindowSize = Pick<CompactorOptions, "window" | "tokens">;

/**
 * Message counts before which results could be shown as marks, smallest first. "old": the one count that spares recent
 * results. "all": a count after each long result that is still shown.
 */
function pruneSteps(history: History, sizes: WindowSize, which: "old" | "all"): readonly number[] {
  const { messages, compaction } = history;
  const from = Math.max(compaction?.pruneBefore ?? 0, compaction?.keepFrom ?? 0);
  const long = [...messages.entries()].flatMap(([at, message]) =>
    at >= from && isLong(message) ? [at] : [],
  );
  if (which === "all") return long.map((at) => at + 1);
  const border = protectedFrom(messages, sizes);
  return long.some((at) => at < border) ? [border] : [];
}

function protectedFrom(messages: readonly Message[], sizes: WindowSize): number {
  const nothing = sizes.tokens([]);
  let left = PROTECTED_SHARE * sizes.window;
  let replies = 0;
  let border = messages.length;
  for (const [at, message] of [...messages.entries()].toReversed()) {
    if (message.role === "tool") left -= sizes.tokens([message]) - nothing;
    if (message.role === "assistant" && message.calls.length > 0) replies += 1;
    if (left < 0 && replies >= PROTECTED_REPLIES) return border;
    border = at;
  }
  return border;
}

/** Share of what may be left after a compaction that is kept word for word. */
const VERBATIM_SHARE = 0.4;
const LEFT_SHARE = 0.6;
/** Share of the window below which a summary is not worth its price. */
const MIN_SUMMARISED_SHARE = 0.05;
/** Characters kept of a message when the older part by itself does not fit. */
const MAX_SHORTENED = 1000;

interface OlderPart {
  readonly keepFrom: number;
  /** The messages as the model knows them, byte for byte if they fit, followed by the request for a summary. */
  readonly messages: readonly Message[];
}

/** The messages that a summary would replace; undefined when there are none, or too few. */
function olderPart(
  history: History,
  sizes: Pick<CompactorOptions, "tokens">,
  { window, forced }: Pick<CompactionAim, "window" | "forced">,
): OlderPart | undefined {
  const view = history.view();
  /** From this offset on, the view has the messages one for one. */
  const shift = view.length - history.count;
  const nothing = sizes.tokens([]);
  const weight = (messages: readonly Message[]): number => sizes.tokens(messages) - nothing;
  const start = history.compaction?.keepFrom ?? 0;
  const borders = [...history.messages.keys()].filter(
    (at) => at > start && history.messages[at]?.role !== "tool",
  );
  const shown = view.slice(start + shift);
  const keep = VERBATIM_SHARE * Math.min(LEFT_SHARE * window - nothing, weight(shown));
  const cut = borders.find((at) => weight(shown.slice(at - start)) <= keep) ?? borders.at(-1);
  if (cut === undefined || (!forced && weight(shown.slice(0, cut - start)) < MIN_SUMMARISED_SHARE * window))
    return undefined;
  for (const keepFrom of borders.filter((at) => at <= cut).toReversed()) {
    const request = summaryRequest(
      view.slice(0, keepFrom + shift),
      (messages) => sizes.tokens(messages) <= window,
    );
    if (request !== undefined) return { keepFrom, messages: request };
  }
  return undefined;
}

function summaryRequest(
  older: readonly Message[],
  fits: (messages: readonly Message[]) => boolean,
): Message[] | undefined {
  const request: Message = { role: "user", text: SUMMARY_REQUEST };
  const whole = [...older, request];
  if (fits(whole)) return whole;
  const short = [...older.map(shortened), request];
  return fits(short) ? short : undefined;
}

function shortened(message: Message): Message {
  if (message.role === "system") return message;
  const text = excerpt(message.text, MAX_SHORTENED);
  if (message.role !== "assistant") return { ...message, text };
  return {
    role: "assistant",
    text,
    calls: message.calls.map((call) => ({ ...call, args: shortArgs(call.args) })),
  };
}

function shortArgs(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const json = JSON.stringify(args);
  return json.length <= MAX_SHORTENED ? args : { shortened: excerpt(json, MAX_SHORTENED) };
}

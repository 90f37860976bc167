import type { AgentEvent } from "../../core/events.ts";
import { lastName } from "../../core/file-names.ts";
import { formatCount, formatDuration } from "../../core/wording.ts";
import { fitToWidth } from "./columns.ts";
import { seconds, type Status } from "./live-lines.ts";

interface Activity {
  readonly kind: "model" | "call" | "summary";
  readonly since: number;
  /** For a model: when it last sent something, and what it is doing. */
  readonly heard: number;
  readonly words: string;
}

/** The time of shorter waits is not shown. */
const SHORT_MS = 1000;
const STUCK_MS = 60_000;

/** Tracks from events what a run is waiting for. The activity that started last is shown. */
export class Activities {
  readonly #running = new Map<string, Activity>();
  readonly #answerIsSeen: boolean;
  /** One per agent, because each has its own conversation. */
  readonly #paces = new Map<string, ModelPace>();
  readonly #counts = new RunCounts();
  #model = "the model";

  /** When the chat streams the answer, no status is shown while the model answers. */
  constructor(answerIsSeen: boolean) {
    this.#answerIsSeen = answerIsSeen;
  }

  take(event: AgentEvent, about: { readonly now: number; readonly callWords: string }): void {
    const { now, callWords } = about;
    const model = `model ${event.agent ?? ""}`;
    this.#pace(event, now);
    this.#counts.take(event);
    switch (event.type) {
      case "run.started":
        if (event.agent === undefined) this.#model = lastName(event.model);
        return;
      case "turn.started":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now });
      case "text":
        return this.#heard(model, "answering", now);
      case "thinking":
        return this.#heard(model, "thinking", now);
      case "model.waiting":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now + event.ms });
      case "compaction":
        this.#running.delete(model);
        if (event.status === "started")
          this.#begin(model, { kind: "summary", words: "summarising older turns", since: now });
        return;
      case "model.finished":
      case "model.failed":
      case "rolled_back":
        this.#running.delete(model);
        return;
      case "check.started":
        return this.#begin("check", {
          kind: "call",
          words: `checking: ${fitToWidth(event.command, 50)}`,
          since: now,
        });
      case "check.ended":
        this.#running.delete("check");
        return;
      case "call.decided":
        if (event.runs)
          this.#begin(callKey(event), { kind: "call", words: `running ${callWords}`, since: now });
        return;
      case "call.ended":
        this.#running.delete(callKey(event));
        return;
      case "run.finished":
        this.#running.clear();
        return;
      default:
    }
  }

  status(now: number): Status | undefined {
    const [key, last] = [...this.#running].at(-1) ?? ["", undefined];
    const right = this.#answerIsSeen ? [] : this.#counts.words();
    // A status that comes and goes is distracting; the chat has its own status below.
    if (last === undefined)
      return this.#answerIsSeen || !this.#counts.isRunning ? undefined : { text: "", alarming: false, right };
    const { kind, since, words } = last;
    if (now < since)
      return { text: `retrying ${this.#model} in ${seconds(since - now)}`, alarming: false, right };
    if (this.#answerIsSeen && (now - since < SHORT_MS || words === "answering")) return undefined;
    if (kind === "model") return { ...this.#ofModel(last, now, this.#paces.get(key)), right };
    const others = [...this.#running.values()].filter((one) => one.kind === "call").length - 1;
    const othersNote = kind === "call" && others > 0 ? ` (and ${others} more)` : "";
    return { text: `${words}${othersNote}${time(now - since)}`, alarming: false, right };
  }

  #ofModel({ words, since, heard }: Activity, now: number, pace: ModelPace | undefined): Status {
    const waiting = words === "waiting for";
    const doing = waiting ? `waiting for ${this.#model}` : `${this.#model}: ${words}`;
    const silent = now - heard;
    const text = `${doing}${time(now - since)}`;
    const short = now - since < SHORT_MS;
    const rate = short ? [] : ((waiting ? pace?.reading(now) : pace?.writing()) ?? []);
    // The model sends nothing while it reads a long prompt.
    const patience = Math.max(STUCK_MS, waiting ? (pace?.silenceMs ?? 0) : 0);
    return silent < patience
      ? { text, beside: rate, alarming: false }
      : { text: `${text}, no sign of life for ${seconds(silent)} - stuck?`, alarming: true };
  }

  /** Learns each model's speed from its own requests. */
  #pace(event: AgentEvent, now: number): void {
    const key = `model ${event.agent ?? ""}`;
    const pace = this.#paces.get(key) ?? new ModelPace();
    this.#paces.set(key, pace);
    switch (event.type) {
      case "turn.started":
        return pace.requestSent(event.tokens, now);
      case "text":
      case "thinking":
        return pace.heard(event.text, now);
      case "model.waiting":
        return pace.again(now + event.ms);
      case "model.finished":
        return pace.finished(event, now);
      case "compaction":
      case "rolled_back":
        return pace.changed();
      default:
    }
  }

  #begin(key: string, activity: Omit<Activity, "heard">): void {
    this.#running.delete(key);
    this.#running.set(key, { ...activity, heard: activity.since });
  }

  #heard(key: string, words: string, now: number): void {
    const activity = this.#running.get(key);
    if (activity !== undefined) this.#running.set(key, { ...activity, heard: now, words });
  }
}

export const callKey = ({ agent, call }: { readonly agent?: string; readonly call: string }): string =>
  `call ${agent ?? ""} ${call}`;

const time = (ms: number): string => (ms < SHORT_MS ? "" : ` ${seconds(ms)}`);

/** The progress of a run: turns, tokens and cost so far, including its subagents. */
class RunCounts {
  #turn = 0;
  #most: number | undefined;
  #tokens = 0;
  #cost: number | null = 0;
  /** The run has started and not ended. */
  isRunning = false;

  take(event: AgentEvent): void {
    if (event.type === "run.started" && event.agent === undefined) {
      this.#most = event.max_turns;
      this.isRunning = true;
    }
    if (event.type === "run.finished") this.isRunning = false;
    if (event.type === "turn.started" && event.agent === undefined) this.#turn = event.turn;
    if (event.type !== "model.finished" && event.type !== "model.aside") return;
    const { prompt_tokens, completion_tokens, cost } = event.usage;
    this.#tokens += (prompt_tokens ?? 0) + (completion_tokens ?? 0);
    this.#cost = this.#cost === null || cost === null ? null : this.#cost + cost;
  }

  /** Variants of the text, longest first. */
  words(): readonly string[] {
    if (this.#turn === 0) return [];
    const most = this.#most === undefined ? "" : ` of ${this.#most}`;
    const turn = `turn ${this.#turn}${most}`;
    const tokens = this.#tokens === 0 ? "" : ` · ${shortCount(this.#tokens)} tokens`;
    const cost = this.#cost === null || this.#cost === 0 ? "" : ` · cost ${costText(this.#cost)}`;
    return [turn + tokens + cost, turn + tokens, turn, turn.replace(" of ", "/")];
  }
}

const costText = (cost: number): string => cost.toLocaleString("en-US", { maximumSignificantDigits: 2 });

/** 940, 12.4k, 1.2M. */
function shortCount(count: number): string {
  if (count < 1000) return String(count);
  return count < 999_950 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/** Assumed until a server has counted a reply. */
const TOKENS_PER_CHARACTER = 1 / 4;
/** Fewer tokens, or less time, give no useful rate. */
const MIN_TOKENS = 50;
const MIN_MS = 200;
/** How long a reply streams before its rate is shown. */
const STEADY_MS = 2000;
/** A wait longer than this multiple of the estimate has another cause. */
const OVERDUE_FACTOR = 1.5;
/** A reply that did not stream gives a reading rate only if its prompt was this many times longer. */
const MOSTLY_READ = 4;

type Finished = Extract<AgentEvent, { readonly type: "model.finished" }>;

/**
 * Measures how fast a model reads prompts and writes replies, from the events of a run. Servers cache the part of the
 * conversation they have already read, so only new tokens count as reading.
 */
class ModelPace {
  /** Tokens of the conversation up to the last reply, as the server counted them. */
  #kept = 0;
  #toRead: number | null = null;
  #began = 0;
  #first: number | undefined;
  #last = 0;
  #characters = 0;
  #perCharacter = TOKENS_PER_CHARACTER;
  /** Tokens read per millisecond, from the last request that allowed a measurement. */
  #readRate: number | null = null;

  /** A request with this estimated number of tokens is sent; undefined if unknown. */
  requestSent(tokens: number | undefined, now: number): void {
    this.#toRead = tokens === undefined ? null : this.#newOf(tokens);
    this.again(now);
  }

  /** The same request is sent again at this time. */
  again(at: number): void {
    this.#began = at;
    this.#first = undefined;
    this.#characters = 0;
  }

  /** A piece of the reply has arrived. */
  heard(text: string, now: number): void {
    this.#first ??= now;
    this.#last = now;
    this.#characters += text.length;
  }

  finished({ usage, calls }: Finished, now: number): void {
    const { prompt_tokens: prompt, completion_tokens: completion } = usage;
    const read = prompt === null ? this.#toRead : this.#newOf(prompt);
    const wrote = completion ?? 0;
    const ended = this.#first ?? (read !== null && read >= wrote * MOSTLY_READ ? now : undefined);
    if (ended !== undefined && read !== null && read >= MIN_TOKENS && ended - this.#began >= MIN_MS)
      this.#readRate = read / (ended - this.#began);
    if (calls === 0 && completion !== null && this.#characters >= MIN_TOKENS)
      this.#perCharacter = completion / this.#characters;
    this.#kept = prompt === null ? 0 : prompt + wrote;
    this.#toRead = null;
  }

  /** The conversation was rewritten, so the server has to read it again. */
  changed(): void {
    this.#kept = 0;
  }

  /** How long a model may stay silent while it reads; 0 if nothing is known. */
  get silenceMs(): number {
    return (this.#readingMs ?? 0) * OVERDUE_FACTOR;
  }

  get #readingMs(): number | null {
    return this.#toRead === null || this.#readRate === null ? null : this.#toRead / this.#readRate;
  }

  /** How much there is to read before the first word; empty if unknown. */
  reading(now: number): readonly string[] {
    if (this.#toRead === null || this.#toRead < MIN_TOKENS) return [];
    const words = `, ${formatCount(Math.round(this.#toRead))} tokens to read`;
    const ms = this.#readingMs;
    if (ms === null || now - this.#began > ms * OVERDUE_FACTOR) return [words];
    const about = ms < 1000 ? "under 1 s" : ms < 60_000 ? `${Math.round(ms / 1000)} s` : formatDuration(ms);
    return [words, `, about ${about} at the last rate`];
  }

  /** How fast the reply streams; empty until the rate is steady. */
  writing(): readonly string[] {
    const ms = this.#last - (this.#first ?? this.#last);
    if (ms < STEADY_MS) return [];
    const rate = (this.#characters * this.#perCharacter) / (ms / 1000);
    return [`, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)} tokens a second`];
  }

  #newOf(tokens: number): number {
    return tokens > this.#kept ? tokens - this.#kept : tokens;
  }
}

import type { AgentEvent } from "../../core/events.ts";
import { formatCount, formatDuration } from "../../core/wording.ts";

/** Assumed until a server has counted a reply. */
const TOKENS_PER_CHARACTER = 1 / 4;
/** Fewer tokens, or less time, give no useful rate. */
const FEWEST = 50;
const SHORTEST_MS = 200;
/** How long a reply streams before its rate is shown. */
const STEADY_MS = 2000;
/** A wait longer than this multiple of the estimate has another cause. */
const BEYOND = 1.5;
/** A reply that did not stream gives a reading rate only if its prompt was this many times longer. */
const MOSTLY_READ = 4;

type Finished = Extract<AgentEvent, { readonly type: "model.finished" }>;

/**
 * Measures how fast a model reads prompts and writes replies, from the events of a run. Servers cache the part of the
 * conversation they have already read, so only new tokens count as reading.
 */
export class ModelPace {
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
  asked(tokens: number | undefined, now: number): void {
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
    if (ended !== undefined && read !== null && read >= FEWEST && ended - this.#began >= SHORTEST_MS)
      this.#readRate = read / (ended - this.#began);
    if (calls === 0 && completion !== null && this.#characters >= FEWEST)
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
    return (this.#readingMs ?? 0) * BEYOND;
  }

  get #readingMs(): number | null {
    return this.#toRead === null || this.#readRate === null ? null : this.#toRead / this.#readRate;
  }

  /** How much there is to read before the first word; empty if unknown. */
  reading(now: number): readonly string[] {
    if (this.#toRead === null || this.#toRead < FEWEST) return [];
    const words = `, ${formatCount(Math.round(this.#toRead))} tokens to read`;
    const ms = this.#readingMs;
    if (ms === null || now - this.#began > ms * BEYOND) return [words];
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

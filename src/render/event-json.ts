import type { AgentEvent } from "../core/events.ts";
import { inertJson } from "../core/visible.ts";

type Clean = (text: string) => string;

/**
 * Writes the events of a run as lines of JSON, with secrets removed from every text. A secret may be split across pieces,
 * and is often recognised only by the words before it, so streamed text is passed on line by line; pieces that are joined
 * leave gaps in `seq`.
 */
export class RunJson {
  readonly #clean: Clean;
  #held: Streamed | undefined;

  constructor(clean: Clean) {
    this.#clean = clean;
  }

  /** Returns complete lines with their line ends: often none for a piece of text, sometimes two. */
  take(event: AgentEvent): string {
    const held = this.#held;
    this.#held = undefined;
    if (!isStreamed(event)) return this.#line(held) + this.#line(event);
    if (held === undefined || !continues(held, event)) {
      this.#held = event;
      return this.#line(held);
    }
    const text = held.text + event.text;
    const cut = ready(text);
    if (cut < text.length) this.#held = { ...event, text: text.slice(cut) };
    return cut === 0 ? "" : this.#line({ ...held, text: text.slice(0, cut) });
  }

  /** Returns the text still held back, when the last event was not the end of the run. */
  end(): string {
    const held = this.#held;
    this.#held = undefined;
    return this.#line(held);
  }

  #line(event: AgentEvent | undefined): string {
    if (event === undefined) return "";
    const { type, run, seq, ...own } = event;
    return `${inertJson(cleaned({ type, run, seq, ...own }, this.#clean))}\n`;
  }
}

type Streamed = Extract<AgentEvent, { readonly type: "text" | "thinking" }>;

const isStreamed = (event: AgentEvent): event is Streamed =>
  event.type === "text" || event.type === "thinking";

const continues = (held: Streamed, event: Streamed): boolean =>
  held.type === event.type && held.run === event.run && held.agent === event.agent;

/** A longer line is passed on word by word, and a longer word as it arrives. */
const LONG_LINE = 400;
const LONG_WORD = 4096;

/** How much of a text can be passed on now. */
function ready(text: string): number {
  const line = text.lastIndexOf("\n") + 1;
  if (line > 0 || text.length <= LONG_LINE) return line;
  const word = Math.max(text.lastIndexOf(" "), text.lastIndexOf("\t")) + 1;
  return word === 0 && text.length > LONG_WORD ? text.length : word;
}

/** Returns the same value with `clean` applied to every string in it, at any depth. */
export function cleaned<T>(value: T, clean: (text: string) => string): T;
export function cleaned(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((inner) => cleaned<unknown>(inner, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, cleaned<unknown>(inner, clean)]),
  );
}

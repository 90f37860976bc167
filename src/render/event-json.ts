import type { AgentEvent } from "../core/events.ts";
import { inertJson } from "../core/visible.ts";

type Clean = (text: string) => string;

/**
 * The events of a run as lines of JSON, each text in them cleaned. A secret may come in pieces, and is often known only
 * by the words before it: a streamed text goes on line by line, so that some numbers are left out there.
 */
export class RunJson {
  readonly #clean: Clean;
  #held: Streamed | undefined;

  constructor(clean: Clean) {
    this.#clean = clean;
  }

  /** Lines with their ends; often none for a piece of a text, sometimes two. */
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

  /** What is still held, where the last event was not the run's end. */
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

/** A line that is longer goes on word by word, and a word that is longer as it comes. */
const LONG_LINE = 400;
const LONG_WORD = 4096;

/** How much of a text can go. */
function ready(text: string): number {
  const line = text.lastIndexOf("\n") + 1;
  if (line > 0 || text.length <= LONG_LINE) return line;
  const word = Math.max(text.lastIndexOf(" "), text.lastIndexOf("\t")) + 1;
  return word === 0 && text.length > LONG_WORD ? text.length : word;
}

/** The same value with every text of it, however deep, through `clean`. */
export function cleaned<T>(value: T, clean: (text: string) => string): T;
export function cleaned(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((inner) => cleaned<unknown>(inner, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, cleaned<unknown>(inner, clean)]),
  );
}

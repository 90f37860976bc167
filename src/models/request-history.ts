import { createHash } from "node:crypto";
import type { Message, ToolCall } from "../core/model-provider.ts";

/** A transcript in a form that every server accepts. */
export interface RequestTranscript {
  /** All system texts before the first other message; empty if there are none. */
  readonly system: string;
  readonly turns: readonly Turn[];
}

export type Turn =
  | { readonly role: "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly thinking: string;
      readonly calls: readonly ToolCall[];
    }
  /** The results of the previous turn, one for each of its calls. */
  | { readonly role: "results"; readonly results: readonly Result[] };

interface Result {
  readonly call: string;
  readonly text: string;
}

const NO_RESULT = "No result: the call was not run to its end.";

/**
 * What servers require of a history: one system message, at the start; no two consecutive turns of one side; no empty
 * turns; each call directly followed by its result. A system message in the middle of the history would make servers
 * read everything again, and some refuse it, so it becomes a user message. Results of unknown calls do too.
 */
export function conversationOf(messages: readonly Message[]): RequestTranscript {
  const first = messages.findIndex(({ role }) => role !== "system");
  const head = messages.slice(0, first === -1 ? messages.length : first);
  const turns = new Turns();
  for (const message of messages.slice(head.length)) turns.add(message);
  turns.settle();
  return {
    system: joinTexts(head.map(({ role, ...rest }) => ("text" in rest ? rest.text : role))),
    turns: turns.list,
  };
}

const joinTexts = (texts: readonly string[]): string =>
  texts.filter((text) => text.trim() !== "").join("\n\n");

class Turns {
  readonly list: Turn[] = [];
  /** Calls of the last reply that still lack a result, and the results so far. */
  #open: Set<string> | undefined;
  /** All calls of the last reply, in order. */
  #calls: readonly string[] = [];
  #results: Result[] = [];
  /** User texts that arrived while results were still missing. */
  #late: string[] = [];

  add(message: Message): void {
    if (message.role === "assistant") this.#assistant(message);
    else if (message.role === "tool") this.#result(message.call, message.text);
    else this.#user(message.text);
  }

  /** Completes the results of the last reply. */
  settle(): void {
    if (this.#open === undefined) return;
    const missing = [...this.#open].map((call) => ({ call, text: NO_RESULT }));
    const results = [...this.#results, ...missing];
    // Servers that match results by order expect the order of the calls.
    const place = ({ call }: Result): number => this.#calls.indexOf(call);
    this.list.push({ role: "results", results: results.toSorted((a, b) => place(a) - place(b)) });
    const late = this.#late;
    this.#open = undefined;
    this.#results = [];
    this.#late = [];
    for (const text of late) this.#user(text);
  }

  #assistant({ text, thinking = "", calls }: Extract<Message, { role: "assistant" }>): void {
    this.settle();
    if (text.trim() === "" && calls.length === 0) return;
    const last = this.list.at(-1);
    const before = last?.role === "assistant" ? last : undefined;
    if (before !== undefined) this.list.pop();
    this.list.push({
      role: "assistant",
      text: before === undefined ? text : joinTexts([before.text, text]),
      thinking: before === undefined ? thinking : joinTexts([before.thinking, thinking]),
      calls,
    });
    if (calls.length === 0) return;
    this.#calls = calls.map(({ id }) => id);
    this.#open = new Set(this.#calls);
  }

  #result(call: string, text: string): void {
    if (this.#open?.delete(call) === true) this.#results.push({ call, text });
    else this.#user(`Result of an earlier call:\n${text}`);
  }

  #user(text: string): void {
    if (text.trim() === "") return;
    if (this.#open !== undefined && this.#open.size > 0) {
      this.#late.push(text);
      return;
    }
    this.settle();
    const last = this.list.at(-1);
    if (last?.role !== "user") this.list.push({ role: "user", text });
    else this.list.splice(-1, 1, { role: "user", text: joinTexts([last.text, text]) });
  }
}

/**
 * The id in a form that the server accepts: unchanged if it fits, else an id derived from it, always the same one and
 * never the same for two ids. Ids come from other servers and from calls in prose, and histories are sent to whatever
 * model is chosen next.
 */
export function fittedId(id: string, shape: IdShape): string {
  if (shape.fits.test(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex");
  return `${shape.prefix}${digest.slice(0, shape.length - shape.prefix.length)}`;
}

export interface IdShape {
  readonly fits: RegExp;
  readonly prefix: string;
  readonly length: number;
}

/** Accepted by OpenAI (at most 40 characters) and Anthropic (only these characters). */
export const USUAL_ID: IdShape = { fits: /^[\w-]{1,40}$/, prefix: "call_", length: 29 };

/** Mistral's templates refuse every other id. */
export const MISTRAL_ID: IdShape = { fits: /^[A-Za-z0-9]{9}$/, prefix: "", length: 9 };

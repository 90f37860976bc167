import type { Message, ToolCall } from "../../core/messages.ts";

/** A transcript as every server can take it. */
export interface Conversation {
  /** All that stands before the first other message; empty when there is none. */
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
  /** Of the turn before: one for each of its calls. */
  | { readonly role: "results"; readonly results: readonly Result[] };

interface Result {
  readonly call: string;
  readonly text: string;
}

const NO_RESULT = "No result: the call was not run to its end.";

/**
 * What servers demand of a history: one system message, at the start; no two turns of one side in a row; no empty
 * ones; each call followed by its result before anything else. A system message in mid-history would make servers read
 * everything again, and some refuse it: it goes on as the user's. Results whose call is not known do so too.
 */
export function conversationOf(messages: readonly Message[]): Conversation {
  const first = messages.findIndex(({ role }) => role !== "system");
  const head = messages.slice(0, first === -1 ? messages.length : first);
  const turns = new Turns();
  for (const message of messages.slice(head.length)) turns.add(message);
  turns.settle();
  return {
    system: joined(head.map(({ role, ...rest }) => ("text" in rest ? rest.text : role))),
    turns: turns.list,
  };
}

const joined = (texts: readonly string[]): string => texts.filter((text) => text.trim() !== "").join("\n\n");

class Turns {
  readonly list: Turn[] = [];
  /** Calls of the last reply that wait for their results, and what has come for them. */
  #open: Set<string> | undefined;
  /** All calls of that reply, in order. */
  #calls: readonly string[] = [];
  #results: Result[] = [];
  /** Said while results were still to come. */
  #late: string[] = [];

  add(message: Message): void {
    if (message.role === "assistant") this.#assistant(message);
    else if (message.role === "tool") this.#result(message.call, message.text);
    else this.#user(message.text);
  }

  /** Closes the results of the last reply. */
  settle(): void {
    if (this.#open === undefined) return;
    const missing = [...this.#open].map((call) => ({ call, text: NO_RESULT }));
    const results = [...this.#results, ...missing];
    // Servers that go by the order of results take it for that of the calls.
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
      text: before === undefined ? text : joined([before.text, text]),
      thinking: before === undefined ? thinking : joined([before.thinking, thinking]),
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
    else this.list.splice(-1, 1, { role: "user", text: joined([last.text, text]) });
  }
}

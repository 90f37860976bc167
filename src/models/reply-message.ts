import type { Message, ToolCall } from "../core/messages.ts";
import type { AssistantMessage, MalformedCall, Stop } from "../core/model-provider.ts";
import type { Reply } from "./reply.ts";
import type { ReadCalls } from "./text-protocol.ts";

const SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** What Mistral's templates accept, and everybody else too. */
const LENGTH = 9;

/** Ids of calls: what the server gave is kept, as long as no other call of the conversation has it. */
export class CallIds {
  readonly #taken = new Set<string>();
  readonly #random: () => number;

  constructor(history: readonly Message[], random: () => number) {
    this.#random = random;
    for (const message of history)
      if (message.role === "assistant") for (const { id } of message.calls) this.#taken.add(id);
  }

  next(given = ""): string {
    let id = given;
    while (id === "" || this.#taken.has(id)) id = this.#fresh();
    this.#taken.add(id);
    return id;
  }

  #fresh(): string {
    let id = "";
    while (id.length < LENGTH) id += SIGNS[Math.floor(this.#random() * SIGNS.length)] ?? "";
    return id;
  }
}

/** How a reply that came to its end becomes a message. */

/** Of a model's template, alone where nothing was said between them. */
const MARKS =
  /<\|(?:im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|end|assistant|user)\|>|<\/?s>|<(?:start|end)_of_turn>/g;

/** Characters of marks that may stand alone: what is longer says something, and is not copied to be looked at. */
const MOST_MARKS = 1000;

function isBlank(text: string): boolean {
  if (text.length > MOST_MARKS) return text.trim() === "";
  return text.replaceAll(MARKS, "").trim() === "";
}

export const isEmpty = ({ text }: Reply, { calls, malformed }: ReadCalls): boolean =>
  isBlank(text) && calls.length === 0 && malformed.length === 0;

/** What the server says counts only where the reply does not show better. */
export function stopOf({ stop }: Reply, { calls, malformed }: ReadCalls): Stop {
  if (stop === "length" || stop === "filtered") return stop;
  if (calls.length > 0) return "calls";
  return stop === "calls" && malformed.length === 0 ? "end" : stop;
}

/** The message, with every call once, and an id for each that no other call of the conversation has. */
export function messageFrom(
  { text, thinking }: Reply,
  found: ReadCalls,
  history: readonly Message[],
  random: () => number,
): { readonly message: AssistantMessage; readonly malformed: readonly MalformedCall[] } {
  const ids = new CallIds(history, random);
  const seen = new Set<string>();
  const calls: ToolCall[] = [];
  for (const { id, name, args } of found.calls) {
    const call = `${name} ${JSON.stringify(args)}`;
    if (seen.has(call)) continue;
    seen.add(call);
    calls.push({ id: ids.next(id), name, args });
  }
  return {
    message: { role: "assistant", text, ...(thinking === "" ? {} : { thinking }), calls },
    malformed: found.malformed.map(({ id, ...rest }) => ({ ...rest, id: ids.next(id) })),
  };
}

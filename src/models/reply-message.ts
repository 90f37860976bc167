import type { Message, ToolCall } from "../core/messages.ts";
import type { AssistantMessage, MalformedCall, Stop } from "../core/model-provider.ts";
import type { Reply } from "./reply.ts";
import type { ReadCalls } from "./text-protocol.ts";

const ID_CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Mistral's templates accept only this length, and all other servers accept it too. */
const ID_LENGTH = 9;

/** Ids of calls: keeps the server's id unless another call of the conversation has it. */
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
    while (id.length < ID_LENGTH)
      id += ID_CHARACTERS[Math.floor(this.#random() * ID_CHARACTERS.length)] ?? "";
    return id;
  }
}

/** How a completed reply becomes a message. */

/** Marks of chat templates; models send them with no text between them. */
const MARKS =
  /<\|(?:im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|end|assistant|user)\|>|<\/?s>|<(?:start|end)_of_turn>/g;

/** A reply of nothing but marks is at most this long; a longer one has content, and is not copied for the check. */
const MOST_MARKS = 1000;

function isBlank(text: string): boolean {
  if (text.length > MOST_MARKS) return text.trim() === "";
  return text.replaceAll(MARKS, "").trim() === "";
}

export const isEmpty = ({ text }: Reply, { calls, malformed }: ReadCalls): boolean =>
  isBlank(text) && calls.length === 0 && malformed.length === 0;

/** The server's stop reason counts only if the reply itself does not show otherwise. */
export function stopOf({ stop }: Reply, { calls, malformed }: ReadCalls): Stop {
  if (stop === "length" || stop === "filtered") return stop;
  if (calls.length > 0) return "calls";
  return stop === "calls" && malformed.length === 0 ? "end" : stop;
}

/** The message, without repeated calls, and with an id for each call that is unique in the conversation. */
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

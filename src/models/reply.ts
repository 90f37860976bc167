/** The content of one reply: its text and native calls as they arrive, and the message that it becomes. */

import {
  type AssistantMessage,
  Repetitions,
  type MalformedCall,
  type Message,
  type ProviderEvent,
  type Stop,
  type TextEdges,
  type ToolCall,
} from "../core/model-provider.ts";
import type { RequestLimits, WireEvent } from "./model-api.ts";
import { NativeCalls } from "./native-calls.ts";
import type { Counted } from "./token-usage.ts";
import type { OfferedTools } from "./text-calls/settle.ts";
import type { ReadCalls, TextCallReader } from "./text-calls/text-protocol.ts";

interface Ended {
  readonly found: ReadCalls;
  /** Text that was shown turned out to be a thought: the events start again. */
  readonly withdrawn: boolean;
  readonly events: readonly ProviderEvent[];
}

/** Each additional piece costs time proportional to the preceding text, so a long text is read in larger pieces. */
const PACE = 512;

/** The reason given to the model for a call that was ended because it repeated itself. */
const REPEATED_ITSELF =
  "it said the same over and over, and was ended. Make the call again, with short arguments.";

/** The content of one attempt, as it arrives. */
export class Reply {
  text = "";
  thinking = "";
  stop: Stop = "unknown";
  counted: Counted = {};
  readonly notes: string[] = [];
  /** A person has seen something other than a thought. */
  shown = false;
  /** The reply was ended here because it was longer than any answer. */
  cut = false;
  /** The reply was ended here because it kept repeating itself. */
  isRepetitive = false;
  /** Anything has arrived at all. */
  begun = false;
  #content = "";
  #pending = "";
  #characters = 0;
  #events = 0;
  readonly #native = new NativeCalls();
  readonly #wholeText = new WholeText();
  readonly #wholeThinking = new WholeText();
  readonly #written: TextCallReader;
  readonly #limits: RequestLimits;
  readonly #repetitions: Repetitions | null;

  /** `small`: the reply of a small model, which may repeat itself endlessly. */
  constructor(written: TextCallReader, limits: RequestLimits, small = false) {
    this.#repetitions = small ? new Repetitions() : null;
    this.#written = written;
    this.#limits = limits;
  }

  /** What to show of the event, if anything. */
  take(event: WireEvent): ProviderEvent | null {
    this.begun = true;
    this.#events += 1;
    if (this.#events >= this.#limits.events) this.cut = true;
    switch (event.type) {
      case "text":
        return this.#takeText(this.#wholeText.push(this.#bounded(event.text)));
      case "thinking":
        return this.#takeThinking(this.#wholeThinking.push(this.#bounded(event.text)));
      case "call":
        return this.#takeCall(event);
      case "usage":
        this.counted = { ...this.counted, ...event };
        return null;
      case "stop":
        this.stop = event.stop;
        return null;
      case "note":
        this.notes.push(event.text);
        return null;
      default:
        return event satisfies never;
    }
  }

  /** The calls, and the held-back rest as events. `raw` is the text that the server could not parse. */
  end(tools: OfferedTools, raw: string | null): Ended {
    const rest = raw?.startsWith(this.#content) === true ? raw.slice(this.#content.length) : (raw ?? "");
    const thought = this.#takeThinking(this.#wholeThinking.end());
    const shownText = this.#shownText(this.#written.push(this.#pending + this.#wholeText.end() + rest));
    const { prose, missed = [], ...written } = this.#written.end();
    const native = this.#native.end(tools);
    const withdrawn = !prose.startsWith(this.text);
    if (withdrawn) this.#withdraw();
    const left = this.#shownText(prose.slice(this.text.length));
    const events: readonly (ProviderEvent | null)[] = withdrawn
      ? [{ type: "thinking", text: this.thinking }, left]
      : [thought, shownText, left];
    return {
      withdrawn,
      events: events.filter((event) => event !== null),
      found: {
        calls: [...native.calls, ...written.calls],
        malformed: this.#withRepetitionReason([
          ...native.malformed,
          ...written.malformed,
          ...(native.calls.length === 0 ? missed : []),
        ]),
      },
    };
  }

  #withRepetitionReason(malformed: ReadCalls["malformed"]): ReadCalls["malformed"] {
    return this.isRepetitive ? malformed.map((call) => ({ ...call, reason: REPEATED_ITSELF })) : malformed;
  }

  /** For a reply with nothing to show: it contains thoughts. */
  get onlyThought(): boolean {
    return this.thinking !== "" || this.#content.trim() !== "";
  }

  /** The white space around the text, as far as nothing else stands there. */
  get edges(): TextEdges {
    const content = this.#content;
    const start = content.length - content.trimStart().length;
    const end = content.trimEnd().length;
    return {
      before: this.thinking === "" && content.startsWith(this.text, start) ? content.slice(0, start) : "",
      after: content.endsWith(this.text, end) ? content.slice(end) : "",
    };
  }

  #withdraw(): void {
    this.thinking += this.text;
    this.text = "";
  }

  #takeText(piece: string): ProviderEvent | null {
    if (this.#repetitions?.push(piece) === true) this.#endRepetition();
    this.#content += piece;
    this.#pending += piece;
    if (this.#pending.length * PACE < this.#content.length) return null;
    const ready = this.#pending;
    this.#pending = "";
    return this.#shownText(this.#written.push(ready));
  }

  #endRepetition(): void {
    this.isRepetitive = true;
    this.stop = "length";
    this.notes.push("The model repeated itself: its reply was cut off.");
  }

  #shownText(text: string): ProviderEvent | null {
    if (text === "") return null;
    this.text += text;
    this.shown ||= text.trim() !== "";
    return { type: "text", text };
  }

  #takeThinking(text: string): ProviderEvent | null {
    this.thinking += text;
    return text === "" ? null : { type: "thinking", text };
  }

  #takeCall(part: Extract<WireEvent, { readonly type: "call" }>): ProviderEvent {
    const args = this.#bounded(part.args ?? "");
    if (this.#repetitions?.push(args) === true) this.#endRepetition();
    const { id, name: called, ...rest } = part;
    const fields = {
      ...rest,
      ...(id === undefined ? {} : { id: this.#bounded(id) }),
      ...(called === undefined ? {} : { name: this.#bounded(called) }),
    };
    const { place, name } = this.#native.take({ ...fields, args });
    this.shown = true;
    return { type: "call", index: place, name, text: args };
  }

  #bounded(piece: string): string {
    const room = this.#limits.characters - this.#characters;
    this.#characters += piece.length;
    if (piece.length <= room) return piece;
    this.cut = true;
    return piece.slice(0, Math.max(0, room));
  }
}

/** Text in pieces: half of a surrogate pair waits for the piece that completes it. */
class WholeText {
  #half = "";

  push(piece: string): string {
    if (this.#half === "" && !isHigh(piece.charCodeAt(piece.length - 1))) return piece.toWellFormed();
    const text = this.#half + piece;
    this.#half = isHigh(text.charCodeAt(text.length - 1)) ? text.slice(-1) : "";
    return text.slice(0, text.length - this.#half.length).toWellFormed();
  }

  /** A half that was never completed. */
  end(): string {
    const left = this.#half.toWellFormed();
    this.#half = "";
    return left;
  }
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

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

  next(preferred = ""): string {
    let id = preferred;
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

/** Marks of chat templates; models send them with no text between them. */
const MARKS =
  /<\|(?:im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|end|assistant|user)\|>|<\/?s>|<(?:start|end)_of_turn>/g;

/** A reply of nothing but marks is at most this long; a longer one has content, and is not copied for the check. */
const MAX_MARKS = 1000;

function isBlank(text: string): boolean {
  if (text.length > MAX_MARKS) return text.trim() === "";
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

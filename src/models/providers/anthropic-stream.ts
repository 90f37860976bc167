import type { Stop } from "../../core/model-provider.ts";
import { asCount, asFields, asList, asText, type Fields, parsedJson } from "../../core/raw-data.ts";
import { endlessReply, MAX_LINE_LENGTH, type WireEvent } from "../model-api.ts";

/** The start of a block may contain a whole text. */
const MAX_KEPT_LENGTH = MAX_LINE_LENGTH;

const STOPS: Readonly<Record<string, Stop>> = {
  end_turn: "end",
  stop_sequence: "end",
  pause_turn: "unknown",
  tool_use: "calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "filtered",
};

interface Call {
  readonly index: number;
  /** Complete at the block's start, from servers that do not stream arguments. */
  readonly input: Fields;
  args: string;
}

type Block = Record<string, unknown>;

/** Turns the events of a message, or a whole message, into wire events. */
export class MessageReader {
  /** Keyed by the server's index. */
  readonly #calls = new Map<unknown, Call>();
  readonly #blocks = new Map<unknown, Block>();
  #kept = 0;
  stopped = false;
  done = false;
  /** An event of this API has arrived. */
  begun = false;

  /** The reply's blocks as received, without unsigned thoughts and empty texts; undefined if a call was cut off. */
  get content(): readonly Fields[] | undefined {
    const blocks: Fields[] = [];
    for (const [index, block] of this.#blocks) {
      const call = this.#calls.get(index);
      const input = call === undefined || call.args === "" ? call?.input : asFields(parsedJson(call.args));
      if (call !== undefined && input === undefined) return undefined;
      if (block["signature"] !== "" && block["text"] !== "")
        blocks.push(call === undefined ? block : { ...block, input });
    }
    return blocks;
  }

  read(value: unknown): WireEvent[] {
    const event = asFields(value) ?? {};
    const events: WireEvent[] = [];
    this.begun ||= typeof event["type"] === "string";
    switch (event["type"]) {
      case "message_start":
        usageIn(asFields(asFields(event["message"])?.["usage"]), false, events);
        break;
      case "content_block_start":
        this.#begin(event["index"], asFields(event["content_block"]) ?? {}, events);
        break;
      case "content_block_delta":
        this.#delta(event["index"], asFields(event["delta"]) ?? {}, events);
        break;
      case "content_block_stop":
        this.#end(event["index"], events);
        break;
      case "message_delta":
        usageIn(asFields(event["usage"]), true, events);
        this.#stop(asFields(event["delta"])?.["stop_reason"], events);
        break;
      case "message_stop":
        this.done = true;
        break;
      case "message":
        this.#whole(event, events);
        break;
      default:
    }
    return events;
  }

  /** Content that is kept but reported in no event needs a bound of its own. */
  #countKept(characters: number): void {
    this.#kept += characters;
    if (this.#kept > MAX_KEPT_LENGTH)
      throw endlessReply("the server's reply is endless: it was cut off at the limit");
  }

  #begin(index: unknown, block: Fields, events: WireEvent[]): void {
    const kept = keptBlock(block);
    if (kept !== undefined) {
      this.#countKept(JSON.stringify(kept).length);
      this.#blocks.set(index, kept);
    }
    const [text, thinking] = [asText(kept?.["text"]), asText(kept?.["thinking"])];
    if (text !== undefined) events.push({ type: "text", text });
    if (thinking !== undefined) events.push({ type: "thinking", text: thinking });
    if (kept?.["type"] === "tool_use") this.#call(index, block, events);
  }

  #call(index: unknown, block: Fields, events: WireEvent[]): void {
    const call = { index: this.#calls.size, input: asFields(block["input"]) ?? {}, args: "" };
    this.#calls.set(index, call);
    const [id, name] = [asText(block["id"]), asText(block["name"])];
    events.push({
      type: "call",
      index: call.index,
      ...(id === undefined ? {} : { id }),
      ...(name === undefined ? {} : { name }),
    });
  }

  #delta(index: unknown, delta: Fields, events: WireEvent[]): void {
    const block = this.#blocks.get(index) ?? {};
    for (const type of ["text", "thinking"] as const) {
      const text = asText(delta[type]);
      if (text === undefined) continue;
      events.push({ type, text });
      block[type] = appendText(block[type], text);
    }
    const signature = asText(delta["signature"]);
    if (signature !== undefined) {
      this.#countKept(signature.length);
      block["signature"] = appendText(block["signature"], signature);
    }
    const call = this.#calls.get(index);
    const args = asText(delta["partial_json"]);
    if (args === undefined || call === undefined) return;
    call.args += args;
    events.push({ type: "call", index: call.index, args });
  }

  /** A call without arguments arrives without argument pieces. */
  #end(index: unknown, events: WireEvent[]): void {
    const call = this.#calls.get(index);
    if (call === undefined || call.args !== "") return;
    call.args = JSON.stringify(call.input);
    events.push({ type: "call", index: call.index, args: call.args });
  }

  #stop(reason: unknown, events: WireEvent[]): void {
    if (typeof reason !== "string" || this.stopped) return;
    this.stopped = true;
    events.push({ type: "stop", stop: STOPS[reason] ?? "unknown" });
  }

  #whole(message: Fields, events: WireEvent[]): void {
    usageIn(asFields(message["usage"]), true, events);
    for (const [index, block] of asList(message["content"]).entries()) {
      this.#begin(index, asFields(block) ?? {}, events);
      this.#end(index, events);
    }
    this.#stop(message["stop_reason"], events);
    this.done = true;
  }
}

/** The fields that a later request may repeat; undefined for a block of another kind. */
function keptBlock({ type, ...block }: Fields): Block | undefined {
  switch (type) {
    case "text":
      return { type, text: asText(block["text"]) ?? "" };
    case "thinking":
      return { type, thinking: asText(block["thinking"]) ?? "", signature: asText(block["signature"]) ?? "" };
    case "redacted_thinking":
      return { type, data: block["data"] };
    case "tool_use":
      return { type, id: block["id"], name: block["name"] };
    default:
      return undefined;
  }
}

const appendText = (before: unknown, text: string): string =>
  typeof before === "string" ? before + text : text;

/** Anthropic counts cache reads and writes apart from other input. The output count at the start is only a guess. */
function usageIn(usage: Fields | undefined, last: boolean, events: WireEvent[]): void {
  const [input, made, cached, output] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
  ].map((name) => asCount(usage?.[name]));
  const completion = last ? output : undefined;
  if (input === undefined && completion === undefined) return;
  events.push({
    type: "usage",
    ...(input === undefined ? {} : { prompt: input + (made ?? 0) + (cached ?? 0) }),
    ...(completion === undefined ? {} : { completion }),
    ...(cached === undefined ? {} : { cached }),
  });
}

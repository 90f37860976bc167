import type { Stop } from "../../core/model-provider.ts";
import { asCount, asFields, asList, asText, type Fields } from "../http/answer-fields.ts";
import type { WireEvent } from "../model-api.ts";

const STOPS: Readonly<Record<string, Stop>> = {
  stop: "end",
  eos: "end",
  eos_token: "end",
  end_turn: "end",
  stop_sequence: "end",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  tool_calls: "calls",
  function_call: "calls",
  tool_use: "calls",
  content_filter: "filtered",
};

/** Chunks of a chat completion, and whole ones, into events. Only the first choice is read. */
export class ChatReader {
  readonly #calls = new CallParts();
  /** The server has said why the reply ends; its counts may still come. */
  stopped = false;
  /** Something came that a chat API sends. */
  begun = false;

  read(value: unknown): WireEvent[] {
    const chunk = asFields(value) ?? {};
    this.begun ||= "choices" in chunk || "usage" in chunk;
    const choice = asList(chunk["choices"])
      .map(asFields)
      .find((each) => (each?.["index"] ?? 0) === 0);
    const events: WireEvent[] = [];
    if (choice !== undefined) this.#choice(choice, events);
    const usage = usageIn(asFields(chunk["usage"]) ?? asFields(asFields(chunk["x_groq"])?.["usage"]));
    if (usage !== undefined) events.push(usage);
    return events;
  }

  #choice(choice: Fields, events: WireEvent[]): void {
    const delta = asFields(choice["delta"]) ?? asFields(choice["message"]);
    if (delta !== undefined) this.#delta(delta, events);
    const reason = asText(choice["finish_reason"]);
    if (reason === undefined || this.stopped) return;
    this.stopped = true;
    events.push({ type: "stop", stop: STOPS[reason] ?? "unknown" });
  }

  #delta(delta: Fields, events: WireEvent[]): void {
    const thought = asText(delta["reasoning_content"]) ?? asText(delta["reasoning"]);
    if (thought !== undefined) events.push({ type: "thinking", text: thought });
    contentIn(delta["content"], events);
    contentIn(delta["refusal"], events);
    for (const call of listIn(delta["tool_calls"])) this.#calls.read(asFields(call) ?? {}, events);
    const legacy = asFields(delta["function_call"]);
    if (legacy !== undefined) this.#calls.read({ index: "legacy", function: legacy }, events);
  }
}

/** Some servers give a single call without its list. */
const listIn = (calls: unknown): readonly unknown[] =>
  Array.isArray(calls) ? calls : calls === undefined || calls === null ? [] : [calls];

function contentIn(content: unknown, events: WireEvent[]): void {
  const text = asText(content);
  if (text !== undefined) events.push({ type: "text", text });
  for (const part of asList(content)) partOf(asFields(part) ?? {}, events);
}

/** Mistral's own API gives parts, and thoughts among them. */
function partOf(part: Fields, events: WireEvent[]): void {
  const text = asText(part["text"]);
  if (text !== undefined) events.push({ type: "text", text });
  for (const thought of asList(part["thinking"])) {
    const text = asText(asFields(thought)?.["text"]);
    if (text !== undefined) events.push({ type: "thinking", text });
  }
}

/** DeepSeek counts what it had kept in a field of its own. */
function usageIn(usage: Fields | undefined): WireEvent | undefined {
  if (usage === undefined) return undefined;
  const prompt = asCount(usage["prompt_tokens"]);
  const completion = asCount(usage["completion_tokens"]);
  const cached =
    asCount(asFields(usage["prompt_tokens_details"])?.["cached_tokens"]) ??
    asCount(usage["prompt_cache_hit_tokens"]);
  if (prompt === undefined && completion === undefined) return undefined;
  return {
    type: "usage",
    ...(prompt === undefined ? {} : { prompt }),
    ...(completion === undefined ? {} : { completion }),
    ...(cached === undefined ? {} : { cached }),
  };
}

interface Part {
  /** What the server calls it by. */
  readonly key: unknown;
  readonly index: number;
  id: string | undefined;
  name: string | undefined;
  /** Its arguments have begun. */
  begun: boolean;
}

/**
 * Parts of calls by an index of our own. Servers count from 0, leave the index out, or give every call the same; some
 * say id and name once, some with every part, some a new id with every part. A part begins a call when it is the first
 * of its index, or brings an id that is not its index's own together with a name.
 */
class CallParts {
  readonly #parts: Part[] = [];

  read(call: Fields, events: WireEvent[]): void {
    const made = asFields(call["function"]) ?? call;
    const [id, name] = [asText(call["id"]), asText(made["name"])];
    const args = argumentText(made["arguments"]);
    const part = this.#partOf(call["index"], id, name) ?? this.#begin(call["index"]);
    const fresh = freshIn(part, id, name);
    part.id ??= id;
    part.name ??= name;
    part.begun ||= args !== "";
    const whole = args === "" ? fresh : { ...fresh, args };
    if (Object.keys(whole).length > 0) events.push({ type: "call", index: part.index, ...whole });
  }

  #begin(key: unknown): Part {
    const part = { key, index: this.#parts.length, id: undefined, name: undefined, begun: false };
    this.#parts.push(part);
    return part;
  }

  #partOf(key: unknown, id: string | undefined, name: string | undefined): Part | undefined {
    const nameless = key === undefined || key === null;
    const last = nameless ? this.#parts.at(-1) : this.#parts.findLast((part) => part.key === key);
    if (last === undefined || name === undefined) return last;
    if (id === undefined) return nameless && last.name !== undefined ? undefined : last;
    return last.id === undefined || last.id === id ? last : undefined;
  }
}

/** What was not said before; a name may come in pieces, until the arguments begin. */
function freshIn(
  part: Part,
  id: string | undefined,
  name: string | undefined,
): { id?: string; name?: string } {
  return {
    ...(part.id === undefined && id !== undefined ? { id } : {}),
    ...(name !== undefined && name !== part.name && !part.begun ? { name } : {}),
  };
}

/** Some servers give an object where the API says text. */
function argumentText(args: unknown): string {
  if (args === undefined || args === null) return "";
  return typeof args === "string" ? args : JSON.stringify(args);
}

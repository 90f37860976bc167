/** Calls in an API's own format: assembled from their parts, and their arguments read. */

import { reasonOf } from "../core/errors.ts";
import type { MalformedCall, ToolCall } from "../core/model-provider.ts";
import { JsonEnds, surveyJson } from "../core/text/json-text.ts";
import type { WireEvent } from "./model-api.ts";
import { type OfferedTools, withSchemaTypes } from "./text-calls/settle.ts";
import type { ReadCalls, TextCall } from "./text-calls/text-protocol.ts";

type CallPart = Extract<WireEvent, { readonly type: "call" }>;

class PartialCall {
  id = "";
  name = "";
  args = "";
  readonly ends = new JsonEnds();
  readonly place: number;

  constructor(place: number) {
    this.place = place;
  }

  /** Some servers wrongly give a second call the index of the first. */
  isOver({ id = "", name = "" }: CallPart): boolean {
    return (id !== "" && this.id !== "" && id !== this.id) || (name !== "" && this.ends.complete);
  }

  add({ id = "", name = "", args = "" }: CallPart): void {
    if (this.id === "") this.id = id;
    if (this.name === "") this.name = name;
    else if (name !== this.name && this.args === "") this.name += name;
    this.args += args;
    this.ends.push(args);
  }
}

/** Calls in the API's own format, assembled from their parts by index. */
export class NativeCalls {
  readonly #made: PartialCall[] = [];
  readonly #byIndex = new Map<number, PartialCall>();

  /** The call of this part: its place among the reply's calls, and its name so far. */
  take(part: CallPart): { readonly place: number; readonly name: string } {
    let call = this.#byIndex.get(part.index);
    if (call === undefined || call.isOver(part)) {
      call = new PartialCall(this.#made.length);
      this.#made.push(call);
      this.#byIndex.set(part.index, call);
    }
    call.add(part);
    return call;
  }

  get some(): boolean {
    return this.#made.length > 0;
  }

  /** Calls that can be run and those that cannot, each in the order in which they began. */
  end(tools: OfferedTools): ReadCalls {
    const calls: TextCall[] = [];
    const malformed: MalformedCall[] = [];
    for (const { id, name: written, args } of this.#made) {
      const name = tools.resolve(written);
      if (name === undefined) {
        const read = readArguments(args);
        const meant = "wrong" in read ? {} : { args: read.args };
        const [reason, nearest] = [tools.unknown(written), tools.nearest(written)];
        malformed.push({ id, name: clipName(written), reason, missed: "not_offered", nearest, ...meant });
        continue;
      }
      const read = readArguments(args);
      if ("wrong" in read) malformed.push({ id, name, reason: read.wrong });
      else calls.push({ id, name, args: withSchemaTypes(read.args, tools.schema(name)) });
    }
    return { calls, malformed };
  }
}

const MAX_SHOWN_LENGTH = 80;
const clipName = (name: string): string => name.slice(0, MAX_SHOWN_LENGTH).toWellFormed();

type Arguments = { readonly args: ToolCall["args"] } | { readonly wrong: string };

/** Deeper than any tool's input; code that walks over arguments is safe from stack overflow. */
const MAX_DEPTH = 64;
const MAX_SHOWN_ARGUMENTS = 200;

/**
 * The arguments of a call, if they can be read in exactly one way. Accepts arguments that are JSON text inside a
 * string; repairs nothing.
 */
export function readArguments(text: string): Arguments {
  const outer = text.trim() === "" ? "{}" : text;
  const first = parsed(outer);
  if ("wrong" in first) return first;
  if (typeof first.value !== "string") return checkArguments(outer, first.value);
  const inner = parsed(first.value);
  return "wrong" in inner ? { wrong: noObject(first.value) } : checkArguments(first.value, inner.value);
}

function checkArguments(json: string, value: unknown): Arguments {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { wrong: noObject(value) };
  const { depth, twice } = surveyJson(json);
  if (twice !== null)
    return {
      wrong: `The key ${shownArguments(JSON.stringify(twice))} appears twice in its arguments: give it once.`,
    };
  if (depth > MAX_DEPTH) return { wrong: `Its arguments are nested deeper than ${MAX_DEPTH} levels.` };
  return { args: value as ToolCall["args"] };
}

function parsed(json: string): { readonly value: unknown } | { readonly wrong: string } {
  try {
    return { value: JSON.parse(json) as unknown };
  } catch (thrown) {
    const ends = new JsonEnds();
    ends.push(json);
    return {
      wrong: ends.open
        ? "Its arguments were cut before their end. Send the call again, whole; long content in several smaller calls."
        : `Its arguments are not JSON (${shownArguments(reasonOf(thrown))}). Send the call again with one JSON object.`,
    };
  }
}

function noObject(value: unknown): string {
  const kind = Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`;
  return `Its arguments are ${kind}, not one JSON object with a key for each argument.`;
}

const shownArguments = (text: string): string => text.slice(0, MAX_SHOWN_ARGUMENTS).toWellFormed();

/** Replies that the server constrains to a schema: one JSON object, either a call of an offered tool or an answer. */

import type { CallForm, Hold, JsonSchema, ModelRequest, ToolOffer } from "../core/model-provider.ts";
import { isFields } from "../core/raw-data.ts";
import { readArguments } from "./native-calls.ts";
import { notOffered, OfferedTools, withSchemaTypes } from "./text-calls/settle.ts";
import type { TextCallReader } from "./text-calls/text-protocol.ts";

/** What is known about a model before the first request. */
export interface KnownModel {
  readonly calls?: CallForm;
  readonly thinking?: boolean;
}

/** After this many replies in a row without a call that can be run, replies are held. */
const MAX_MISSES = 2;

/** Remembers, for the life of the program, which models' replies are held to a schema. */
export class Holding {
  readonly #misses = new Map<string, number>();
  readonly #refused = new Set<string>();
  readonly #held = new Set<string>();

  /** Whether to hold this reply, if the server can. */
  wants({ model, hold }: ModelRequest, known: KnownModel): boolean {
    return hold !== undefined && (hold.now === true || known.calls === "held" || this.#held.has(model));
  }

  /** Whether every reply is held, not just this one. */
  stays({ model }: ModelRequest, known: KnownModel): boolean {
    return known.calls === "held" || this.#held.has(model);
  }

  /** Records that the server refused the schema. Some servers refuse a schema only in combination with native tools. */
  refused(model: string, native: boolean): void {
    this.#refused.add(key(model, native));
  }

  refuses(model: string, native: boolean): boolean {
    return this.#refused.has(key(model, native));
  }

  /**
   * Counts a reply; returns true if replies are held from now on. A good reply that was held only once says nothing
   * about replies that are not held.
   */
  replied(model: string, missed: boolean, wasHeld: boolean): boolean {
    const before = this.#misses.get(model) ?? 0;
    const misses = missed ? before + 1 : wasHeld ? before : 0;
    this.#misses.set(model, misses);
    if (misses < MAX_MISSES || this.#held.has(model)) return false;
    this.#held.add(model);
    return true;
  }
}

const key = (model: string, native: boolean): string => `${native ? "native" : "text"} ${model}`;

/** Servers build a grammar from these choices for each request; many long paths or lines would make that slow. */
const MAX_CHOICES = 200;
const MAX_CHOICE_BYTES = 16 * 1024;
/**
 * The path of these tools names an existing file. A file that is already shown is not read again and is edited by line.
 */
const READS = "read_file";
const EDITS = "edit_file";
const WRITES = "write_file";

/** The schema that a reply has to fit; the rest of the request stays the same. */
export function heldSchema({ tools, hold = {} }: Pick<ModelRequest, "tools" | "hold">): JsonSchema {
  const { without = [], arguments: only = {}, call } = hold;
  const calls = tools
    .filter(({ name }) => !without.includes(name))
    .flatMap((tool) => callSchemas(tool.name, argumentsOf(tool, only[tool.name]), hold));
  const answer = objectOf({ answer: { type: "string" } });
  return { anyOf: call === true && calls.length > 0 ? calls : [...calls, answer] };
}

/** Adds the paths and lines from which the model may choose. */
function callSchemas(
  name: string,
  args: Schema,
  { paths = [], shown = {}, writes }: Hold,
): readonly JsonSchema[] {
  const properties = args["properties"];
  if (!isFields(properties) || !("path" in properties)) return [callOf(name, args)];
  const argsWith = (over: Schema): Schema => ({ ...args, properties: { ...properties, ...over } });
  if (name === WRITES && writes !== undefined) return [callOf(name, argsWith({ path: oneOf([writes]) }))];
  if ((name !== READS && name !== EDITS) || !isChoice(paths)) return [callOf(name, args)];
  const unshown = paths.filter((path) => shown[path] === undefined);
  const rest = (of: readonly string[]): readonly JsonSchema[] =>
    of.length === 0 ? [] : [callOf(name, argsWith({ path: oneOf(of) }))];
  if (name === READS) return rest(unshown);
  const byLines = paths.flatMap((path) => {
    const lines = shown[path] ?? [];
    if (!("old" in properties) || !isChoice(lines)) return [];
    return [{ path, schema: callOf(name, argsWith({ path: oneOf([path]), old: oneOf(lines) })) }];
  });
  const others = paths.filter((path) => !byLines.some((each) => each.path === path));
  return [...byLines.map(({ schema }) => schema), ...rest(others)];
}

/** Few and short enough for a server to build a grammar from them. */
const isChoice = (texts: readonly string[]): boolean =>
  texts.length > 0 &&
  texts.length <= MAX_CHOICES &&
  texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 3, 0) <= MAX_CHOICE_BYTES;

const oneOf = (texts: readonly string[]): Schema => ({ type: "string", enum: texts });

type Schema = Readonly<Record<string, unknown>>;

const objectOf = (properties: Readonly<Record<string, unknown>>): JsonSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

const callOf = (name: string, args: Schema): JsonSchema =>
  objectOf({ tool: { type: "string", const: name }, arguments: args });

/** The tool's own arguments, or only those named in `only`, all of which are then required. */
function argumentsOf({ schema }: ToolOffer, only: readonly string[] | undefined): Schema {
  const args = strict(schema);
  const properties = args["properties"];
  if (only === undefined || !isFields(properties)) return args;
  const kept = only.filter((name) => name in properties);
  return objectOf(Object.fromEntries(kept.map((name) => [name, properties[name]])));
}

/**
 * Keywords that go into the grammar. Descriptions, defaults and unsupported keywords are dropped; a reference allows
 * any value.
 */
const KEPT_KEYWORDS: ReadonlySet<string> = new Set(["type", "enum", "const", "required"]);

function strict(schema: unknown): Readonly<Record<string, unknown>> {
  if (!isFields(schema)) return {};
  const kept = Object.fromEntries(Object.entries(schema).filter(([key]) => KEPT_KEYWORDS.has(key)));
  const { properties, items, additionalProperties } = schema;
  const choices = [schema["anyOf"], schema["oneOf"]].find((each) => Array.isArray(each));
  return {
    ...kept,
    ...(isFields(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([key, value]) => [key, strict(value)]),
          ),
          additionalProperties: false,
        }
      : isFields(additionalProperties)
        ? { additionalProperties: strict(additionalProperties) }
        : {}),
    ...(items === undefined ? {} : { items: strict(items) }),
    ...(choices === undefined ? {} : { anyOf: choices.map(strict) }),
  };
}

const FORM =
  'Reply with one JSON object and nothing else: {"tool": "its name", "arguments": {…}} to call a tool';
const formOf = ({ hold }: ModelRequest): string =>
  hold?.call === true ? `${FORM}.` : `${FORM}, or {"answer": "…"} when the task is done.`;

/** Adds the form to the last message, so that everything sent before stays unchanged. */
export function withForm(request: ModelRequest): ModelRequest {
  const last = request.messages.at(-1);
  const form = formOf(request);
  const before = request.messages.slice(0, -1);
  if (last?.role === "user" || last?.role === "tool")
    return { ...request, messages: [...before, { ...last, text: `${last.text}\n\n${form}` }] };
  return { ...request, messages: [...request.messages, { role: "user", text: form }] };
}

const IN_ANSWER =
  'a call inside of an answer is not run. Send it alone, as {"tool": "its name", "arguments": {…}}.';

/** Some servers require an object around the choice. */
const ANSWER = /^\s*\{\s*(?:"reply"\s*:\s*\{\s*)?"answer"\s*:\s*"/;

/**
 * Reads a held reply and shows only the answer inside the JSON, as it streams in. A reply that is not such an object is
 * read like any other reply.
 */
export class HeldReply implements TextCallReader {
  readonly #tools: OfferedTools;
  readonly #plain: TextCallReader;
  #text = "";
  #answer: JsonText | undefined;
  #isPlain = false;

  constructor(tools: readonly ToolOffer[], plain: TextCallReader) {
    this.#tools = new OfferedTools(tools);
    this.#plain = plain;
  }

  push(chunk: string): string {
    if (this.#isPlain) return this.#plain.push(chunk);
    this.#text += chunk;
    if (this.#answer !== undefined) return this.#answer.push(chunk);
    const begun = this.#text.trimStart();
    if (begun !== "" && !begun.startsWith("{")) {
      this.#isPlain = true;
      return this.#plain.push(this.#text);
    }
    const head = ANSWER.exec(this.#text);
    if (head === null) return "";
    this.#answer = new JsonText();
    return this.#answer.push(this.#text.slice(head[0].length));
  }

  end(): ReturnType<TextCallReader["end"]> {
    if (this.#isPlain) return this.#plain.end();
    if (this.#answer !== undefined) return this.#asAnswer(this.#answer.text);
    return this.#asCall() ?? this.#asPlain(this.#text);
  }

  #asPlain(text: string): ReturnType<TextCallReader["end"]> {
    this.#plain.push(text);
    return this.#plain.end();
  }

  /** Calls inside an answer are not run, and such a reply does not count as an answer. */
  #asAnswer(prose: string): ReturnType<TextCallReader["end"]> {
    const { calls, malformed, missed = [] } = this.#asPlain(prose);
    const unrun = calls.map(({ name, args }) => ({
      name,
      args,
      reason: IN_ANSWER,
      missed: "not_alone" as const,
    }));
    return { calls: [], malformed: [...unrun, ...malformed], missed, prose };
  }

  #asCall(): ReturnType<TextCallReader["end"]> | undefined {
    const read = readArguments(this.#text);
    if ("wrong" in read) return undefined;
    const { reply = read.args } = read.args;
    if (!isFields(reply) || Object.keys(reply).length !== 2) return undefined;
    const { tool, arguments: args } = reply;
    if (typeof tool !== "string" || !isFields(args)) return undefined;
    const name = this.#tools.resolve(tool);
    const none = { calls: [], malformed: [], prose: "" };
    if (name === undefined)
      return { ...none, malformed: [notOffered({ name: tool, args, repaired: false }, this.#tools)] };
    return { ...none, calls: [{ name, args: withSchemaTypes(args, this.#tools.schema(name)) }] };
  }
}

const ESCAPED = /^(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*/;
const LONE_HALF = /\\u[dD][89abAB][0-9a-fA-F]{2}$/;

/** The content of one JSON string as it streams in, up to the closing quote. */
class JsonText {
  text = "";
  #rest = "";
  #over = false;

  push(chunk: string): string {
    if (this.#over) return "";
    this.#rest += chunk;
    const whole = (ESCAPED.exec(this.#rest)?.[0] ?? "").replace(LONE_HALF, "");
    this.#over = this.#rest[whole.length] === '"';
    this.#rest = this.#rest.slice(whole.length);
    const text = unescaped(whole);
    this.text += text;
    return text;
  }
}

/** A raw line break inside a string is not valid JSON, but the model meant it. */
function unescaped(inside: string): string {
  const valid = inside.replaceAll(/[\u0000-\u001F]/g, (sign) => JSON.stringify(sign).slice(1, -1));
  try {
    return String(JSON.parse(`"${valid}"`));
  } catch {
    return inside;
  }
}

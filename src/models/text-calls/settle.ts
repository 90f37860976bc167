import { isFields } from "../../core/raw-data.ts";
import {
  CUT,
  type NotationCall,
  GARBLED,
  type OfferedTool,
  type TextReading,
  type WrittenCall,
  type WrittenMalformed,
  type WrittenMiss,
} from "./text-protocol.ts";
import { readLiteral } from "./literals.ts";
import type { ReplyItem } from "./markup.ts";
import { commentedAsShown, LOOK_AFTER } from "./hidden-text.ts";

/** Whether the calls are only shown; undefined while later text can still decide that. */
export function isShown(
  item: Extract<ReplyItem, { kind: "calls" }>,
  after: ReplyItem | undefined,
  text: string,
  final: boolean,
): boolean | undefined {
  // Where the call ends is known only at the end of the reply.
  if (!final && item.weak && item.found.some(({ broken }) => broken === GARBLED)) return undefined;
  if (after?.kind === "calls") return !final && (item.weak || after.weak) ? undefined : false;
  const prose = proseOf(after, text);
  if (prose === "") return final ? false : undefined;
  if (item.weak) return true;
  return final || prose.length >= LOOK_AFTER ? commentedAsShown(prose) : undefined;
}

const proseOf = (item: ReplyItem | undefined, text: string): string =>
  item?.kind === "prose" ? text.slice(item.from, item.to).trim() : "";

/** The next item that is more than white space or a token. */
export function itemAfter(list: readonly ReplyItem[], index: number, text: string): ReplyItem | undefined {
  for (let at = index + 1; at < list.length; at += 1) {
    const item = list[at];
    if (item === undefined || item.kind === "calls") return item;
    if (item.kind === "prose" && text.slice(item.from, item.to).trim() !== "") return item;
  }
  return undefined;
}

/** Which calls are only shown. Works backwards: a bare call is meant only if no prose follows it. */
export function decide(list: readonly ReplyItem[], text: string): readonly boolean[] {
  const shown: boolean[] = list.map(() => false);
  let proseFollows = false;
  let next: ReplyItem | undefined;
  for (let index = list.length - 1; index >= 0; index -= 1) {
    const item = list[index];
    if (item === undefined || item.kind === "hidden") continue;
    if (item.kind === "prose") {
      if (isNoise(list, index, text)) continue;
      proseFollows = true;
      next = item;
      continue;
    }
    shown[index] = item.weak && proseFollows ? true : isShown(item, next, text, true) === true;
    if (shown[index] === true) proseFollows = true;
    next = shown[index] === true ? { kind: "prose", from: item.from, to: item.to } : item;
  }
  return shown;
}

/** Prose after a call that says nothing. */
function isNoise(list: readonly ReplyItem[], index: number, text: string): boolean {
  const item = list[index];
  if (item?.kind !== "prose") return false;
  const isLast = item.to === text.length && list[index - 1]?.kind === "calls";
  const prose = text.slice(item.from, item.to);
  return prose.trim() === "" || isStrayFence(item, text) || (isLast && OPENED.test(prose));
}

/** The beginning of another bare call after other calls, cut off before its name: the reply was cut. */
const OPENED = /^\s*[,;]?\s*[[{]\s*(?:\{\s*)?(?:["'][\w.-]*(?:["']\s*:?\s*(?:["'][\w.-]*)?)?)?$/;

/**
 * A fence that closes at the end of the reply but was never opened: some models end a bare call with it. It says
 * nothing.
 */
function isStrayFence({ from, to }: { readonly from: number; readonly to: number }, text: string): boolean {
  return (
    /^\s*(?:`{3,}|~{3,})\s*$/.test(text.slice(from, to)) &&
    text.slice(to).trim() === "" &&
    !/```|~~~/.test(text.slice(0, from))
  );
}

/** Tools that change nothing: only their calls may have a repaired notation. */
const PURE_READERS: ReadonlySet<string> = new Set([
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "notes",
  "show_full",
  "semantic_search",
]);

export function settle(list: readonly ReplyItem[], text: string, tools: OfferedTools): TextReading {
  const shown = decide(list, text);
  const prose: string[] = [];
  const calls: WrittenCall[] = [];
  const malformed: WrittenMalformed[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    const isBehindCall = list[index - 1]?.kind === "calls" && shown[index - 1] === false;
    if (item.kind === "prose" && isBehindCall && isNoise(list, index, text)) continue;
    if (item.kind === "prose" || (item.kind === "calls" && shown[index] === true))
      prose.push(text.slice(item.from, item.to));
    else if (item.kind === "calls")
      for (const found of item.found) {
        const judged = judgeCall(found, tools);
        if (judged === undefined) continue;
        const key = JSON.stringify(judged, withSortedKeys);
        if (seen.has(key)) continue;
        seen.add(key);
        if ("reason" in judged) malformed.push(judged);
        else calls.push(judged);
      }
  }
  return { calls, malformed, missed: [], prose: prose.join("").trim() };
}

/** Calls that differ only in the order of keys are the same call. */
const withSortedKeys = (_key: string, value: unknown): unknown =>
  isFields(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

const NO_CALLS = new Set(["directly_answer", "directly-answer"]);

function judgeCall(
  found: NotationCall,
  tools: OfferedTools,
): WrittenCall | WrittenMalformed | WrittenMiss | undefined {
  if (NO_CALLS.has(found.name)) return undefined;
  const name = tools.resolve(found.name);
  if (found.broken !== undefined) return { name: name ?? found.name, reason: found.broken };
  if (name === undefined) return notOffered(found, tools);
  const args = found.args ?? {};
  if (!isFields(args)) return { name, reason: "the arguments must be an object with names and values" };
  if (found.repaired && !PURE_READERS.has(name))
    return {
      name,
      reason: `${CUT} (a quote, a bracket or a tag is missing, and what changes things is not guessed)`,
    };
  const schema = tools.schema(name);
  return { name, args: schema === undefined ? args : withSchemaTypes(args, schema) };
}

/** A readable call that names no offered tool. */
export function notOffered({ name, args }: NotationCall, tools: OfferedTools): WrittenMiss {
  const fields = isFields(args) ? args : {};
  return {
    missed: "not_offered",
    name,
    args: fields,
    reason: tools.unknown(name),
    nearest: tools.nearest(name),
  };
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Converts arguments to the types of the schema; values that fit no type stay as written. */
export function withSchemaTypes(
  args: Readonly<Record<string, unknown>>,
  schema: unknown,
): Readonly<Record<string, unknown>> {
  const properties = isFields(schema) && isFields(schema["properties"]) ? schema["properties"] : undefined;
  if (properties === undefined) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [
      key,
      Object.hasOwn(properties, key) ? typedValue(value, properties[key]) : value,
    ]),
  );
}

function typedValue(value: unknown, schema: unknown): unknown {
  if (!isFields(schema)) return value;
  const types = typesOf(schema);
  if (typeof value === "string") {
    if (types.has("string")) return value;
    return typedMembers(fromText(value.trim(), types, value), schema);
  }
  return typedMembers(value, schema);
}

function typedMembers(value: unknown, schema: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(value) && schema["items"] !== undefined)
    return value.map((each) => typedValue(each, schema["items"]));
  return isFields(value) ? withSchemaTypes(value, schema) : value;
}

function typesOf(schema: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const types = new Set<string>();
  const add = (type: unknown): void => {
    for (const each of Array.isArray(type) ? type : [type]) if (typeof each === "string") types.add(each);
  };
  add(schema["type"]);
  for (const key of ["anyOf", "oneOf"])
    for (const each of Array.isArray(schema[key]) ? schema[key] : []) if (isFields(each)) add(each["type"]);
  const choices = schema["enum"];
  if (Array.isArray(choices) && choices.some((each) => typeof each === "string")) types.add("string");
  return types;
}

function fromText(text: string, types: ReadonlySet<string>, asWritten: string): unknown {
  if (types.has("boolean") && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  if (types.has("null") && /^(?:null|none)$/i.test(text)) return null;
  return numberFrom(text, types) ?? membersFrom(text, types) ?? asWritten;
}

function numberFrom(text: string, types: ReadonlySet<string>): number | undefined {
  if (!NUMBER.test(text)) return undefined;
  const number = Number(text);
  if (types.has("number") && Number.isFinite(number)) return number;
  return types.has("integer") && Number.isSafeInteger(number) ? number : undefined;
}

function membersFrom(text: string, types: ReadonlySet<string>): unknown {
  const type = text.startsWith("[") ? "array" : text.startsWith("{") ? "object" : "";
  if (!types.has(type)) return undefined;
  const read = readLiteral(text, 0);
  return read.ok && !read.repaired && read.end === text.length ? read.value : undefined;
}

const PREFIX = /^(?:functions?|tools?|default_api)[.:]/;
const SUFFIX = /(?::\d+|\.call)$/;
const MAX_LENGTH = 80;

/** The names and schemas of one request. */
export class OfferedTools {
  readonly names: readonly string[];
  readonly #schemas = new Map<string, unknown>();
  readonly #folded = new Map<string, string | null>();

  constructor(tools: readonly OfferedTool[]) {
    for (const tool of tools) {
      const { name, schema } = nameAndSchema(tool);
      if (name === "" || this.#schemas.has(name)) continue;
      this.#schemas.set(name, schema);
      const key = foldName(name);
      this.#folded.set(key, this.#folded.has(key) ? null : name);
    }
    this.names = [...this.#schemas.keys()];
  }

  /** The offered name that is meant; undefined if there is none or it is ambiguous. */
  resolve(written: string): string | undefined {
    if (written.length > MAX_LENGTH) return undefined;
    if (this.#schemas.has(written)) return written;
    const bare = written.trim().replace(PREFIX, "").replace(SUFFIX, "");
    if (this.#schemas.has(bare)) return bare;
    return this.#folded.get(foldName(bare)) ?? undefined;
  }

  schema(name: string): unknown {
    return this.#schemas.get(name);
  }

  /** An offered name of which `written` is a misspelling. */
  near(written: string): string | undefined {
    if (written.length > MAX_LENGTH || written.length < 3) return undefined;
    const bare = foldName(written.replace(PREFIX, "").replace(SUFFIX, ""));
    return this.names.find((name) => isWithinEdits(bare, foldName(name), name.length > 5 ? 2 : 1));
  }

  /** Offered names that may be meant: the correct spelling if there is one, else names that share a word. */
  nearest(written: string): readonly string[] {
    if (written.length > MAX_LENGTH) return [];
    const slip = this.near(written);
    if (slip !== undefined) return [slip];
    const words = wordsOf(written);
    const shared = (name: string): number => wordsOf(name).filter((word) => words.includes(word)).length;
    return this.names
      .filter((name) => shared(name) > 0)
      .toSorted((one, other) => shared(other) - shared(one))
      .slice(0, MAX_NEAR);
  }

  /** What the model is told about a name that was not offered: a misspelling is pointed out but never run. */
  unknown(written: string): string {
    const quoted = JSON.stringify(written.slice(0, MAX_LENGTH).toWellFormed());
    if (this.names.length === 0) return `No tool can be called now; ${quoted} was not run.`;
    const near = this.nearest(written);
    const hint = near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`;
    return `There is no tool ${quoted}; there are ${this.names.join(", ")}.${hint}`;
  }

  /** Whether `written` is the beginning of an offered name. */
  begins(written: string): boolean {
    const bare = written.replace(PREFIX, "");
    return this.names.some((name) => name.startsWith(bare) || `functions.${name}`.startsWith(written));
  }
}

function nameAndSchema(tool: OfferedTool): { name: string; schema: unknown } {
  if (typeof tool === "string") return { name: tool, schema: undefined };
  const inner = isFields(tool.function) ? tool.function : undefined;
  const name = tool.name ?? inner?.name;
  return {
    name: typeof name === "string" ? name : "",
    schema: tool.parameters ?? tool.schema ?? inner?.parameters,
  };
}

const MAX_NEAR = 3;

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(PREFIX, "")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");

const foldName = (name: string): string => name.replaceAll(/[-_\s]/g, "").toLowerCase();

/** Whether at most `most` letters are added, removed, changed, or swapped with their neighbour. */
function isWithinEdits(one: string, other: string, most: number): boolean {
  if (one === other) return true;
  if (most === 0 || Math.abs(one.length - other.length) > most) return false;
  let at = 0;
  while (one[at] === other[at]) at += 1;
  const [a, b] = [one.slice(at), other.slice(at)];
  const swapped =
    a.length > 1 && a[0] === b[1] && a[1] === b[0] && isWithinEdits(a.slice(2), b.slice(2), most - 1);
  return (
    swapped ||
    isWithinEdits(a.slice(1), b.slice(1), most - 1) ||
    isWithinEdits(a.slice(1), b, most - 1) ||
    isWithinEdits(a, b.slice(1), most - 1)
  );
}

import { isFields } from "../../core/raw-data.ts";
import { CUT, type NotationCall, GARBLED, type NotationResult } from "./text-protocol.ts";
import {
  type Literal,
  readLiteral,
  readPythonCall,
  readPythonList,
  readQuoted,
  same,
  skipSpace,
} from "./literals.ts";
import { beginsMarkup, readMarkup } from "./markup.ts";

const NAME_KEY = /["']?(?:name|tool|tool_name|function|function_name|action)["']?\s*:\s*["']([\w.:-]{0,80})/;
const PYTHON_LIST = /\[\s*[A-Za-z_][\w.-]*\s*\(/y;
const PYTHON_CALL = /(?:print\s*\(\s*)?[A-Za-z_][\w.-]*\s*\(/y;
const DEEPSEEK = /(?:function)?<｜tool▁sep｜>([\w.:-]{1,80})\s*|([\w.:-]{1,80})<｜tool▁sep｜>\s*/y;
const KIMI = /([\w.:-]{1,80})\s*<\|tool_call_argument_begin\|>\s*/y;
const MISTRAL = /([\w.:-]{1,80})\s*(?:\[CALL_ID\]\s*[\w-]{1,40}\s*)?(?:\[ARGS\]\s*|(?=\{))/y;
const GLM = /([A-Za-z_][\w.:-]{0,79})\s*(?=<arg_key>|<\/tool_call>)/y;
const GLM_PAIR = /<arg_key>([^<]{1,120})<\/arg_key>\s*<arg_value>/y;
const FENCE = /```(?:json)?[ \t]*\r?\n/y;

const at = (pattern: RegExp, text: string, start: number): RegExpExecArray | null => {
  pattern.lastIndex = start;
  return pattern.exec(text);
};

/** The likely name of a call that cannot be read. */
export const nameIn = (text: string): string => NAME_KEY.exec(text.slice(0, 600))?.[1] ?? "";

/** One payload after a call's token, in any notation. */
export function readPayload(text: string, start: number): NotationResult {
  const char = text[start];
  if (char === "{") return readJson(text, start);
  if (char === "[")
    return at(PYTHON_LIST, text, start) === null ? readJson(text, start) : readPythonList(text, start);
  if (char === "<" && beginsMarkup(text, start)) return readMarkup(text, start);
  if (text.startsWith("call:", start)) return readGemmaCall(text, start);
  const named = readNamed(text, start);
  if (named !== undefined) return named;
  if (at(GLM, text, start) !== null) return readGlm(text, start);
  if (at(PYTHON_CALL, text, start) !== null) return readPythonCall(text, start);
  return { kind: "text", end: start };
}

/** A name, a separator, and the arguments as JSON. */
function readNamed(text: string, start: number): NotationResult | undefined {
  for (const pattern of [DEEPSEEK, KIMI, MISTRAL]) {
    const head = at(pattern, text, start);
    if (head === null) continue;
    const name = head[1] ?? head[2] ?? "";
    let from = pattern.lastIndex;
    const fence = at(FENCE, text, from);
    if (fence !== null) from += fence[0].length;
    return readArguments(text, skipSpace(text, from), name);
  }
  return undefined;
}

/** Arguments as JSON, for a name that was read elsewhere. */
export function readArguments(text: string, start: number, name: string): NotationResult {
  const read = readLiteral(text, start);
  if (!read.ok) return brokenCall(read, text, name);
  const parsed = typeof read.value === "string" ? readLiteral(read.value, 0) : read;
  const args = parsed.ok ? parsed.value : read.value;
  const found: NotationCall[] = [{ name, args, repaired: read.repaired || (parsed.ok && parsed.repaired) }];
  return { kind: "calls", found, end: read.end, cut: read.atEnd };
}

function readJson(text: string, start: number): NotationResult {
  const read = readLiteral(text, start);
  if (!read.ok) return brokenCall(read, text, nameIn(text.slice(start, start + 600)));
  if (isDefinition(read.value)) return { kind: "text", end: start };
  const shape = callsIn(read.value, read.repaired);
  const found: readonly NotationCall[] = shape.found ?? [
    {
      name: nameIn(text.slice(start, Math.min(read.end, start + 600))),
      args: {},
      repaired: false,
      broken: shape.reason,
    },
  ];
  return { kind: "calls", found, end: read.end, cut: read.atEnd };
}

function brokenCall(read: Extract<Literal, { ok: false }>, text: string, name: string): NotationResult {
  const reason = read.twice ? "a key is given twice" : read.cut ? CUT : GARBLED;
  const end = read.cut ? text.length : read.at;
  return { kind: "calls", found: [{ name, args: {}, repaired: false, broken: reason }], end, cut: read.cut };
}

/** GLM: a name, then keys and values, each in its own tags. */
function readGlm(text: string, start: number): NotationResult {
  const name = glmName(text, start);
  const args = new Map<string, unknown>();
  let from = GLM.lastIndex;
  const ends = (end: number, more: Partial<NotationCall>, cut: boolean): NotationResult => ({
    kind: "calls",
    found: [{ name, args: Object.fromEntries(args), repaired: false, ...more }],
    end,
    cut,
  });
  for (;;) {
    from = skipSpace(text, from);
    if (text.startsWith("</tool_call>", from)) return ends(from, {}, false);
    if (from >= text.length) return ends(from, { repaired: true }, true);
    const key = at(GLM_PAIR, text, from)?.[1]?.trim();
    if (key === undefined) {
      const cut = isBeginningOfPair(text.slice(from, from + 200));
      return ends(cut ? text.length : from, { broken: cut ? CUT : GARBLED }, cut);
    }
    const value = GLM_PAIR.lastIndex;
    const end = text.indexOf("</arg_value>", value);
    if (end === -1) return ends(text.length, { broken: CUT }, true);
    if (args.has(key)) return ends(end, { broken: `the argument ${key} is given twice` }, false);
    args.set(key, text.slice(value, end));
    from = end + "</arg_value>".length;
  }
}

const isBeginningOfPair = (rest: string): boolean =>
  "<arg_key></tool_call>".includes(rest) || (rest.startsWith("<arg_key>") && rest.length < 200);

const glmName = (text: string, start: number): string => at(GLM, text, start)?.[1] ?? "";

const HEAD = /call:([A-Za-z_][\w.-]{0,79})\s*([{(])/y;
const KEY = /\s*["']?([A-Za-z_]\w*)["']?\s*:\s*/y;
const QUOTES = ['<|"|>', "<escape>"] as const;
const PLAIN = /(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=\s*[,}\]])/y;
const MAX_DEPTH = 16;

/** Gemma's `call:N{key:<|"|>text<|"|>,other:true}`, which has its own quotes, or `call:N(key="text")`. */
function readGemmaCall(text: string, start: number): NotationResult {
  HEAD.lastIndex = start;
  const head = HEAD.exec(text);
  const name = head?.[1];
  if (head === null || name === undefined) return { kind: "text", end: start + 1 };
  if (head[2] === "(") return readPythonCall(text, start + "call:".length);
  const reader = new GemmaReader(text, HEAD.lastIndex);
  const args = reader.members(0);
  const found: NotationCall[] =
    args === undefined
      ? [{ name, args: {}, repaired: false, broken: reader.cut ? CUT : (reader.reason ?? GARBLED) }]
      : [{ name, args, repaired: false }];
  return { kind: "calls", found, end: reader.cut ? text.length : reader.at, cut: reader.cut };
}

class GemmaReader {
  at: number;
  reason: string | undefined;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  get cut(): boolean {
    return this.at >= this.#text.length;
  }

  /** The members up to the closing brace; undefined if they cannot be read. */
  members(depth: number): Record<string, unknown> | undefined {
    const args = new Map<string, unknown>();
    for (;;) {
      this.at = skipSpace(this.#text, this.at);
      if (this.#text[this.at] === "}") {
        this.at += 1;
        return Object.fromEntries(args);
      }
      KEY.lastIndex = this.at;
      const key = KEY.exec(this.#text)?.[1];
      if (key === undefined) return this.#fail();
      this.at = KEY.lastIndex;
      const value = this.#value(depth);
      if (value === undefined) return undefined;
      if (args.has(key)) {
        this.reason = `the argument ${key} is given twice`;
        return undefined;
      }
      args.set(key, value.value);
      if (!this.#more("}")) return undefined;
    }
  }

  #more(closer: string): boolean {
    this.at = skipSpace(this.#text, this.at);
    if (this.#text[this.at] === ",") this.at += 1;
    else if (this.#text[this.at] !== closer) return this.#fail() !== undefined;
    return true;
  }

  #value(depth: number): { value: unknown } | undefined {
    const text = this.#text;
    const quote = QUOTES.find((each) => text.startsWith(each, this.at));
    if (quote !== undefined) return this.#quoted(quote);
    const char = text[this.at];
    if (char === '"' || char === "'") return this.#plainString();
    if ((char === "{" || char === "[") && depth < MAX_DEPTH) {
      this.at += 1;
      const inner = char === "{" ? this.members(depth + 1) : this.#list(depth + 1);
      return inner === undefined ? undefined : { value: inner };
    }
    PLAIN.lastIndex = this.at;
    const plain = PLAIN.exec(text)?.[0];
    if (plain === undefined) {
      if (!/[,}\]\n]/.test(text.slice(this.at, this.at + 200))) this.at = text.length;
      return this.#fail();
    }
    this.at = PLAIN.lastIndex;
    return { value: JSON.parse(plain) as unknown };
  }

  #quoted(quote: string): { value: string } | undefined {
    const end = this.#text.indexOf(quote, this.at + quote.length);
    if (end === -1) {
      this.at = this.#text.length;
      return undefined;
    }
    const value = this.#text.slice(this.at + quote.length, end);
    this.at = end + quote.length;
    return { value };
  }

  #plainString(): { value: string } | undefined {
    const read = readQuoted(this.#text, this.at, false);
    if (read.value === undefined || read.repaired) {
      this.at = read.value === undefined ? (read.cut ? this.#text.length : read.at) : read.end;
      return undefined;
    }
    this.at = read.end;
    return { value: read.value };
  }

  #list(depth: number): unknown[] | undefined {
    const values: unknown[] = [];
    for (;;) {
      this.at = skipSpace(this.#text, this.at);
      if (this.#text[this.at] === "]") {
        this.at += 1;
        return values;
      }
      const value = this.#value(depth);
      if (value === undefined) return undefined;
      values.push(value.value);
      if (!this.#more("]")) return undefined;
    }
  }

  #fail(): undefined {
    return undefined;
  }
}

const NAMES = ["name", "tool", "tool_name", "function", "function_name", "action", "recipient_name"] as const;
const ARGS = [
  "arguments",
  "args",
  "parameters",
  "params",
  "input",
  "tool_input",
  "action_input",
  "kwargs",
] as const;
const EXTRA_KEYS = new Set(["id", "type", "tool_call_id", "call_id", "index", "tool_use_id"]);
const ENVELOPES = ["function", "tool_call", "function_call", "tool_calls", "call"] as const;
const TYPES = new Set(["function", "tool_call", "tool_use", "function_call", "call", "tool"]);
/** Every key that may come first in a call. */
export const CALL_KEYS: ReadonlySet<string> = new Set([...NAMES, ...ARGS, ...EXTRA_KEYS, ...ENVELOPES]);
export const ARGUMENT_KEYS: ReadonlySet<string> = new Set(ARGS);

/** The calls in a value, or why there are none: the value is something else, or a call that cannot be run. */
type Shape =
  | { readonly found: readonly NotationCall[] }
  | { readonly found: undefined; readonly reason: string };

const FOREIGN = 'a call is {"name": …, "arguments": {…}} and nothing else';
const notACall = (reason: string = FOREIGN): Shape => ({ found: undefined, reason });

/** The calls that a value describes: one object, a list of them, or an envelope around them. */
export function callsIn(value: unknown, repaired: boolean, depth = 0): Shape {
  if (depth > 4) return notACall();
  if (Array.isArray(value)) {
    const found: NotationCall[] = [];
    for (const each of value) {
      const shape = isFields(each) ? callsIn(each, repaired, depth + 1) : notACall();
      if (shape.found === undefined) return shape;
      found.push(...shape.found);
    }
    return { found };
  }
  if (!isFields(value)) return notACall();
  const envelope = ENVELOPES.find((key) => typeof value[key] === "object" && value[key] !== null);
  if (envelope === undefined) return callOf(value, repaired);
  const clean = Object.keys(value).every((key) => key === envelope || EXTRA_KEYS.has(key));
  return clean ? callsIn(value[envelope], repaired, depth + 1) : notACall();
}

function callOf(value: Readonly<Record<string, unknown>>, repaired: boolean): Shape {
  const keys = Object.keys(value);
  const names = NAMES.filter((key) => key in value);
  const bodies = ARGS.filter((key) => key in value);
  const [first] = names;
  const name = first === undefined ? undefined : value[first];
  if (typeof name !== "string" || name === "") return notACall("the call has no name");
  if (keys.length > names.length + bodies.length + extraKeyCount(value)) return notACall();
  if (names.some((key) => value[key] !== name)) return notACall("the call has two names");
  const [body] = bodies;
  if (body === undefined) return { found: [{ name, args: undefined, repaired }] };
  const args = parsed(value[body]);
  if (bodies.some((key) => !same(parsed(value[key]).value, args.value)))
    return {
      found: [{ name, args: {}, repaired, broken: "the call has two sets of arguments that differ" }],
    };
  if (isSchema(args.value)) return notACall("this is the definition of a tool");
  return { found: [{ name, args: args.value, repaired: repaired || args.repaired }] };
}

const extraKeyCount = (value: Readonly<Record<string, unknown>>): number => {
  const { type } = value;
  if (typeof type === "string" && !TYPES.has(type)) return 0;
  return Object.keys(value).filter((key) => EXTRA_KEYS.has(key)).length;
};

/** The definition of a tool is not a call of it. */
const isDefinition = (value: unknown): boolean =>
  isFields(value) && (isSchema(value["parameters"]) || "input_schema" in value);

const isSchema = (args: unknown): boolean =>
  isFields(args) && args["type"] === "object" && isFields(args["properties"]);

/** Parses arguments that arrived as JSON text, encoded once or twice. */
function parsed(args: unknown, again = true): { value: unknown; repaired: boolean } {
  if (typeof args !== "string") return { value: args, repaired: false };
  const read = readLiteral(args, 0);
  if (!read.ok || args.slice(read.end).trim() !== "") return { value: args, repaired: false };
  if (typeof read.value === "string" && again) return parsed(read.value, false);
  return { value: read.value, repaired: read.repaired };
}

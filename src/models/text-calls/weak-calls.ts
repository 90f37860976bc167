/** Calls that no token marks: those that are run, and those that are only reported to the model. */

import { isFields } from "../../core/raw-data.ts";
import { announcesNextStep } from "./hidden-text.ts";
import { lineEnd, readLiteral, readPythonCall, readPythonList, skipSpace } from "./literals.ts";
import type { ReplyItem } from "./markup.ts";
import { ARGUMENT_KEYS, CALL_KEYS, callsIn, nameIn } from "./payloads.ts";
import { decide, notOffered, OfferedTools } from "./settle.ts";
import {
  CUT,
  type NotationCall,
  GARBLED,
  type NotationResult,
  type TextReading,
  type WrittenMiss,
} from "./text-protocol.ts";

const FIRST_KEY = /\{\s*["']?([A-Za-z_]\w*)["']?\s*:\s*(?:["']([^"'\n]{0,80})["'])?/y;
const PYTHON_LIST = /\[\s*([A-Za-z_][\w.-]*)\s*\(/y;
const ARGUMENTS = new RegExp(`["']?(?:${[...ARGUMENT_KEYS].join("|")})["']?\\s*:`);
const AFTER_NAME = /:\s*["'][\w.:-]*(?:["']\s*(?:,\s*["']?\w*["']?\s*)?)?$/;
const HEAD_LENGTH = 600;

const isOffered = (tools: OfferedTools, name: string): boolean =>
  tools.resolve(name) !== undefined || tools.near(name) !== undefined;

/** Calls without any token: JSON, or a list of Python calls. Anything that names no offered tool is text. */
export function readBare(text: string, start: number, tools: OfferedTools): NotationResult {
  if (text[start] === "{") return readBareJson(text, start, tools);
  PYTHON_LIST.lastIndex = start;
  const name = PYTHON_LIST.exec(text)?.[1];
  if (name === undefined) return readBareJson(text, start, tools);
  if (!isOffered(tools, name)) return { kind: "text", end: start + 1 };
  return readPythonList(text, start);
}

function readBareJson(text: string, start: number, tools: OfferedTools): NotationResult {
  const object = text[start] === "{" ? start : skipSpace(text, start + 1);
  if (text[object] === "[") return nested(text, start);
  if (!mayBeCall(text, object, tools)) return { kind: "text", end: start + 1 };
  const read = readLiteral(text, start);
  if (!read.ok) return readBroken(text, start, read, tools);
  const found = callsIn(read.value, read.repaired).found ?? [];
  if (found.length === 0 || !found.every((each) => isCall(each, tools)))
    return { kind: "text", end: read.end };
  return { kind: "calls", found, end: read.end, cut: read.atEnd };
}

/** Decides by the first key, so that long data is shown as it arrives. */
function mayBeCall(text: string, object: number, tools: OfferedTools): boolean {
  if (object >= text.length) return true;
  if (text[object] !== "{") return false;
  FIRST_KEY.lastIndex = object;
  const first = FIRST_KEY.exec(text);
  const key = first?.[1];
  if (key === undefined) return text.length - object <= HEAD_LENGTH;
  if (!CALL_KEYS.has(key)) return false;
  return key !== "name" || first?.[2] === undefined || isOffered(tools, first[2]);
}

/** A list of lists is not a call, and nothing inside it is one. */
function nested(text: string, start: number): NotationResult {
  const read = readLiteral(text, start);
  return { kind: "text", end: read.ok ? read.end : Math.max(start + 1, read.at) };
}

/** A name alone is not a call, and arguments have to be an object. */
const isCall = (found: NotationCall, tools: OfferedTools): boolean =>
  isOffered(tools, found.name) && found.args !== undefined && !Array.isArray(found.args);

interface Unread {
  readonly at: number;
  readonly cut: boolean;
  readonly twice: boolean;
}

function readBroken(text: string, start: number, read: Unread, tools: OfferedTools): NotationResult {
  const head = text.slice(start, Math.min(read.cut ? text.length : read.at, start + HEAD_LENGTH));
  const name = nameIn(head);
  const twice = read.twice && name !== "" && isOffered(tools, name);
  if (!twice && !isMeantAsCall(head, name, read.cut, tools))
    return { kind: "text", end: Math.max(start + 1, Math.min(read.at, text.length)) };
  const reason = read.twice ? "a key is given twice" : read.cut ? CUT : GARBLED;
  return {
    kind: "calls",
    found: [{ name, args: {}, repaired: false, broken: reason }],
    end: read.cut ? text.length : brokenEnd(text, read.at),
    cut: read.cut,
  };
}

/** An offered name with arguments, or a beginning that can still become nothing else. */
function isMeantAsCall(head: string, name: string, cut: boolean, tools: OfferedTools): boolean {
  if (name !== "" && isOffered(tools, name)) return ARGUMENTS.test(head) || (cut && AFTER_NAME.test(head));
  if (!cut) return false;
  return name === "" ? beginsWithArguments(head) : AFTER_NAME.test(head) && tools.begins(name);
}

const beginsWithArguments = (head: string): boolean =>
  /^\[?\s*\{\s*["'](?:arguments|parameters)["']\s*:\s*\{/.test(head);

/**
 * The text that a call writes may have blank lines: if the rest of the reply ends like a call, it all belongs to this
 * call.
 */
function brokenEnd(text: string, from: number): number {
  const isItsEnd = CLOSED.test(text.slice(-CLOSING_LENGTH)) && !OPENS_ANOTHER.test(text.slice(from));
  return isItsEnd ? text.length : paragraphEnd(text, from);
}

const CLOSING_LENGTH = 60;
const CLOSED = /["'\]}]\s*\}\s*(?:`{3,}\s*)?$/;
const OPENS_ANOTHER =
  /\n[ \t]*(?:`{3,}\w*\n[ \t]*)?[[{][ \t\n]{0,8}\{?[ \t\n]{0,8}["'](?:name|tool|function|arguments|parameters)["']/;

function paragraphEnd(text: string, from: number): number {
  const blank = /\n[ \t\r]*\n|\n[ \t]*```/g;
  blank.lastIndex = from;
  return blank.exec(text)?.index ?? text.length;
}

/** The content of a fence, if it consists only of calls. */
export function readFenced(
  text: string,
  start: number,
  language: string,
  tools: OfferedTools,
): NotationResult {
  const found: NotationCall[] = [];
  let at = skipSpace(text, start);
  for (;;) {
    const read = language === "tool_code" ? readStatement(text, at, tools) : bareOrText(text, at, tools);
    if (read.kind !== "calls") return { kind: "text", end: start };
    found.push(...read.found);
    if (read.cut) return { kind: "calls", found, end: text.length, cut: true };
    at = skipSpace(text, read.end);
    if (text[at] === ";" || text[at] === ",") at = skipSpace(text, at + 1);
    if (text[at] === "`" || text[at] === "~" || at >= text.length)
      return { kind: "calls", found, end: at, cut: at >= text.length };
  }
}

const bareOrText = (text: string, at: number, tools: OfferedTools): NotationResult =>
  text[at] === "{" || text[at] === "[" ? readBare(text, at, tools) : { kind: "text", end: at };

const MENTION = /([A-Za-z_]\w*)\s*\(/g;

function readStatement(text: string, at: number, tools: OfferedTools): NotationResult {
  if (text[at] === "{" || text[at] === "[") return readBare(text, at, tools);
  const read = readPythonCall(text, at);
  if (read.kind === "calls" && read.found.every((each) => isOffered(tools, each.name))) return read;
  const end = text.indexOf("```", at);
  const rest = text.slice(at, end === -1 ? text.length : end);
  const name = [...rest.slice(0, 4000).matchAll(MENTION)].find(
    (hit) => tools.resolve(hit[1] ?? "") !== undefined,
  )?.[1];
  if (name === undefined)
    return end === -1 ? cutStatement(text, at, tools) : { kind: "text", end: lineEnd(text, at) };
  const broken = "only calls with plain values are read, no code round them";
  return {
    kind: "calls",
    found: [{ name, args: {}, repaired: false, broken }],
    end: at + rest.length,
    cut: end === -1,
  };
}

const CUT_STATEMENT = /^(?:print\s?\(\s?)?(?:default_api\.)?([A-Za-z_]\w{0,80})$/;

/** A statement that the end of the text cuts off within its name. */
function cutStatement(text: string, at: number, tools: OfferedTools): NotationResult {
  const name = CUT_STATEMENT.exec(text.slice(at, at + 120))?.[1];
  if (name === undefined || !tools.begins(name)) return { kind: "text", end: lineEnd(text, at) };
  return {
    kind: "calls",
    found: [{ name, args: {}, repaired: false, broken: CUT }],
    end: text.length,
    cut: true,
  };
}

/*
 * Calls in the forms of other agents. A reply that consists only of such a call was meant to act, but none of it is
 * run, because it can be read in several ways. The model is told the right form.
 */

interface Form {
  readonly pattern: RegExp;
  /**
   * Which names count: any name; one that shares a word with an offered name; an offered name; or an offered name that
   * is not a plain word.
   */
  readonly name: "any" | "near" | "offered" | "sure";
}

const FORM_NAME = "[`\"']?([A-Za-z_][\\w.-]{1,63})[`\"']?";
const FIELDS = "(?:args?|arguments|parameters|params|input|inputs|tool[ _]input|action[ _]input)";

/** For the result of `normalizedLines`; neighbouring parts of a pattern never match the same characters. */
const FORMS: readonly Form[] = [
  // Thought, Action, Action Input: the form of ReAct.
  {
    pattern: new RegExp(
      `^(?:(?:question|thought|reasoning|plan|action):[^]*\\n)?action: ?${FORM_NAME}\\naction[ _]input:`,
      "i",
    ),
    name: "any",
  },
  // Tool: NAME, Arguments: …; also as YAML.
  {
    pattern: new RegExp(
      `^(?:tool|function|action|call|tool[ _]call|tool[ _]name): ?${FORM_NAME}\\n${FIELDS}:`,
      "i",
    ),
    name: "near",
  },
  // <name><path>…</path></name>
  { pattern: /^<([a-z][\w-]{2,63})>\s*<[a-z][\w-]*>[^]*<\/[a-z][\w-]*>\s*<\/\1>$/, name: "near" },
  // name(path="…"), await name({…});
  {
    pattern: /^(?:(?:await|return|print\s*\() ?)?(?:[A-Za-z_]\w*\.){0,3}([A-Za-z_]\w*)\s*\([^]*\)\)?\s*;?$/,
    name: "sure",
  },
  // name {…}, @name {…}
  { pattern: /^@?`?([A-Za-z_][\w.-]{1,63})`?:?\s*\{[^]*\}$/, name: "offered" },
];

/** Longer replies are more likely texts about calls. */
const MAX_LENGTH = 50_000;
const FENCED = /^(`{3,10}|~{3,10})[\w-]*\n([^]*?)\n?\1$/;
const FINISHES = /^(?:none|finish|final[ _]?answer|n\/?a)$/i;
const FLAT_ARGUMENTS = new Set(
  "path file file_path filename command cmd content pattern query old new patch".split(" "),
);
/** Keys that hold a tool's name; `TOOL_KEYS` are those that rarely hold anything else. */
const NAME_KEYS = ["tool", "tool_name", "action", "function"];
const TOOL_KEYS: ReadonlySet<string> = new Set(["tool", "tool_name"]);

/** The call that the whole reply was meant as; undefined for all other replies. */
export function inOtherForm(prose: string, tools: OfferedTools): WrittenMiss | undefined {
  const text = prose.trim();
  if (text === "" || text.length > MAX_LENGTH || tools.names.length === 0) return undefined;
  const plain = normalizedLines(text);
  const inner = FENCED.exec(plain)?.[2]?.trim() ?? plain;
  const name = nameByForm(inner, tools) ?? flatName(inner, tools);
  if (name === undefined) return undefined;
  const offered = tools.resolve(name);
  if (offered === undefined) return notOffered({ name, args: {}, repaired: false }, tools);
  const reason = `calls are not read in this form, and nothing of it was run. Call ${offered} as the tool that it is, or send nothing but {"name": "${offered}", "arguments": {…}}.`;
  return { missed: "other_form", name, args: {}, reason, nearest: [] };
}

/** The lines that are not blank, with single spaces between words. */
const normalizedLines = (text: string): string =>
  text
    .split("\n")
    .flatMap((line) => line.trim().replaceAll(/\s+/g, " ") || [])
    .join("\n");

function nameByForm(text: string, tools: OfferedTools): string | undefined {
  for (const { pattern, name: kind } of FORMS) {
    const name = pattern.exec(text)?.[1];
    if (name !== undefined && !FINISHES.test(name) && isMeant(name, kind, tools)) return name;
  }
  return undefined;
}

function isMeant(name: string, kind: Form["name"], tools: OfferedTools): boolean {
  if (kind === "any") return true;
  const offered = tools.resolve(name);
  if (kind === "near") return offered !== undefined || tools.nearest(name).length > 0;
  return offered !== undefined && (kind === "offered" || isToolLikeName(offered));
}

/** A name that is unlikely to be an ordinary word of an answer. */
const isToolLikeName = (name: string): boolean => name.includes("_") || name === "bash";

/** {"tool": "read_file", "path": …}: the arguments are next to the name. */
function flatName(text: string, tools: OfferedTools): string | undefined {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isFields(value) || !Object.keys(value).some((key) => FLAT_ARGUMENTS.has(key))) return undefined;
    const key = NAME_KEYS.find((each) => typeof value[each] === "string") ?? "";
    const name = value[key];
    if (typeof name !== "string") return undefined;
    const offered = tools.resolve(name);
    const isNear = TOOL_KEYS.has(key) && tools.nearest(name).length > 0;
    return (offered !== undefined && isToolLikeName(offered)) || isNear ? name : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Missed calls: text with the shape and position of a call that may not be run. The reply stays text, and the model is
 * told, because it may believe that it has acted.
 */

/** A text without any of these characters contains no missed call. */
export const MAY_MISS = /[{[`~]/;

const NAME = /^[A-Za-z_][\w.-]{1,63}$/;
/** One capitalised word is more likely a person's name, unless an offered tool contains that word. */
const PERSON_NAME = /^[A-Z][a-z]+$/;

/** Treats every possible tool name as offered, to find everything in a reply that is shaped as a call. */
export class AnyNames extends OfferedTools {
  readonly #offered: OfferedTools;

  constructor(offered: OfferedTools) {
    super(offered.names);
    this.#offered = offered;
  }

  override resolve(written: string): string | undefined {
    const known = super.resolve(written);
    if (known !== undefined || !NAME.test(written)) return known;
    return PERSON_NAME.test(written) && this.#offered.nearest(written).length === 0 ? undefined : written;
  }

  override near(): undefined {
    return undefined;
  }
}

type Calls = Extract<ReplyItem, { readonly kind: "calls" }>;

export const weakAsProse = (item: ReplyItem): ReplyItem =>
  item.kind === "calls" && item.weak ? { kind: "prose", from: item.from, to: item.to } : item;

interface Offered {
  readonly tools: OfferedTools;
  /** The reading in which nothing within prose is a call. */
  readonly asProse: () => TextReading;
}

/** `wide`: the items of the same text if every name counts as offered. */
export function withMissed(
  reading: TextReading,
  wide: readonly ReplyItem[],
  text: string,
  { tools, asProse }: Offered,
): TextReading {
  const shown = decide(wide, text);
  const weak = wide.filter((item): item is Calls => item.kind === "calls" && item.weak);
  if (tools.names.length === 0) return reading;
  const strong = wide.some((item) => item.kind === "calls" && !item.weak);
  if (strong) return reading;
  const someShown = weak.some((item) => shown[wide.indexOf(item)] === true);
  const fenced = weak.filter(({ from, to }) => /^\s*(?:```|~~~)/.test(text.slice(from, to)));
  const first = someShown && fenced.length > 1 ? firstOffered(fenced, tools) : undefined;
  if (first !== undefined) return { ...asProse(), missed: [notAlone(first, tools)] };
  if (reading.calls.length + reading.malformed.length > 0 || someShown || weak.length === 0) return reading;
  const before = text.slice(0, weak[0]?.from ?? 0);
  if (wide.some((item) => isProse(item, text)) && !announcesNextStep(before)) return reading;
  const missed = weak.flatMap(({ found }) => found).map((found) => missOf(found, tools));
  return missed.some((each) => each === undefined)
    ? reading
    : { ...reading, missed: missed.filter((each) => each !== undefined) };
}

const isProse = (item: ReplyItem, text: string): boolean =>
  item.kind === "prose" && text.slice(item.from, item.to).trim() !== "";

const firstOffered = (items: readonly Calls[], tools: OfferedTools): NotationCall | undefined =>
  items.flatMap(({ found }) => found).find(({ name }) => tools.resolve(name) !== undefined);

const argsOf = ({ args }: NotationCall): WrittenMiss["args"] => (isFields(args) ? args : {});

function notAlone(found: NotationCall, tools: OfferedTools): WrittenMiss {
  const name = tools.resolve(found.name) ?? found.name;
  const reason =
    "only a call that stands alone is run, and your reply has several with words around them; nothing of it was run. Send one call, the first that is needed, and nothing else.";
  return { missed: "not_alone", name, args: argsOf(found), reason, nearest: [] };
}

/** A call of a tool that was not offered, or a call in the same list as such a call. */
function missOf(found: NotationCall, tools: OfferedTools): WrittenMiss | undefined {
  const { args, broken } = found;
  if (broken !== undefined || !isFields(args)) return undefined;
  const name = tools.resolve(found.name);
  if (name === undefined) return notOffered(found, tools);
  const reason = "it stands beside a call of a tool that does not exist; send it again alone";
  return { missed: "not_alone", name, args, reason, nearest: [] };
}

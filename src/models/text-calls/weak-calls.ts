import { CUT, type Found, GARBLED, type Outcome } from "./call-reading.ts";
import { lineEnd, readLiteral, readPythonCall, readPythonList, skipSpace } from "./literals.ts";
import { ARGUMENT_KEYS, CALL_KEYS, callsIn, nameIn } from "./payloads.ts";
import type { OfferedTools } from "./settle.ts";

const FIRST_KEY = /\{\s*["']?([A-Za-z_]\w*)["']?\s*:\s*(?:["']([^"'\n]{0,80})["'])?/y;
const PYTHON_LIST = /\[\s*([A-Za-z_][\w.-]*)\s*\(/y;
const ARGUMENTS = new RegExp(`["']?(?:${[...ARGUMENT_KEYS].join("|")})["']?\\s*:`);
const AFTER_NAME = /:\s*["'][\w.:-]*(?:["']\s*(?:,\s*["']?\w*["']?\s*)?)?$/;
const PEEK = 600;

const isOffered = (tools: OfferedTools, name: string): boolean =>
  tools.resolve(name) !== undefined || tools.near(name) !== undefined;

/** Calls without any token: JSON, or a list of Python calls. Anything that names no offered tool is text. */
export function readBare(text: string, start: number, tools: OfferedTools): Outcome {
  if (text[start] === "{") return readBareJson(text, start, tools);
  PYTHON_LIST.lastIndex = start;
  const name = PYTHON_LIST.exec(text)?.[1];
  if (name === undefined) return readBareJson(text, start, tools);
  if (!isOffered(tools, name)) return { kind: "text", end: start + 1 };
  return readPythonList(text, start);
}

function readBareJson(text: string, start: number, tools: OfferedTools): Outcome {
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
  if (key === undefined) return text.length - object <= PEEK;
  if (!CALL_KEYS.has(key)) return false;
  return key !== "name" || first?.[2] === undefined || isOffered(tools, first[2]);
}

/** A list of lists is not a call, and nothing inside it is one. */
function nested(text: string, start: number): Outcome {
  const read = readLiteral(text, start);
  return { kind: "text", end: read.ok ? read.end : Math.max(start + 1, read.at) };
}

/** A name alone is not a call, and arguments have to be an object. */
const isCall = (found: Found, tools: OfferedTools): boolean =>
  isOffered(tools, found.name) && found.args !== undefined && !Array.isArray(found.args);

interface Unread {
  readonly at: number;
  readonly cut: boolean;
  readonly twice: boolean;
}

function readBroken(text: string, start: number, read: Unread, tools: OfferedTools): Outcome {
  const head = text.slice(start, Math.min(read.cut ? text.length : read.at, start + PEEK));
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
  const isItsEnd = CLOSED.test(text.slice(-CLOSING)) && !OPENS_ANOTHER.test(text.slice(from));
  return isItsEnd ? text.length : paragraphEnd(text, from);
}

const CLOSING = 60;
const CLOSED = /["'\]}]\s*\}\s*(?:`{3,}\s*)?$/;
const OPENS_ANOTHER =
  /\n[ \t]*(?:`{3,}\w*\n[ \t]*)?[[{][ \t\n]{0,8}\{?[ \t\n]{0,8}["'](?:name|tool|function|arguments|parameters)["']/;

function paragraphEnd(text: string, from: number): number {
  const blank = /\n[ \t\r]*\n|\n[ \t]*```/g;
  blank.lastIndex = from;
  return blank.exec(text)?.index ?? text.length;
}

/** The content of a fence, if it consists only of calls. */
export function readFenced(text: string, start: number, language: string, tools: OfferedTools): Outcome {
  const found: Found[] = [];
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

const bareOrText = (text: string, at: number, tools: OfferedTools): Outcome =>
  text[at] === "{" || text[at] === "[" ? readBare(text, at, tools) : { kind: "text", end: at };

const MENTION = /([A-Za-z_]\w*)\s*\(/g;

function readStatement(text: string, at: number, tools: OfferedTools): Outcome {
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
function cutStatement(text: string, at: number, tools: OfferedTools): Outcome {
  const name = CUT_STATEMENT.exec(text.slice(at, at + 120))?.[1];
  if (name === undefined || !tools.begins(name)) return { kind: "text", end: lineEnd(text, at) };
  return {
    kind: "calls",
    found: [{ name, args: {}, repaired: false, broken: CUT }],
    end: text.length,
    cut: true,
  };
}

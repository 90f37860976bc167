import { beginsMarkup, readMarkup } from "./markup.ts";
import { readGemmaCall } from "./gemma.ts";
import { type Literal, readLiteral } from "./literals.ts";
import { readPythonCall, readPythonList, skipSpace } from "./pythonic.ts";
import { CUT, type Found, GARBLED, type Outcome } from "./reading.ts";
import { callsIn } from "./shapes.ts";

const NAME_KEY = /["']?(?:name|tool|tool_name|function|function_name|action)["']?\s*:\s*["']([\w.:-]{0,80})/;
const PYTHON_LIST = /\[\s*[A-Za-z_][\w.-]*\s*\(/y;
const PYTHON_CALL = /(?:print\s*\(\s*)?[A-Za-z_][\w.-]*\s*\(/y;
const DEEPSEEK = /(?:function)?<｜tool▁sep｜>([\w.:-]{1,80})\s*|([\w.:-]{1,80})<｜tool▁sep｜>\s*/y;
const KIMI = /([\w.:-]{1,80})\s*<\|tool_call_argument_begin\|>\s*/y;
const MISTRAL = /([\w.:-]{1,80})\s*(?:\[CALL_ID\]\s*[\w-]{1,40}\s*)?(?:\[ARGS\]\s*|(?=\{))/y;
const GLM = /([\w.:-]{1,80})\s*(?=<arg_key>|<\/tool_call>)/y;
const GLM_PAIR = /<arg_key>([^<]{1,120})<\/arg_key>\s*<arg_value>/y;
const FENCE = /```(?:json)?[ \t]*\r?\n/y;

const at = (pattern: RegExp, text: string, start: number): RegExpExecArray | null => {
  pattern.lastIndex = start;
  return pattern.exec(text);
};

/** The name that a call seems to have which cannot be read. */
export const nameIn = (text: string): string => NAME_KEY.exec(text.slice(0, 600))?.[1] ?? "";

/** One payload of a call behind its token, in whichever notation it is. */
export function readPayload(text: string, start: number): Outcome {
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
function readNamed(text: string, start: number): Outcome | undefined {
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

/** Arguments as JSON, for a name that stands elsewhere. */
export function readArguments(text: string, start: number, name: string): Outcome {
  const read = readLiteral(text, start);
  if (!read.ok) return broken(read, text, name);
  const parsed = typeof read.value === "string" ? readLiteral(read.value, 0) : read;
  const args = parsed.ok ? parsed.value : read.value;
  const found: Found[] = [{ name, args, repaired: read.repaired || (parsed.ok && parsed.repaired) }];
  return { kind: "calls", found, end: read.end, cut: read.atEnd };
}

export function readJson(text: string, start: number): Outcome {
  const read = readLiteral(text, start);
  if (!read.ok) return broken(read, text, nameIn(text.slice(start, start + 600)));
  const shape = callsIn(read.value, read.repaired);
  const found: readonly Found[] = shape.found ?? [
    {
      name: nameIn(text.slice(start, Math.min(read.end, start + 600))),
      args: {},
      repaired: false,
      broken: shape.reason,
    },
  ];
  return { kind: "calls", found, end: read.end, cut: read.atEnd };
}

function broken(read: Extract<Literal, { ok: false }>, text: string, name: string): Outcome {
  const reason = read.twice ? "a key is given twice" : read.cut ? CUT : GARBLED;
  const end = read.cut ? text.length : read.at;
  return { kind: "calls", found: [{ name, args: {}, repaired: false, broken: reason }], end, cut: read.cut };
}

/** GLM: a name, then keys and values in tags of their own. */
function readGlm(text: string, start: number): Outcome {
  const name = at(GLM, text, start)?.[1] ?? "";
  const args = new Map<string, unknown>();
  let from = GLM.lastIndex;
  const ends = (end: number, more: Partial<Found>, cut: boolean): Outcome => ({
    kind: "calls",
    found: [{ name, args: Object.fromEntries(args), repaired: false, ...more }],
    end,
    cut,
  });
  for (;;) {
    from = skipSpace(text, from);
    if (text.startsWith("</tool_call>", from)) return ends(from, {}, false);
    if (from >= text.length) return ends(from, { repaired: true }, true);
    const pair = at(GLM_PAIR, text, from);
    const key = pair?.[1]?.trim();
    if (key === undefined) {
      const rest = text.slice(from, from + 200);
      const cut =
        "<arg_key></tool_call>".includes(rest) || (rest.startsWith("<arg_key>") && rest.length < 200);
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

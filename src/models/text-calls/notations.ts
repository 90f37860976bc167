import { CUT, type NotationCall, type NotationResult } from "./text-protocol.ts";
import { skipSpace } from "./literals.ts";
import { beginsMarkup } from "./markup.ts";
import { readArguments, readPayload } from "./payloads.ts";

/** Tokens of the model families. A longer token precedes its own prefixes. */

/** Tokens that open a call, for every family that wraps its calls. */
export const OPENERS: readonly string[] = [
  "<tool_call>",
  "<tool_calls>",
  "<toolcall>",
  "<TOOLCALL>",
  "<tool-call>",
  "<tools>",
  "<function_call>",
  "<functioncall>",
  "<function_calls>",
  "<antml:function_calls>",
  "<seed:tool_call>",
  "<minimax:tool_call>",
  "<|tool_call|>",
  "<|tool_calls|>",
  "<|tool_call>",
  "<|tool_call_start|>",
  "<|tool_calls_section_begin|>",
  "<|tool_call_begin|>",
  "<start_function_call>",
  "<｜DSML｜function_calls>",
  "<｜DSML｜tool_calls>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁call▁begin｜>",
  "[TOOL_REQUEST]",
  "[TOOL_CALL]",
  "[TOOL_CALLS]",
  "<|START_ACTION|>",
  "<|action_start|>",
  "<|plugin|>",
  "<|python_tag|>",
  "<|python_start|>",
];

export const CLOSERS: readonly string[] = [
  "</tool_call>",
  "</tool_calls>",
  "</toolcall>",
  "</TOOLCALL>",
  "</tool-call>",
  "</tools>",
  "</function_call>",
  "</functioncall>",
  "</function_calls>",
  "</antml:function_calls>",
  "</seed:tool_call>",
  "</minimax:tool_call>",
  "<|/tool_call|>",
  "</|tool_call|>",
  "<tool_call|>",
  "<|tool_call_end|>",
  "<|tool_calls_section_end|>",
  "<end_function_call>",
  "</｜DSML｜function_calls>",
  "</｜DSML｜tool_calls>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁calls▁end｜>",
  "[END_TOOL_REQUEST]",
  "[/TOOL_REQUEST]",
  "[/TOOL_CALL]",
  "[/TOOL_CALLS]",
  "<|END_ACTION|>",
  "<|action_end|>",
  "<|python_end|>",
  "</function>",
  "</invoke>",
  "<|call|>",
];

/** Tokens that end a turn; they are never shown. */
export const ENDS: readonly string[] = [
  "<|im_end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|eot|>",
  "<|eom|>",
  "</s>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<|endoftext|>",
  "<|end_of_text|>",
  "<｜end▁of▁sentence｜>",
  "<end_of_turn>",
  "<turn|>",
  "<eos>",
  "<|END_OF_TURN_TOKEN|>",
  "<|END_RESPONSE|>",
  "<|START_RESPONSE|>",
  "<|im_start|>assistant",
  "<|start_header_id|>assistant<|end_header_id|>",
  "<|endofprompt|>",
  "<|observation|>",
];

/** The beginnings of a tool's answer or another party's turn, which the model invents. */
export const INVENTED: readonly string[] = [
  "<tool_response>",
  "<|tool_response>",
  "<tool_result>",
  "<function_results>",
  "<|tool_outputs_begin|>",
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁output▁begin｜>",
  "[TOOL_RESULTS]",
  "[TOOL_RESULT]",
  "<|im_start|>user",
  "<|im_start|>tool",
  "<|start_header_id|>",
  "<|START_TOOL_RESULT|>",
  "<start_function_response>",
  "<|ipython|>",
  "Observation:",
];

/** Opener and closer of thinking. */
export const THINKING: readonly (readonly [string, string])[] = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<reasoning>", "</reasoning>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
  ["<|channel>thought", "<channel|>"],
  ["◁think▷", "◁/think▷"],
];

/** Text between these is only shown, in HTML or in a list of examples. */
export const SHOWN: readonly (readonly [string, string])[] = [
  ["<!--", "-->"],
  ["<pre>", "</pre>"],
  ["<code>", "</code>"],
  ["<example>", "</example>"],
  ["<examples>", "</examples>"],
  ["<blockquote>", "</blockquote>"],
  ["<samp>", "</samp>"],
  ["<xmp>", "</xmp>"],
  ["<![CDATA[", "]]>"],
];

export const tokenAt = (tokens: readonly string[], text: string, at: number): string | undefined =>
  tokens.find((token) => text.startsWith(token, at));

const CLOSER_REACH = 4000;
const CLOSER = new RegExp(
  CLOSERS.map((token) => token.replaceAll(/[[\]|/\\]/g, String.raw`\$&`)).join("|"),
  "g",
);
/** This close to the end of the text, unreadable text may be the beginning of a payload. */
const MAX_UNREADABLE_END = 200;
const NAME_ALONE = /^[\w.:-]{0,80}\s{0,9}[<[]?[\w/|｜▁=".-]{0,90}(?:\sname=["']?[\w.:-]{0,80}["']?)?\]?$/;
const FENCE = /```[\w]*[ \t]*\r?\n?/y;
const ACTION = /Action:\s{0,4}(?=```(?:json)?\s*\n)/y;
const BARE_GEMMA = /call:([A-Za-z_][\w.-]{0,79})\s*[{(]/y;

/** Whether a family's token opens a call here. */
export function opensWrapped(text: string, at: number, lineStart: boolean): boolean {
  if (tokenAt(OPENERS, text, at) !== undefined || beginsMarkup(text, at)) return true;
  if (text.startsWith("functools[", at)) return true;
  ACTION.lastIndex = at;
  BARE_GEMMA.lastIndex = at;
  return lineStart && (ACTION.test(text) || BARE_GEMMA.test(text));
}

/** The calls after a family's tokens, together with every closer and every further call that follows directly. */
export function readWrapped(text: string, start: number, final: boolean): NotationResult {
  return new Wrapper(text, final).read(start);
}

class Wrapper {
  readonly #text: string;
  readonly #found: NotationCall[] = [];
  #open = true;
  /** The end of everything that belongs to the calls. */
  #end = 0;
  #tools = false;

  readonly #final: boolean;

  constructor(text: string, final: boolean) {
    this.#text = text;
    this.#final = final;
  }

  read(start: number): NotationResult {
    const text = this.#text;
    this.#end = this.#head(start);
    for (;;) {
      const at = this.#skip(this.#end);
      if (at >= text.length || partial(text.slice(at, at + 40))) return this.#over(text.length);
      const token = this.#token(at);
      if (token > 0) this.#end = at + token;
      else if (this.#open) {
        const done = this.#payload(start, at);
        if (done !== undefined) return done;
      } else return this.#calls(this.#end, false);
    }
  }

  /** Reads one payload; returns an outcome if nothing can follow. */
  #payload(start: number, at: number): NotationResult | undefined {
    const text = this.#text;
    if (this.#found.length > 0 && /[}\]]/.test(text[at] ?? "")) {
      this.#tooMany();
      this.#end = at + 1;
      return undefined;
    }
    const read = readPayload(text, at);
    if (read.kind !== "calls") return this.#unknown(start, at, this.#end);
    this.#found.push(...read.found);
    if (read.cut) return this.#calls(text.length, true);
    const broken = read.found.some((each) => each.broken !== undefined);
    this.#end = broken ? this.#past(read.end) : read.end;
    return broken && this.#end >= text.length && !this.#final ? { kind: "more" } : undefined;
  }

  #head(start: number): number {
    if (this.#text.startsWith("functools", start)) return start + "functools".length;
    ACTION.lastIndex = start;
    if (ACTION.test(this.#text)) return ACTION.lastIndex;
    if (this.#text.startsWith("<tools>", start)) this.#tools = true;
    return start;
  }

  /** The length of the opener, closer or fence at a place. */
  #token(at: number): number {
    const opener = tokenAt(OPENERS, this.#text, at);
    if (opener !== undefined) {
      this.#open = true;
      return opener.length;
    }
    const closer = tokenAt(CLOSERS, this.#text, at);
    if (closer !== undefined) {
      this.#open = false;
      return closer.length;
    }
    if (!this.#open) return 0;
    FENCE.lastIndex = at;
    return FENCE.exec(this.#text)?.[0].length ?? 0;
  }

  #skip(from: number): number {
    let at = from;
    while (/[\s;,]/.test(this.#text[at] ?? "x")) at += 1;
    return at;
  }

  /** There is an extra bracket: what it should have enclosed is a guess. */
  #tooMany(): void {
    const last = this.#found.pop();
    if (last !== undefined) this.#found.push({ ...last, repaired: true });
  }

  /** The end of the unreadable call: its closer, or the end of the text. */
  #past(from: number): number {
    CLOSER.lastIndex = 0;
    const hit = CLOSER.exec(this.#text.slice(from, from + CLOSER_REACH));
    return hit === null ? this.#text.length : from + hit.index;
  }

  #unknown(start: number, at: number, end: number): NotationResult {
    if (this.#found.length > 0) return this.#calls(end, false);
    const rest = this.#text.slice(at, at + MAX_UNREADABLE_END);
    if (rest.length < MAX_UNREADABLE_END && !this.#final) return { kind: "more" };
    if (rest.length < MAX_UNREADABLE_END && NAME_ALONE.test(rest)) return this.#over(this.#text.length);
    return { kind: "text", end: start + 1 };
  }

  #over(end: number): NotationResult {
    if (this.#found.length === 0 && this.#open)
      this.#found.push({ name: "", args: {}, repaired: false, broken: CUT });
    return this.#calls(end, true);
  }

  #calls(end: number, cut: boolean): NotationResult {
    if (this.#tools && this.#found.some(({ broken }) => broken !== undefined && broken !== CUT))
      return { kind: "text", end };
    return { kind: "calls", found: this.#found, end, cut };
  }
}

const partial = (rest: string): boolean =>
  rest.length < 40 &&
  [...OPENERS, ...CLOSERS].some((token) => token.length > rest.length && token.startsWith(rest));

const HEADER = new RegExp(
  [
    /(?:<\|start\|>)?(?:assistant)?\s{0,4}/,
    // The recipient stands before or after the channel.
    /(?:to=([\w.:-]{1,90})\s{0,4})?/,
    /<\|channel\|>\s{0,4}(analysis|commentary|final)?\s{0,4}/,
    /(?:to=([\w.:-]{1,90})\s{0,4})?/,
    // How the arguments are written.
    /(?:<\|constrain\|>)?\s{0,4}(?:json|code)?\s{0,4}<\|message\|>/,
  ]
    .map(({ source }) => source)
    .join(""),
  "y",
);
const STRIPPED =
  /(?:assistant)?(?:commentary|analysis) {0,4}to=(functions\.[\w.:-]{1,90})\s{0,4}(?:<\|constrain\|>)?(?:json|code)?\s{0,4}(?:<\|message\|>)?/y;
const OPENING = /<\|start\|>|<\|channel\|>|(?:assistant)?(?:commentary|analysis) {0,4}to=functions\./y;
const BODY_END = /<\|(?:end|return|start|channel|call)\|>/g;
const RECIPIENT = /to=([\w.:-]{1,90})/;
const TURN = /assistant(?=commentary|final|analysis)/g;
/** A turn that contains only speech. */
const SPOKEN = /assistant(?:final|commentary(?! {0,4}(?:to=|t?o?$)))/y;
const CUT_HEADER = /^\s*(?:<\|channel\|>\w*\s*)?(?:<\|[a-z]*(?:\|>?)?)?\s?[a-z]{0,4}\s?(?:<\|[a-z]*\|?)?$/;
const MAX_HEADER_LENGTH = 260;
const MAX_TURN_LENGTH = "assistantcommentary    to=".length;

/** A segment of the harmony format: calls, or a body that is either shown or a thought. */
export type HarmonySegment =
  | NotationResult
  | {
      readonly kind: "body";
      readonly from: number;
      readonly to: number;
      readonly end: number;
      readonly shown: boolean;
    };

export function opensHarmony(text: string, at: number): boolean {
  OPENING.lastIndex = at;
  return OPENING.test(text);
}

export function readHarmony(text: string, start: number, final: boolean): HarmonySegment {
  HEADER.lastIndex = start;
  const header = HEADER.exec(text);
  if (header === null) return readStripped(text, start, final);
  const body = HEADER.lastIndex;
  const to = header[1] ?? header[3];
  if (to !== undefined) return readArguments(text, skipSpace(text, body), to);
  BODY_END.lastIndex = body;
  const over = BODY_END.exec(text);
  if (over === null && !final) return { kind: "more" };
  const end = over?.index ?? text.length;
  return { kind: "body", from: body, to: end, end, shown: header[2] !== "analysis" };
}

function readStripped(text: string, start: number, final: boolean): HarmonySegment {
  STRIPPED.lastIndex = start;
  const name = STRIPPED.exec(text)?.[1];
  const at = STRIPPED.lastIndex;
  if (name !== undefined && text[at] === "{") return readArguments(text, at, name);
  const rest = text.slice(start, start + MAX_HEADER_LENGTH);
  if (rest.length === MAX_HEADER_LENGTH) return { kind: "text", end: start + 1 };
  if (!final) return { kind: "more" };
  const to = cutRecipient(rest, at >= start + rest.length - 40);
  if (to === undefined) return { kind: "text", end: start + 1 };
  const found = [{ name: to, args: {}, repaired: false, broken: CUT }];
  return { kind: "calls", found, end: text.length, cut: true };
}

/** The recipient in a header that the end of the text cuts off. */
function cutRecipient(header: string, near: boolean): string | undefined {
  const recipient = RECIPIENT.exec(header);
  if (recipient === null) return undefined;
  const behind = header.slice(recipient.index + recipient[0].length);
  return near || header.length <= 40 || CUT_HEADER.test(behind) ? recipient[1] : undefined;
}

/**
 * The beginning of a reply that lost its tokens: `analysis…assistantcommentary to=…`. The thought ends where the next
 * turn begins.
 */
export function strippedThought(text: string, final: boolean): HarmonySegment | undefined {
  if (!final && "analysis".startsWith(text)) return { kind: "more" };
  if (!/^analysis(?:[^\sa-z]|$)/.test(text.slice(0, 9))) return undefined;
  TURN.lastIndex = 0;
  const turn = TURN.exec(text);
  if (turn !== null) return afterThought(text, turn.index, final);
  return final ? undefined : { kind: "more" };
}

function afterThought(text: string, turn: number, final: boolean): HarmonySegment {
  if (!final && text.length < turn + MAX_TURN_LENGTH) return { kind: "more" };
  SPOKEN.lastIndex = turn;
  const end = SPOKEN.test(text) ? SPOKEN.lastIndex : turn;
  return { kind: "body", from: turn, to: turn, end, shown: false };
}

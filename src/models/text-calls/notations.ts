import { CUT, type Found, type Outcome } from "./call-reading.ts";
import { beginsMarkup } from "./markup.ts";
import { readPayload } from "./payloads.ts";

/** Tokens of the families. Longer ones stand before their own beginnings. */

/** What opens a call for every family that wraps its calls. */
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

/** What ends a turn; nothing of it is shown. */
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

/** An answer of a tool that the model invents, or a turn of somebody else. */
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

/** What stands for shown text in HTML or an outline of examples. */
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

const FAR = 4000;
const CLOSER = new RegExp(
  CLOSERS.map((token) => token.replaceAll(/[[\]|/\\]/g, String.raw`\$&`)).join("|"),
  "g",
);
/** So near to the end, what is no payload yet may be the beginning of one. */
const NEAR = 200;
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

/** The calls behind a family's tokens, with every closer and every further call that follows at once. */
export function readWrapped(text: string, start: number, final: boolean): Outcome {
  return new Wrapper(text, final).read(start);
}

class Wrapper {
  readonly #text: string;
  readonly #found: Found[] = [];
  #open = true;
  /** Behind the last thing that belongs to the calls. */
  #end = 0;
  #tools = false;

  readonly #final: boolean;

  constructor(text: string, final: boolean) {
    this.#text = text;
    this.#final = final;
  }

  read(start: number): Outcome {
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

  /** One payload; an outcome when nothing can follow. */
  #payload(start: number, at: number): Outcome | undefined {
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

  /** A bracket too many: what was meant to be in it is a guess. */
  #tooMany(): void {
    const last = this.#found.pop();
    if (last !== undefined) this.#found.push({ ...last, repaired: true });
  }

  /** Behind the closer of a call that cannot be read, or behind everything. */
  #past(from: number): number {
    CLOSER.lastIndex = 0;
    const hit = CLOSER.exec(this.#text.slice(from, from + FAR));
    return hit === null ? this.#text.length : from + hit.index;
  }

  #unknown(start: number, at: number, end: number): Outcome {
    if (this.#found.length > 0) return this.#calls(end, false);
    const rest = this.#text.slice(at, at + NEAR);
    if (rest.length < NEAR && !this.#final) return { kind: "more" };
    if (rest.length < NEAR && NAME_ALONE.test(rest)) return this.#over(this.#text.length);
    return { kind: "text", end: start + 1 };
  }

  #over(end: number): Outcome {
    if (this.#found.length === 0 && this.#open)
      this.#found.push({ name: "", args: {}, repaired: false, broken: CUT });
    return this.#calls(end, true);
  }

  #calls(end: number, cut: boolean): Outcome {
    if (this.#tools && this.#found.some(({ broken }) => broken !== undefined && broken !== CUT))
      return { kind: "text", end };
    return { kind: "calls", found: this.#found, end, cut };
  }
}

const partial = (rest: string): boolean =>
  rest.length < 40 &&
  [...OPENERS, ...CLOSERS].some((token) => token.length > rest.length && token.startsWith(rest));

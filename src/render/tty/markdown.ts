import { type Output, styleText } from "./output.ts";

export interface Inline {
  readonly shown: string;
  /** What may still become something: from a mark on that is not closed yet. */
  readonly rest: string;
}

const CODE = /^(`+)([^`].*?|)(?<!`)\1(?!`)/;
const BOLD = /^\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\*)/;

/** A longer text is no line of words; looking for marks in it would take too long. */
const LONGEST = 2000;

/** Words of one line: bold and code are set and lose their marks; a mark that nothing closes stays as it is. */
export function inlineText(text: string, whole: boolean, stream: Output): Inline {
  if (text.length > LONGEST) return { shown: text, rest: "" };
  let shown = "";
  let rest = text;
  for (;;) {
    const mark = rest.search(/`|\*/);
    if (mark === -1) return { shown: shown + rest, rest: "" };
    shown += rest.slice(0, mark);
    rest = rest.slice(mark);
    const set = setText(rest, stream);
    const held = set === undefined ? mayClose(rest) : set.length === rest.length;
    if (held && !whole) return { shown, rest };
    const { words, length } = set ?? literal(rest);
    shown += words;
    rest = rest.slice(length);
  }
}

interface SetText {
  readonly words: string;
  /** Of what it stands for. */
  readonly length: number;
}

function setText(text: string, stream: Output): SetText | undefined {
  const code = CODE.exec(text);
  if (code?.[2] !== undefined && code[2] !== "")
    return { words: styleText("cyan", code[2], { stream }), length: code[0].length };
  const bold = BOLD.exec(text);
  if (bold?.[1] === undefined) return undefined;
  return {
    words: styleText("bold", inlineText(bold[1], true, stream).shown, { stream }),
    length: bold[0].length,
  };
}

/** A bare star, or two before a blank, are what they are. */
const mayClose = (text: string): boolean => text.startsWith("`") || /^\*(?:$|\*(?:$|\S))/.test(text);

function literal(text: string): SetText {
  const words = /^(?:`+|\*+)/.exec(text)?.[0] ?? "";
  return { words, length: words.length };
}

import { type StyledText, span, type SpanStyle } from "./text-rows.ts";

/**
 * Bold, italic, struck-out text, code and links within one line, in linear time. Marks without a counterpart stay as
 * they are; in a line that is still being written (`open`), they count as closed at its end, so that nothing shown has
 * to be taken back.
 */
export function inlineSpans(line: string, open = false): readonly StyledText[] {
  const tokens = tokensOf(line, open);
  pairMarks(tokens, open);
  return styled(tokens);
}

type Token =
  | { readonly kind: "span"; readonly span: StyledText }
  | {
      readonly kind: "mark";
      readonly sign: string;
      readonly opens: boolean;
      readonly closes: boolean;
      /** The number of signs that stay as they are. */
      size: number;
      readonly starts: SpanStyle[];
      readonly ends: SpanStyle[];
    };
type Mark = Extract<Token, { kind: "mark" }>;

const PLAIN = /[^\\`*_~[!<]+/y;
const ESCAPED = /\\([!-/:-@[-`{-~])/y;
const RUN = /\*+|_+|~+/y;
const TICKS = /`+/y;
const LINK =
  /!?\[([^[\]]{1,300})\]\(\s{0,3}<?([^\s()<>]{1,600}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200})?)>?(?:\s{1,3}"[^"]{0,200}")?\s{0,3}\)/y;
const OPEN_LINK = /!?\[([^[\]]{1,300})\]\([^\s()]{0,600}$/y;
const ADDRESS = /<(https?:\/\/[^\s<>]{1,600})>/y;

function tokensOf(line: string, open: boolean): Token[] {
  const tokens: Token[] = [];
  /** Lengths of runs of backticks that are never closed. */
  const unclosed = new Set<number>();
  let at = 0;
  const match = (form: RegExp): RegExpExecArray | null => {
    form.lastIndex = at;
    return form.exec(line);
  };
  const take = (length: number, ...spans: readonly StyledText[]): void => {
    for (const each of spans) tokens.push({ kind: "span", span: each });
    at += length;
  };
  while (at < line.length) {
    const plain = match(PLAIN)?.[0];
    const literal = match(ESCAPED)?.[1];
    const run = match(RUN)?.[0];
    const ticks = match(TICKS)?.[0];
    if (plain !== undefined) take(plain.length, span(plain));
    else if (literal !== undefined) take(2, span(literal));
    else if (run !== undefined) {
      const token = markOf(line, at, run, open);
      if (token !== undefined) tokens.push(token);
      at += run.length;
    } else if (ticks !== undefined) take(...codeAt(line, at, ticks, { open, unclosed }));
    else {
      const link = linkIn(match, open);
      if (link === null) take(1, span(line[at] ?? ""));
      else take(link[0].length, ...linkSpans(link[1] ?? "", link[2]));
    }
  }
  return tokens;
}

const linkIn = (match: (form: RegExp) => RegExpExecArray | null, open: boolean): RegExpExecArray | null =>
  match(LINK) ?? match(ADDRESS) ?? (open ? match(OPEN_LINK) : null);

function linkSpans(words: string, address: string | undefined): readonly StyledText[] {
  if (address === undefined || address === words) return [span(words, "link")];
  return [span(words, "link"), span(` (${address})`, "dim")];
}

interface Ticks {
  readonly open: boolean;
  readonly unclosed: Set<number>;
}

function codeAt(line: string, at: number, ticks: string, { open, unclosed }: Ticks): [number, StyledText] {
  const from = at + ticks.length;
  const end = unclosed.has(ticks.length) ? -1 : closingTicks(line, from, ticks);
  if (end !== -1) return [end + ticks.length - at, span(trimmed(line.slice(from, end)), "code")];
  if (open) return [line.length - at, span(line.slice(from).replace(/`+$/, ""), "code")];
  unclosed.add(ticks.length);
  return [ticks.length, span(ticks)];
}

function closingTicks(line: string, from: number, ticks: string): number {
  for (let at = line.indexOf(ticks, from); at !== -1;) {
    let end = at;
    while (line[end] === "`") end += 1;
    if (end - at === ticks.length) return at;
    at = line.indexOf(ticks, end);
  }
  return -1;
}

/** One blank at both ends allows code to begin or end with backticks, and is removed. */
const trimmed = (code: string): string => (/^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code);

const isBlank = (character: string | undefined): boolean => character === undefined || /\s/.test(character);
const isWord = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/** Undefined for a mark at the end of what is written so far, whose meaning is still open. */
function markOf(line: string, at: number, run: string, open: boolean): Token | undefined {
  const sign = run[0] ?? "";
  const [before, behind] = [line[at - 1], line[at + run.length]];
  if (open && behind === undefined && isBlank(before)) return undefined;
  const isOne = sign === "~" ? run.length === 2 : run.length <= 3;
  if (!isOne) return { kind: "span", span: span(run) };
  const inside = sign === "_" && isWord(before) && isWord(behind);
  return {
    kind: "mark",
    sign,
    opens: !isBlank(behind) && !inside && !(sign === "_" && isWord(before)),
    closes: !isBlank(before) && !inside && !(sign === "_" && isWord(behind)),
    size: run.length,
    starts: [],
    ends: [],
  };
}

interface Opener {
  readonly token: Mark;
  readonly size: 1 | 2;
}

const styleOf = (sign: string, size: number): SpanStyle =>
  sign === "~" ? "strike" : size === 2 ? "bold" : "italic";

/** Each opener is pushed and popped once; there is no search for an opener that does not exist. */
function pairMarks(tokens: readonly Token[], open: boolean): void {
  const stack: Opener[] = [];
  const waiting = new Map<string, number>();
  const count = (sign: string, size: number, by: number): void => {
    const key = sign + String(size);
    waiting.set(key, (waiting.get(key) ?? 0) + by);
  };
  const waits = (sign: string, size: number): boolean => (waiting.get(sign + String(size)) ?? 0) > 0;
  const settle = ({ token, size }: Opener): void => {
    token.starts.push(styleOf(token.sign, size));
    token.size -= size;
  };
  const close = (mark: Mark): void => {
    while (mark.size > 0) {
      const fits = ([1, 2] as const).filter((size) => size <= mark.size && waits(mark.sign, size));
      if (fits.length === 0) return;
      for (;;) {
        const opener = stack.pop();
        if (opener === undefined) return;
        count(opener.token.sign, opener.size, -1);
        if (opener.token.sign !== mark.sign || !fits.includes(opener.size)) continue;
        settle(opener);
        mark.ends.push(styleOf(mark.sign, opener.size));
        mark.size -= opener.size;
        break;
      }
    }
  };
  for (const token of tokens) {
    if (token.kind === "span") continue;
    if (token.closes) close(token);
    if (!token.opens) continue;
    const sizes = token.size === 3 ? ([2, 1] as const) : token.size === 2 ? ([2] as const) : ([1] as const);
    for (const size of token.size === 0 ? [] : sizes) {
      stack.push({ token, size });
      count(token.sign, size, 1);
    }
  }
  if (!open) return;
  for (const opener of stack) settle(opener);
  // It may be the first half of a closing mark.
  const last = tokens.at(-1);
  if (last?.kind === "mark") last.size = 0;
}

/** A style within itself is one: the styles of a span are as many as there are kinds of marks. */
function styled(tokens: readonly Token[]): readonly StyledText[] {
  const spans: StyledText[] = [];
  const depths = new Map<SpanStyle, number>();
  let styles: readonly SpanStyle[] = [];
  const change = (style: SpanStyle, by: 1 | -1): void => {
    const depth = (depths.get(style) ?? 0) + by;
    depths.set(style, depth);
    if (depth === 0) styles = styles.filter((each) => each !== style);
    else if (depth === 1 && by === 1) styles = [...styles, style];
  };
  for (const token of tokens) {
    if (token.kind === "span") {
      spans.push({ text: token.span.text, styles: [...styles, ...token.span.styles] });
      continue;
    }
    for (const style of token.ends) change(style, -1);
    if (token.size > 0) spans.push({ text: token.sign.repeat(token.size), styles });
    for (const style of token.starts) change(style, 1);
  }
  return spans.filter(({ text }) => text !== "");
}

/**
 * Colours code line by line as it is written. A comment or string that spans lines is carried over to the next line, so
 * each line is read once. Recognizes comments, strings, numbers and keywords; that is enough for reading.
 */
export interface ColouredLine {
  readonly spans: readonly StyledText[];
  /** The end of the comment or string that is open at the end of the line. */
  readonly open: Open | undefined;
}

interface Open {
  readonly end: string;
  readonly style: SpanStyle;
}

export function colouredLine(line: string, name: string, before: Open | undefined): ColouredLine {
  if (name === "diff" || name === "patch") return { spans: [diffLine(line)], open: undefined };
  const language = languageOf(name);
  if (language === undefined) return { spans: [span(line)], open: undefined };
  const spans: StyledText[] = [];
  /** Quotes that are not closed in the rest of the line. */
  const unclosed = new Set<string>();
  let open = before;
  let at = 0;
  const take = (end: number, ...styles: readonly SpanStyle[]): void => {
    if (end > at) spans.push(span(line.slice(at, end), ...styles));
    at = end;
  };
  while (at < line.length) {
    if (open !== undefined) {
      const end = line.indexOf(open.end, at);
      take(end === -1 ? line.length : end + open.end.length, open.style);
      if (end !== -1) open = undefined;
      continue;
    }
    const block = language.blocks.find(([start]) => line.startsWith(start, at));
    if (block !== undefined) {
      const [start, end, style] = block;
      take(at + start.length, style);
      open = { end, style };
    } else take(...plainPart(line, at, language, unclosed));
  }
  return { spans, open };
}

function plainPart(
  line: string,
  at: number,
  language: Language,
  unclosed: Set<string>,
): [end: number, ...styles: SpanStyle[]] {
  const character = line[at] ?? "";
  if (isComment(line, at, language)) return [line.length, "comment"];
  if (language.quotes.includes(character)) return [quoteEnd(line, at, character, unclosed), "string"];
  const number = lengthOf(NUMBER, line, at);
  if (number > 0) return [at + number, "number"];
  const word = lengthOf(WORD, line, at);
  if (word > 0) return isKnown(line.slice(at, at + word), language) ? [at + word, "keyword"] : [at + word];
  return [at + Math.max(1, lengthOf(REST, line, at))];
}

const NUMBER = /\d[\w.]*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const REST = /[^\p{L}_$\d"'`/#<*-]+/uy;

/** SQL is written in upper or lower case. */
const isKnown = (word: string, language: Language): boolean =>
  language.words.has(language === SQL ? word.toLowerCase() : word);

/** A `#` within a word starts no comment. */
const isComment = (line: string, at: number, language: Language): boolean =>
  language.comment.some(
    (start) => line.startsWith(start, at) && (start !== "#" || at === 0 || /\s/.test(line[at - 1] ?? "")),
  );

function lengthOf(form: RegExp, line: string, at: number): number {
  form.lastIndex = at;
  return form.exec(line)?.[0].length ?? 0;
}

/** The end of a string. If an unclosed quote may be an apostrophe, only the quote itself counts. */
function quoteEnd(line: string, at: number, quote: string, unclosed: Set<string>): number {
  for (let end = at + 1; end < line.length && !unclosed.has(quote); end += 1) {
    if (line[end] === "\\") end += 1;
    else if (line[end] === quote) return end + 1;
  }
  unclosed.add(quote);
  return quote === '"' ? line.length : at + 1;
}

function diffLine(line: string): StyledText {
  if (line.startsWith("@@")) return span(line, "keyword");
  if (line.startsWith("+")) return span(line, "added");
  return line.startsWith("-") ? span(line, "removed") : span(line);
}

interface Language {
  readonly words: ReadonlySet<string>;
  readonly comment: readonly string[];
  /** Delimiters of multi-line parts, comments first. */
  readonly blocks: readonly (readonly [start: string, end: string, style: SpanStyle])[];
  readonly quotes: string;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const C_COMMENT = ["/*", "*/", "comment"] as const;

const C_WORDS =
  "as async auto await bool boolean break byte case catch char class const constexpr continue default defer delete do double else enum export extends extern false final finally float fn for foreach from func function go goto if impl implements import in inline instanceof int interface let long loop match mod move mut namespace new nil null nullptr of operator override package private protected pub public range readonly record ref return select self short signed sizeof static string struct super switch template this throw throws trait true try type typeof undefined union unsafe unsigned use using val var virtual void volatile when where while yield";

const C_LIKE: Language = {
  words: words(C_WORDS),
  comment: ["//"],
  blocks: [C_COMMENT, ["`", "`", "string"]],
  quotes: "\"'",
};

const PYTHON: Language = {
  words: words(
    "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
  ),
  comment: ["#"],
  blocks: [
    ['"""', '"""', "string"],
    ["'''", "'''", "string"],
  ],
  quotes: "\"'",
};

const SHELL: Language = {
  words: words(
    "alias begin break case cd class continue declare def do done echo elif else elsif end ensure esac eval exec exit export fi for function if in local module nil puts read require rescue return self set shift source then trap true false unless unset until when while yield COPY RUN FROM ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER ADD",
  ),
  comment: ["#"],
  blocks: [],
  quotes: "\"'",
};

const DATA: Language = {
  words: words("true false null yes no on off"),
  comment: ["#"],
  blocks: [],
  quotes: "\"'",
};
const JSON_LIKE: Language = { ...DATA, comment: ["//"], blocks: [C_COMMENT], quotes: '"' };
const SQL: Language = {
  words: words(
    "add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop else end exists foreign from group having if in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then union unique update using values view when where with",
  ),
  comment: ["--"],
  blocks: [C_COMMENT],
  quotes: "'\"",
};
const CSS: Language = { words: new Set(), comment: [], blocks: [C_COMMENT], quotes: "\"'" };
const MARKUP: Language = {
  words: new Set(),
  comment: [],
  blocks: [["<!--", "-->", "comment"]],
  quotes: '"',
};

const LANGUAGES: readonly (readonly [names: string, language: Language])[] = [
  [
    "js jsx ts tsx mjs cjs javascript typescript java c h cc cpp c++ hpp cs csharp go golang rust rs kotlin kt swift scala php dart zig groovy proto",
    C_LIKE,
  ],
  ["py python py3 pyi", PYTHON],
  [
    "sh bash zsh fish shell console shell-session ruby rb make makefile dockerfile perl pl r elixir ex",
    SHELL,
  ],
  ["yaml yml toml ini conf cfg properties env nix hcl tf", DATA],
  ["json jsonc json5 jsonl", JSON_LIKE],
  ["sql psql mysql sqlite", SQL],
  ["css scss less", CSS],
  ["html xml svg vue svelte", MARKUP],
];

/** Undefined for an unknown language, whose code stays uncoloured. */
function languageOf(name: string): Language | undefined {
  const wanted = name.toLowerCase();
  return LANGUAGES.find(([names]) => names.split(" ").includes(wanted))?.[1];
}

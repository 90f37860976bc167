import { type Span, span, type SpanStyle } from "./span-rows.ts";

/**
 * Colours code line by line as it is written. A comment or string that spans lines is carried over to the next line, so
 * each line is read once. Recognizes comments, strings, numbers and keywords; that is enough for reading.
 */
export interface ColouredLine {
  readonly spans: readonly Span[];
  /** The end of the comment or string that is open at the end of the line. */
  readonly open: Open | undefined;
}

interface Open {
  readonly end: string;
  readonly style: SpanStyle;
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

const NUMBER = /\d[\w.]*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const REST = /[^\p{L}_$\d"'`/#<*-]+/uy;

export function colouredLine(line: string, name: string, before: Open | undefined): ColouredLine {
  if (name === "diff" || name === "patch") return { spans: [diffLine(line)], open: undefined };
  const language = languageOf(name);
  if (language === undefined) return { spans: [span(line)], open: undefined };
  const spans: Span[] = [];
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

function diffLine(line: string): Span {
  if (line.startsWith("@@")) return span(line, "keyword");
  if (line.startsWith("+")) return span(line, "added");
  return line.startsWith("-") ? span(line, "removed") : span(line);
}

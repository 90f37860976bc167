import type { ChunkKind } from "../search-store.ts";

/** Marks: where the parts of a text begin. Those of Markdown and shell scripts are found here, by lines. */

/** Maximum length of a piece in UTF-16 units. A declaration of up to this length stays whole. */
export const MAX_COUNT = 2500;

/** The beginning of a part of a text; the part ends at the next mark. Marks ascend. */
export interface Mark {
  readonly at: number;
  readonly kind: ChunkKind;
  /** The names declared here, or else those of the surrounding declaration. */
  readonly names: readonly string[];
  /** Whether the names are declared here. */
  readonly own: boolean;
  /** The name of the surrounding declaration, "" at the top level. */
  readonly scope: string;
}

/** The whole lines of a declaration, as the packer joins and splits them. */
export interface DeclarationPart extends Omit<Mark, "at"> {
  readonly start: number;
  readonly end: number;
}

/** Whether only blanks precede `at` on its line. */
export const opensLine = (text: string, at: number): boolean => lineStart(text, at) !== -1;

/** The start of the line that contains `at`, or -1 if more than blanks precede `at`. */
function lineStart(text: string, at: number): number {
  let place = at;
  while (place > 0) {
    const code = text.charCodeAt(place - 1);
    if (code === 10) return place;
    if (code !== 32 && code !== 9 && code !== 13 && code !== 12) return -1;
    place -= 1;
  }
  return 0;
}

/** Whether an empty line lies between. Some grammars end a comment after its line feed. */
export function isSeparated(text: string, end: number, start: number): boolean {
  const between = text.slice(end, start);
  const first = between.indexOf("\n");
  return first !== -1 && (between.includes("\n", first + 1) || text.charCodeAt(end - 1) === 10);
}

/** The kind of several parts together. */
export function jointKind(kinds: readonly ChunkKind[]): ChunkKind {
  const [first = "code"] = kinds;
  if (kinds.every((kind) => kind === first)) return first;
  if (first === "class" && kinds.every((kind) => kind === "method" || kind === "class" || kind === "code"))
    return "class";
  return kinds.every((kind) => kind === "method" || kind === "code") && kinds.includes("method")
    ? "method"
    : "code";
}

const unique = (names: readonly string[]): readonly string[] =>
  names.length < 2 ? names : [...new Set(names)];

/** The names that several parts declare, or else the names of the surrounding declaration. */
export function jointNames(parts: readonly Pick<DeclarationPart, "names" | "own" | "kind">[]): {
  readonly names: readonly string[];
  readonly own: boolean;
} {
  const own = parts.some((part) => part.own);
  const naming = own
    ? parts.filter((part) => part.own || part.kind === "function" || part.kind === "method")
    : parts;
  return { names: unique(naming.flatMap((part) => part.names)), own };
}

/**
 * Turns marks into parts that begin at line starts. A mark behind other code on its line belongs to the part before,
 * along with its names.
 */
export function partsOf(text: string, marks: readonly Mark[]): readonly DeclarationPart[] {
  const groups: { at: number; marks: Mark[] }[] = [];
  for (const mark of marks) {
    const last = groups.at(-1);
    const start = lineStart(text, mark.at);
    if (last === undefined) groups.push({ at: 0, marks: [mark] });
    else if (start <= last.at) last.marks.push(mark);
    else groups.push({ at: start, marks: [mark] });
  }
  return groups.map(({ at, marks: own }, index) => {
    const end = groups[index + 1]?.at ?? text.length;
    const [first] = own;
    if (first !== undefined && own.length === 1) return { ...first, start: at, end };
    const kinds = own.filter((mark) => mark.own).map((mark) => mark.kind);
    const kind = kinds.length === 0 ? (first?.kind ?? "code") : jointKind(kinds);
    return { start: at, end, kind, scope: first?.scope ?? "", ...jointNames(own) };
  });
}

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const ATX = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const SETEXT = /^ {0,3}(=+|-+)[ \t]*$/;
/** Lines that are no paragraph: a line of hyphens below them is a rule or a table, not a title. */
const NO_PARAGRAPH = /^(?: {4}|\t| {0,3}(?:[-*+>|#]|\d+[.)]\s|<))/;

/** A longer line is no title: on hostile text the patterns above and `plainTitle` could take hours. */
const MAX_TITLE_LENGTH = 1000;

interface Line {
  readonly at: number;
  readonly text: string;
}

function* linesOf(text: string): Generator<Line> {
  let at = 0;
  while (at < text.length) {
    const found = text.indexOf("\n", at);
    const end = found === -1 ? text.length : found;
    yield { at, text: text.slice(at, text[end - 1] === "\r" ? end - 1 : end) };
    at = end + 1;
  }
}

/** The title of a section as readers see it: without links, emphasis and code marks. */
const plainTitle = (title: string): string =>
  title
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]+/g, "")
    .replaceAll(/\s*\{#[^}]*\}\s*$/g, "")
    .trim()
    .slice(0, 200);

/**
 * Sections named by their titles, each with the titles above it. A `#` in fenced code is no title; underlined titles
 * count.
 */
export function sectionMarks(text: string): readonly Mark[] {
  const outline = new Outline();
  let before: Line | undefined;
  const code = new Code(/^---[ \t]*\r?\n/.test(text));
  for (const line of linesOf(text)) {
    const title = code.takes(line) || isLong(line) ? undefined : titleOf(line, before);
    before = title === undefined && !code.inside && !isLong(line) ? line : undefined;
    if (title !== undefined) outline.open(title);
  }
  return outline.marks;
}

const isLong = ({ text }: Line): boolean => text.length > MAX_TITLE_LENGTH;

interface Title {
  readonly at: number;
  readonly level: number;
  readonly text: string;
}

class Outline {
  readonly marks: Mark[] = [{ at: 0, kind: "section", names: [], own: false, scope: "" }];
  readonly #titles: string[] = [];

  open({ at, level, text }: Title): void {
    this.#titles.length = Math.min(this.#titles.length, level - 1);
    while (this.#titles.length < level - 1) this.#titles.push("");
    const scope = joinTitles(this.#titles);
    this.#titles.push(plainTitle(text));
    const name = joinTitles(this.#titles);
    this.marks.push({ at, kind: "section", names: name === "" ? [] : [name], own: true, scope });
  }
}

const joinTitles = (titles: readonly string[]): string => titles.filter((one) => one !== "").join(" > ");

/** Recognizes fenced code, and front matter between lines of hyphens. */
class Code {
  /** Whether the last line was part of code or front matter. */
  inside = false;
  #fence = "";
  #matter: boolean;

  constructor(matter: boolean) {
    this.#matter = matter;
  }

  takes(line: Line): boolean {
    this.inside = true;
    const edge = FENCE.exec(line.text);
    if (this.#matter) this.#matter = line.at === 0 || !/^(?:---|\.\.\.)[ \t]*$/.test(line.text);
    else if (this.#fence !== "") this.#fence = closes(edge, this.#fence) ? "" : this.#fence;
    else if (opensFence(edge)) this.#fence = edge[1];
    else this.inside = false;
    return this.inside;
  }
}

const closes = (edge: RegExpExecArray | null, fence: string): boolean =>
  edge?.[1]?.startsWith(fence) === true && edge[2]?.trim() === "";

/** A line that also has the closing backticks is inline code. */
const opensFence = (edge: RegExpExecArray | null): edge is RegExpExecArray & { 1: string } =>
  edge?.[1] !== undefined && !(edge[1].startsWith("`") && edge[2]?.includes("`") === true);

function titleOf(line: Line, before: Line | undefined): Title | undefined {
  const atx = ATX.exec(line.text);
  if (atx?.[1] !== undefined) return { at: line.at, level: atx[1].length, text: atx[2] ?? "" };
  const under = SETEXT.exec(line.text)?.[1];
  if (under === undefined || before === undefined) return undefined;
  if (before.text.trim() === "" || NO_PARAGRAPH.test(before.text)) return undefined;
  return { at: before.at, level: under.startsWith("=") ? 1 : 2, text: before.text };
}

/** `function name {`, `name() {`, and the cases of bats: `@test "title" {`. The bracket may stand on the next line. */
const OPENINGS: readonly RegExp[] = [
  /^(?<indent>[ \t]*)function[ \t]+(?<name>[^\s(){}'"$;]+)[ \t]*(?:\(\s*\))?[ \t]*(?<body>[{(].*)?$/,
  /^(?<indent>[ \t]*)(?<name>[^\s(){}'"$;#=]+)[ \t]*\([ \t]*\)[ \t]*(?<body>[{(].*)?$/,
  /^(?<indent>[ \t]*)@test[ \t]+["'](?<name>.+)["'][ \t]*(?<body>\{.*)$/,
];
const IMPORT = /^(?:source|\.)[ \t]+\S/;

interface ShellFunction {
  readonly name: string;
  readonly indent: string;
  /** Whether the function ends on the line where it begins. */
  readonly closed: boolean;
}

/**
 * The marks of a shell script, found by lines: a function ends with the first closing bracket at the indentation of its
 * name. The shell grammar in the parser's package is more exact but takes half a gigabyte to compile.
 */
export function shellMarks(text: string): readonly Mark[] {
  const script = new Script();
  let at = 0;
  for (const line of text.split("\n")) {
    script.line(line.trimEnd(), at);
    at += line.length + 1;
  }
  return script.marks;
}

class Script {
  readonly marks: Mark[] = [{ at: 0, kind: "code", names: [], own: false, scope: "" }];
  #inside: ShellFunction | undefined;
  /** Where the comment directly above begins, or -1. */
  #comment = -1;
  /** Whether the next statement begins another part: after a function, after an empty line. */
  #fresh = false;

  line(line: string, at: number): void {
    if (this.#inside !== undefined) this.#body(line, this.#inside);
    else if (line === "") this.#pause();
    else if (line.startsWith("#")) {
      if (this.#comment === -1) this.#comment = at;
    } else this.#statement(line, this.#comment === -1 ? at : this.#comment);
  }

  #body(line: string, { indent }: ShellFunction): void {
    if (!line.startsWith(`${indent}}`) && !line.startsWith(`${indent})`)) return;
    this.#inside = undefined;
    this.#fresh = true;
  }

  #pause(): void {
    if (this.#comment !== -1) this.#mark(this.#comment, "code");
    this.#comment = -1;
    this.#fresh = true;
  }

  #statement(line: string, at: number): void {
    const opened = shellFunctionAt(line);
    if (opened !== undefined) this.#mark(at, "function", opened.name);
    else if (IMPORT.test(line)) this.#mark(at, "imports");
    else if (this.#begins(line)) this.#mark(at, "code");
    this.#inside = opened?.closed === false ? opened : undefined;
    this.#fresh = opened?.closed === true || IMPORT.test(line);
    this.#comment = -1;
  }

  /** Whether a statement opens another part; an indented one does so only after a function. */
  #begins(line: string): boolean {
    const top = !/^[\s})]/.test(line);
    return (top && this.#comment !== -1) || (this.#fresh && (top || this.marks.at(-1)?.own === true));
  }

  #mark(at: number, kind: ChunkKind, name?: string): void {
    this.marks.push({
      at,
      kind,
      names: name === undefined ? [] : [name],
      own: name !== undefined,
      scope: "",
    });
  }
}

function shellFunctionAt(line: string): ShellFunction | undefined {
  if (line.length > 500) return undefined;
  for (const form of OPENINGS) {
    const { name, indent = "", body = "" } = form.exec(line)?.groups ?? {};
    if (name !== undefined) return { name, indent, closed: /[)}]\s*(?:#.*)?$/.test(body) };
  }
  return undefined;
}

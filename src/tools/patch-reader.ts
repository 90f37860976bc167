/** Reads a patch in either notation, a unified diff or what stands between *** Begin Patch and *** End Patch. */

import { textOfBytes } from "../core/raw-data.ts";

type ReadPatch =
  | { readonly kind: "patch"; readonly files: readonly FilePatch[] }
  | { readonly kind: "mistake"; readonly why: string };

const ENVELOPE = /^\*\*\* (?:Begin Patch|Add File: |Update File: |Delete File: )/m;

/** A patch in either notation. */
export function readPatch(text: string): ReadPatch {
  const lines = linesOf(text.toWellFormed());
  try {
    const files = ENVELOPE.test(lines.join("\n")) ? readEnvelope(lines) : readUnified(lines);
    if (files.length > 0) return { kind: "patch", files };
    return { kind: "mistake", why: `no file is named in this patch. ${FORM}` };
  } catch (thrown) {
    if (!(thrown instanceof PatchMistake)) throw thrown;
    return { kind: "mistake", why: thrown.message };
  }
}

const FORM =
  "Send *** Begin Patch, *** Update File: path, lines that begin with a space, - or +, *** End Patch; or a unified diff";

/** If every line ends in a carriage return, these come from the transport and are not part of the patch. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.at(-1);
  const sent = lines.slice(0, -1);
  const carried = sent.length > 0 && sent.every((line) => line.endsWith("\r"));
  const all = last === "" ? sent : lines;
  return carried ? all.map((line) => line.replace(/\r$/, "")) : all;
}

const SECTION_HEAD = /^\*\*\* (Add|Update|Delete) File: (.+)$/;
const MOVE = /^\*\*\* Move to: (.+)$/;
const END_OF_FILE = /^\*\*\* End of File\s*$/;
const BEGIN = /^\*\*\* Begin Patch\s*$/;
const END = /^\*\*\* End Patch\s*$/;

/** The notation between `*** Begin Patch` and `*** End Patch`; text around it is ignored. */
function readEnvelope(lines: readonly string[]): readonly FilePatch[] {
  const begin = lines.findIndex((line) => BEGIN.test(line));
  const end = lines.findLastIndex((line) => END.test(line));
  const inner = lines.slice(begin + 1, end > begin ? end : lines.length);
  const heads = [...inner.keys()].filter((index) => SECTION_HEAD.test((inner[index] ?? "").trimEnd()));
  const stray = inner.slice(0, heads[0] ?? inner.length).find((line) => line.trim() !== "");
  if (begin >= 0 && stray !== undefined)
    throw new PatchMistake(`"${stray}" stands before any *** Add, Update or Delete File: line`);
  return heads.map((at, index) =>
    section(inner[at] ?? "", inner.slice(at + 1, heads[index + 1] ?? inner.length)),
  );
}

function section(head: string, body: readonly string[]): FilePatch {
  const [, kind, path = ""] = SECTION_HEAD.exec(head.trimEnd()) ?? [];
  if (kind === "Add") return { what: "add", path, hunks: [added(path, body)] };
  if (kind === "Delete") {
    const more = body.find((line) => line.trim() !== "");
    if (more === undefined) return { what: "delete", path, hunks: [] };
    throw new PatchMistake(`${path}: "${more}" stands below *** Delete File`);
  }
  const to = MOVE.exec((body[0] ?? "").trimEnd())?.[1];
  if (to !== undefined) return { what: "update", path, to, hunks: hunksOf(path, body.slice(1)) };
  const hunks = hunksOf(path, body);
  if (hunks.length === 0) throw new PatchMistake(`${path}: nothing stands below its name`);
  return { what: "update", path, hunks };
}

function added(path: string, body: readonly string[]): Hunk {
  const end = body.findLastIndex((line) => line.startsWith("+"));
  const lines = body.slice(0, end + 1).map((line): HunkLine => {
    if (line.startsWith("+")) return { mark: "+", text: line.slice(1) };
    throw new PatchMistake(`${path}: each line of an added file begins with +, but one is "${line}"`);
  });
  const stray = body.slice(end + 1).find((line) => line.trim() !== "" && !END_OF_FILE.test(line));
  if (stray !== undefined)
    throw new PatchMistake(`${path}: each line of an added file begins with +, but one is "${stray}"`);
  return { anchors: [], lines, atEnd: false };
}

interface OpenHunk {
  readonly anchors: string[];
  readonly lines: HunkLine[];
  atEnd: boolean;
}

function hunksOf(path: string, body: readonly string[]): readonly Hunk[] {
  const hunks: OpenHunk[] = [];
  const opened = (): OpenHunk => {
    const hunk = { anchors: [], lines: [], atEnd: false };
    hunks.push(hunk);
    return hunk;
  };
  for (const line of withoutBlankTail(body)) {
    const last = hunks.at(-1);
    if (line.startsWith("@@")) (last?.lines.length === 0 ? last : opened()).anchors.push(...anchorIn(line));
    else if (!END_OF_FILE.test(line))
      (last === undefined || last.atEnd ? opened() : last).lines.push(lineIn(path, line));
    else if (last !== undefined) last.atEnd = true;
  }
  return hunks.filter(({ lines }) => lines.length > 0);
}

function anchorIn(line: string): readonly string[] {
  const anchor = line
    .replace(/^@@ ?/, "")
    .replace(/ ?@@\s*$/, "")
    .trimEnd();
  return anchor === "" || RANGE.test(anchor) ? [] : [anchor];
}

function lineIn(path: string, line: string): HunkLine {
  const read = hunkLine(line);
  if (read !== undefined) return read;
  throw new PatchMistake(`${path}: each line of a hunk begins with a space, - or +, but one is "${line}"`);
}

/** Line numbers of a unified diff inside the other notation. */
const RANGE = /^-\d+(?:,\d+)? \+\d+(?:,\d+)?(?: @@.*)?$/;

function withoutBlankTail(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex((line) => line.trim() !== "" || line.startsWith(" ")) + 1);
}

/** A patch, independent of its notation. */
export interface FilePatch {
  readonly what: "add" | "update" | "delete";
  /** The path as written in the patch. */
  readonly path: string;
  /** The new path, when the file is moved. */
  readonly to?: string;
  /** New permissions, if the patch sets them. */
  readonly mode?: number;
  /** An added file has one hunk without a position. */
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  /** Position in the old file, from 0; undefined when the notation has no numbers. */
  readonly at?: number;
  /** Lines that occur above the hunk, in this order. */
  readonly anchors: readonly string[];
  readonly lines: readonly HunkLine[];
  /** The hunk ends at the end of the file. */
  readonly atEnd: boolean;
  /**
   * Whether the old and the new text end with a newline, from `\ No newline at end of file`; undefined when that line
   * is missing.
   */
  readonly newline?: { readonly old: boolean; readonly young: boolean };
}

interface HunkLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

/** A mistake in a patch, and what to send instead. Caught where patches are read and where they are applied. */
export class PatchMistake extends Error {
  override readonly name = "PatchMistake";
}

/** The mark in front of a line of a hunk; an empty line is a blank line of both texts. */
function hunkLine(line: string): HunkLine | undefined {
  const mark = line[0] ?? " ";
  if (mark === " " || mark === "-" || mark === "+") return { mark, text: line.slice(1) };
  return line === "\r" ? { mark: " ", text: "\r" } : undefined;
}

/** The headers above a file's hunks. */
interface Head {
  readonly old?: string;
  readonly young?: string;
  readonly from?: string;
  readonly to?: string;
  readonly mode?: number;
  readonly gone: boolean;
  readonly fresh: boolean;
}

const EMPTY: Head = { gone: false, fresh: false };

/** A unified diff as diff and git write it, and as models write it with wrong counts. */
function readUnified(lines: readonly string[]): readonly FilePatch[] {
  const files: FilePatch[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lineAt(lines, at);
    if (!line.startsWith("diff --git ") && !isFileHead(lines, at)) {
      if (isHunkHead(line))
        throw new PatchMistake(`"${line}" stands before any --- and +++ lines that name a file`);
      at += 1;
      continue;
    }
    const { head, end } = headAt(lines, at);
    const hunks: Hunk[] = [];
    at = end;
    for (let next = notBlank(lines, at); isHunkHead(lineAt(lines, next)); next = notBlank(lines, at)) {
      const { hunk, end } = hunkAt(lines, next);
      hunks.push(hunk);
      at = end;
    }
    files.push(fileOf(head, hunks));
  }
  return files;
}

function notBlank(lines: readonly string[], at: number): number {
  let next = at;
  while (lines[next]?.trim() === "") next += 1;
  return next;
}

interface ReadHead {
  readonly head: Head;
  readonly end: number;
}

function headAt(lines: readonly string[], start: number): ReadHead {
  const { head, end } = gitHeadAt(lines, start);
  if (!isFileHead(lines, end)) return { head, end };
  const [old, young] = [pathIn(lineAt(lines, end).slice(4)), pathIn(lineAt(lines, end + 1).slice(4))];
  return { head: { ...head, ...pathPair(old, young) }, end: end + 2 };
}

function gitHeadAt(lines: readonly string[], start: number): ReadHead {
  const names = /^diff --git ([^\n]*)$/.exec(lineAt(lines, start))?.[1];
  if (names === undefined) return { head: EMPTY, end: start };
  let head = { ...EMPTY, ...namesOfGit(names) };
  let end = start + 1;
  for (; end < lines.length; end += 1) {
    const fields = gitLine(lineAt(lines, end), names);
    if (fields === undefined) break;
    head = { ...head, ...fields };
  }
  return { head, end };
}

/** One of git's extended header lines. */
function gitLine(line: string, names: string): Partial<Head> | undefined {
  if (/^(?:GIT binary patch|Binary files )/.test(line))
    throw new PatchMistake(`${names}: a binary file cannot be patched`);
  const [, key = "", value = ""] =
    /^(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|index|similarity index|dissimilarity index) (.*?)\r?$/.exec(
      line,
    ) ?? [];
  switch (key) {
    case "":
      return undefined;
    case "new mode":
      return { mode: modeOf(value) };
    case "new file mode":
      return { fresh: true, mode: modeOf(value) };
    case "deleted file mode":
      return { gone: true };
    case "rename from":
      return { from: pathIn(value) };
    case "rename to":
      return { to: pathIn(value) };
    case "copy from":
    case "copy to":
      throw new PatchMistake("copies are not supported: add the new file with its whole content");
    default:
      return {};
  }
}

function modeOf(text: string): number {
  if (!/^100[0-7]{3}$/.test(text))
    throw new PatchMistake(`mode ${text}: only ordinary files can be patched, no links and no submodules`);
  return Number.parseInt(text.slice(-3), 8);
}

/** `a/x b/x`: both halves are equal except for their first letter. */
function namesOfGit(text: string): Partial<Head> {
  const half = (text.trimEnd().length - 1) / 2;
  const [one, other] = [text.slice(0, half), text.slice(half + 1).trimEnd()];
  const names = pathPair(pathIn(one), pathIn(other));
  return names.old === names.young ? names : {};
}

function fileOf({ old, young, from, to, mode, gone, fresh }: Head, hunks: readonly Hunk[]): FilePatch {
  const [before, after] = [from ?? old, to ?? young];
  if (before === undefined || after === undefined)
    throw new PatchMistake("a file of the patch has no name: --- a/path and +++ b/path are missing");
  if (after === NOTHING || gone) return { what: "delete", path: before, hunks };
  const about = { ...(mode === undefined ? {} : { mode }), hunks };
  if (before === NOTHING || fresh) return { what: "add", path: after, ...about };
  return before === after
    ? { what: "update", path: before, ...about }
    : { what: "update", path: before, to: after, ...about };
}

const LETTERS: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
};

/** A file name as diffs write it: quoted like a C string, or followed by a tab and a time. */
const pathIn = (text: string): string =>
  text.startsWith('"') ? unquoted(text) : (text.split("\t", 1)[0] ?? "").replace(/\r$/, "").trimEnd();

const NOTHING = "/dev/null";

/** Both names without the prefixes a/ and b/. If only one has its prefix, the prefix is a folder's name. */
function pathPair(old: string, young: string): { readonly old: string; readonly young: string } {
  const lettered = (old === NOTHING || old.startsWith("a/")) && (young === NOTHING || young.startsWith("b/"));
  return lettered ? { old: stripSidePrefix(old), young: stripSidePrefix(young) } : { old, young };
}

const stripSidePrefix = (path: string): string => (path === NOTHING ? path : path.slice(2));

function unquoted(text: string): string {
  const inner = /^"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
  const bytes = Array.from(inner.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g), ([, octal, letter, plain = ""]) =>
    octal === undefined
      ? letter === undefined
        ? [...Buffer.from(plain, "utf8")]
        : [LETTERS[letter] ?? letter.charCodeAt(0)]
      : [Number.parseInt(octal, 8) % 256],
  );
  return textOfBytes(Buffer.from(bytes.flat()));
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
/** A hunk header without numbers, as in the other notation: the text after it is a line above the hunk. */
const BARE = /^@@(?: (.*?))?(?: @@)?\s*$/;
const NO_NEWLINE = /^\\ /;

const isHunkHead = (line: string): boolean => line.startsWith("@@");

const lineAt = (lines: readonly string[], at: number): string => lines[at] ?? "";

const isFileHead = (lines: readonly string[], at: number): boolean =>
  lineAt(lines, at).startsWith("--- ") && lineAt(lines, at + 1).startsWith("+++ ");

interface Counts {
  readonly old: number;
  readonly young: number;
}

interface Body {
  readonly lines: readonly HunkLine[];
  readonly newline?: { readonly old: boolean; readonly young: boolean };
  readonly end: number;
}

/** Reads the hunk whose header is at `at`. */
function hunkAt(lines: readonly string[], at: number): { readonly hunk: Hunk; readonly end: number } {
  const head = lineAt(lines, at);
  const numbers = HEAD.exec(head);
  if (numbers === null) {
    const anchor = BARE.exec(head)?.[1] ?? "";
    const { end, ...body } = bodyOf(lines, at + 1, looseEnd(lines, at + 1));
    return { hunk: { anchors: anchor === "" ? [] : [anchor], atEnd: false, ...body }, end };
  }
  const [old, young] = [Number(numbers[2] ?? 1), Number(numbers[4] ?? 1)];
  const first = Number(numbers[1]);
  const body = countedBody(lines, at + 1, { old, young }) ?? bodyOf(lines, at + 1, looseEnd(lines, at + 1));
  const { end, ...found } = body;
  // A range of zero lines names the line before it.
  return {
    hunk: { at: old === 0 ? first : Math.max(0, first - 1), anchors: [], atEnd: false, ...found },
    end,
  };
}

/** The body, if the counts in its header are right. */
function countedBody(lines: readonly string[], start: number, counts: Counts): Body | undefined {
  let end = countedEnd(lines, start, counts);
  if (end === undefined) return undefined;
  if (NO_NEWLINE.test(lineAt(lines, end))) end += 1;
  return isBehind(lines, end) ? bodyOf(lines, start, end) : undefined;
}

function countedEnd(lines: readonly string[], start: number, counts: Counts): number | undefined {
  let { old, young } = counts;
  let end = start;
  for (; old > 0 || young > 0; end += 1) {
    if (NO_NEWLINE.test(lineAt(lines, end))) continue;
    const mark = end < lines.length ? hunkLine(lineAt(lines, end))?.mark : undefined;
    if (mark === undefined) return undefined;
    old -= mark === "+" ? 0 : 1;
    young -= mark === "-" ? 0 : 1;
  }
  return old < 0 || young < 0 ? undefined : end;
}

/** Whether the hunk has ended, possibly followed by blank lines; `-- ` ends a mail. */
function isBehind(lines: readonly string[], at: number): boolean {
  let next = at;
  while (next < lines.length && lineAt(lines, next).trim() === "") next += 1;
  const line = lineAt(lines, next);
  return line === "" || line === "-- " || isFileHead(lines, next) || hunkLine(line) === undefined;
}

const isInside = (lines: readonly string[], at: number): boolean =>
  at < lines.length &&
  !isFileHead(lines, at) &&
  (hunkLine(lineAt(lines, at)) !== undefined || NO_NEWLINE.test(lineAt(lines, at)));

/** What may follow a hunk: another hunk, another file, or text around the patch. */
const FOLLOWS = /^(?:@@|diff|Index:|Only in|```|---|$)/;

/** The end of a body whose header has wrong counts. */
function looseEnd(lines: readonly string[], start: number): number {
  let end = start;
  while (isInside(lines, end)) end += 1;
  const next = lineAt(lines, end);
  if (!FOLLOWS.test(next))
    throw new PatchMistake(`each line of a hunk begins with a space, - or +, but one is "${next}"`);
  while (end > start && lineAt(lines, end - 1) === "") end -= 1;
  return end;
}

function bodyOf(lines: readonly string[], start: number, end: number): Body {
  const body = lines.slice(start, end);
  const read = body.flatMap((line) => (NO_NEWLINE.test(line) ? [] : (hunkLine(line) ?? [])));
  const marks = body.flatMap((line, index) => (NO_NEWLINE.test(line) ? [body[index - 1]?.[0] ?? " "] : []));
  if (marks.length === 0) return { lines: read, end };
  const newline = { old: !marks.some((mark) => mark !== "+"), young: !marks.some((mark) => mark !== "-") };
  return { lines: read, newline, end };
}

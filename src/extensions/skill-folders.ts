/** Skills: folders with a SKILL.md, from the user or from a trusted project. Nothing of them is run here. */
import type { Dirent } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { formatSize } from "../core/wording.ts";
import { errorCode, reasonOf } from "../core/errors.ts";
import { isDependencies, isInside } from "../core/file-names.ts";
import { readRegular } from "../platform/safe-files.ts";
import { utf8In } from "../core/raw-data.ts";

/** The owner. What a project brings is trusted, but still not the user's own word. */
export type Origin = "user" | "project";

export interface SkillFile {
  /** Relative to the skill's folder. */
  readonly path: string;
  readonly bytes: () => Promise<Uint8Array>;
}

export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly origin: Origin;
  /** Its SKILL.md, for people. */
  readonly place: string;
  readonly body: string;
  /** The model may use the skill on its own initiative. */
  readonly offered: boolean;
  /** A person may use the skill as a slash command. */
  readonly typed: boolean;
  /** What to call its arguments. */
  readonly hint: string;
  /** All files except its SKILL.md, and the entries that are left out. */
  readonly files: () => Promise<{ readonly files: readonly SkillFile[]; readonly left: readonly string[] }>;
}

export interface Problem {
  readonly file: string;
  readonly why: string;
}

export interface FoundExtensions<T> {
  readonly all: readonly T[];
  readonly problems: readonly Problem[];
}

/** Merges finds from several places: the first of each name wins, and a mere copy of it is not a problem. */
export function firstOfEachName<T extends { readonly name: string; readonly place: string }>(
  found: readonly FoundExtensions<T>[],
  isCopy: (one: T, other: T) => boolean,
): FoundExtensions<T> {
  const byName = new Map<string, T>();
  const problems = found.flatMap((each) => each.problems);
  for (const one of found.flatMap(({ all }) => all)) {
    const key = one.name.toLowerCase();
    const first = byName.get(key);
    if (first === undefined) byName.set(key, one);
    else if (!isCopy(first, one))
      problems.push({ file: one.place, why: `${first.name} already exists: ${first.place} is used` });
  }
  return { all: [...byName.values()], problems };
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAINS = ["SKILL.md", "skill.md"];
const MAX_MAIN = 256 * 1024;
const MAX_FOLDERS = 200;

type SkillWords = Omit<Skill, "origin" | "place" | "files">;

/** The content of its SKILL.md, or why the file is not a skill. */
export function readSkill(text: string, folder: string): SkillWords | string {
  if (Buffer.byteLength(text) > MAX_MAIN) return `it is larger than ${formatSize(MAX_MAIN)}`;
  const read = readFrontMatter(text);
  if (typeof read === "string") return read;
  const { values, body } = read;
  const name = [values.get("name")?.trim() ?? "", folder].find((each) => NAME.test(each));
  if (name === undefined) return "its name cannot be typed: use letters, digits, - . _";
  const description = values.get("description")?.trim() ?? "";
  if (description === "") return "its front matter has no description";
  if (body.trim() === "") return "it has no text";
  const offered = values.get("disable-model-invocation")?.toLowerCase() !== "true";
  const typed = values.get("user-invocable")?.toLowerCase() !== "false";
  return { name, description, body: body.trim(), offered, typed, hint: values.get("argument-hint") ?? "" };
}

/** The skills in one of the user's folders. Files that a run could have written in `workspace` do not count. */
export async function ownSkills(folder: string, workspace: string): Promise<FoundExtensions<Skill>> {
  const all: Skill[] = [];
  const { entries, problems: unread } = await entriesOf(folder);
  const problems: Problem[] = [...unread];
  if (entries.length > MAX_FOLDERS)
    problems.push({
      file: folder,
      why: `it has ${entries.length} entries; only the first ${MAX_FOLDERS} are used`,
    });
  for (const { name } of entries.slice(0, MAX_FOLDERS)) {
    if (name.startsWith(".")) continue;
    const skill = await ownSkill(path.join(folder, name), workspace);
    if (skill === undefined) continue;
    if ("why" in skill) problems.push(skill);
    else all.push(skill);
  }
  return { all, problems };
}

/** Undefined if the folder is not a skill. The user's links to a skill are followed, links inside a skill are not. */
async function ownSkill(folder: string, workspace: string): Promise<Skill | Problem | undefined> {
  for (const main of MAINS) {
    const file = path.join(folder, main);
    const real = await realpath(file).catch(() => undefined);
    if (real === undefined) continue;
    if (!MAINS.includes(path.basename(real)))
      return { file, why: "it is a link to a file with another name" };
    if (isInside(workspace, real)) return { file, why: WRITABLE };
    const read = await readText(real, MAX_MAIN);
    const words = typeof read === "string" ? readSkill(read, path.basename(folder)) : read.why;
    if (typeof words === "string") return { file, why: words };
    const top = path.dirname(real);
    return { ...words, origin: "user", place: file, files: () => filesBelow(top, path.basename(real)) };
  }
  return undefined;
}

export const WRITABLE = "it lies in the workspace, where a run may have written it";

/** One of the user's text files, or why it is not text. */
export async function readText(file: string, max: number): Promise<string | { readonly why: string }> {
  try {
    const bytes = await readRegular(file, { links: "refuse", max });
    return textOf(bytes) ?? { why: NO_TEXT };
  } catch (thrown) {
    return { why: `it cannot be read: ${reasonOf(thrown)}` };
  }
}

export const NO_TEXT = "it is not text";

/** Undefined if the bytes are not text. */
export const textOf = (bytes: Uint8Array): string | undefined =>
  bytes.includes(0) ? undefined : utf8In(bytes);

/** Sorted by name; empty if the folder does not exist; with the problem if it cannot be read. */
export async function entriesOf(
  folder: string,
): Promise<{ readonly entries: readonly Dirent[]; readonly problems: readonly Problem[] }> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return { entries: entries.toSorted((one, other) => (one.name < other.name ? -1 : 1)), problems: [] };
  } catch (thrown) {
    const code = errorCode(thrown);
    const absent = code === "ENOENT" || code === "ENOTDIR";
    const why = `it cannot be read: ${reasonOf(thrown)}`;
    return { entries: [], problems: absent ? [] : [{ file: folder, why }] };
  }
}

const MAX_FILES = 200;
const MAX_BYTES = 4 * 2 ** 20;
const MAX_DEPTH = 6;

/** Regular files only: no links, no hidden files, no installed dependencies. */
async function filesBelow(top: string, main: string): ReturnType<Skill["files"]> {
  const found: string[] = [];
  const left: string[] = [];
  const waiting = [""];
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    const { entries, problems } = await entriesOf(path.join(top, at));
    if (problems.length > 0) left.push(at);
    for (const entry of entries) {
      const file = at === "" ? entry.name : `${at}/${entry.name}`;
      if (entry.name.startsWith(".") || isDependencies(entry.name) || file === main) continue;
      const full = found.length + waiting.length >= MAX_FILES;
      if (entry.isDirectory() && file.split("/").length < MAX_DEPTH && !full) waiting.push(file);
      else if (entry.isFile() && !full) found.push(file);
      else if (left.length < MAX_FILES) left.push(file);
    }
  }
  return { files: found.toSorted().map((each) => fileAt(top, each)), left };
}

const fileAt = (top: string, file: string): SkillFile => ({
  path: file,
  bytes: async () => {
    const at = path.join(top, file);
    if ((await realpath(at)) !== at) throw new Error("it is a link now");
    return readRegular(at, { links: "refuse", max: MAX_BYTES });
  },
});

interface ProjectFile {
  /** Relative to the project's top. */
  readonly path: string;
  readonly text: string;
  /** Set if the file is not text. */
  readonly bytes?: number | undefined;
}

/** The skills in a project's trusted files, as trusted. `folders` in the order of their precedence. */
export function projectSkills<T extends ProjectFile>(
  files: readonly T[],
  folders: readonly string[],
  bytes: (file: T) => Promise<Uint8Array>,
): FoundExtensions<Skill> {
  const found = skillFoldersOf(files, folders).map(({ folder, own, main }): FoundExtensions<Skill> => {
    if (main === undefined) return { all: [], problems: [] };
    const words = main.bytes === undefined ? readSkill(main.text, path.posix.basename(folder)) : NO_TEXT;
    if (typeof words === "string") return { all: [], problems: [{ file: main.path, why: words }] };
    const others = own
      .filter((file) => file !== main)
      .map((file) => ({ path: file.path.slice(folder.length + 1), bytes: () => bytes(file) }));
    const copied = { files: others, left: [] };
    const skill: Skill = {
      ...words,
      origin: "project",
      place: main.path,
      files: () => Promise.resolve(copied),
    };
    return { all: [skill], problems: [] };
  });
  return { all: found.flatMap(({ all }) => all), problems: found.flatMap(({ problems }) => problems) };
}

/** Each skill's folder with its files; files outside such folders belong to none. */
export function skillFoldersOf<T extends ProjectFile>(
  files: readonly T[],
  folders: readonly string[],
): readonly { readonly folder: string; readonly own: readonly T[]; readonly main: T | undefined }[] {
  return folders.flatMap((top) => {
    const below = files.filter((file) => file.path.startsWith(`${top}/`));
    const byFolder = Object.groupBy(
      below.filter((file) => file.path.slice(top.length + 1).includes("/")),
      (file) => `${top}/${file.path.slice(top.length + 1).split("/", 1)[0] ?? ""}`,
    );
    return Object.entries(byFolder).map(([folder, own = []]) => {
      const main = MAINS.flatMap((name) => own.find((file) => file.path === `${folder}/${name}`) ?? [])[0];
      return { folder, own, main };
    });
  });
}

/**
 * The front matter of a skill or command: keys with values between two lines of `---`. Supports the YAML that such
 * files use at their top level: plain, quoted, literal and folded texts, also over several lines. Nested content (a
 * list, a map) is returned as written, and so is text that is an error in YAML but that people mean as words: `a: b:
 * c`, `[name]`. Anchors, tags and types mean nothing.
 */
export interface FrontMatter {
  /** In the order of the file. */
  readonly values: ReadonlyMap<string, string>;
  /** The text after the front matter. */
  readonly body: string;
}

const MAX_CHARACTERS = 16_384;
const MAX_LINES = 400;

/** A text without front matter is all body. Returns the reason if the front matter cannot be read. */
export function readFrontMatter(text: string): FrontMatter | string {
  const whole = text.replace(/^\uFEFF/, "");
  if (!/^---[ \t]*\r?\n/.test(whole)) return { values: new Map(), body: whole };
  const lines: string[] = [];
  let at = whole.indexOf("\n") + 1;
  for (;;) {
    const end = whole.indexOf("\n", at);
    const line = whole.slice(at, end === -1 ? undefined : end).replace(/\r$/, "");
    const isEnd = /^(?:---|\.\.\.)[ \t]*$/.test(line);
    if (isEnd) return withValues(lines, end === -1 ? "" : whole.slice(end + 1));
    if (end === -1) return "its front matter has no end: a line of --- is missing";
    lines.push(line);
    at = end + 1;
    if (lines.length > MAX_LINES || at > MAX_CHARACTERS) return "its front matter is too long";
  }
}

/** Keys begin at the start of their line; their names are those of programs, not of people. */
const KEY = /^(?:([A-Za-z_][\w.-]*)|"([\w.-]+)"|'([\w.-]+)')[ \t]*:(?:[ \t]+(.*)|)$/;

function withValues(lines: readonly string[], body: string): FrontMatter | string {
  const values = new Map<string, string>();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    at += 1;
    if (/^[ \t]*(?:#|$)/.test(line)) continue;
    const match = KEY.exec(line);
    if (match === null) return `line ${at + 1} of its front matter is not "key: value"`;
    const key = match[1] ?? match[2] ?? match[3] ?? "";
    if (values.has(key)) return `its front matter has ${key} twice`;
    const from = at;
    while (at < lines.length && isContinuation(lines[at] ?? "")) at += 1;
    values.set(key, valueOf((match[4] ?? "").trim(), lines.slice(from, at)));
  }
  return { values, body };
}

/** A line that belongs to the key above: indented, empty, or an item of a list. */
const isContinuation = (line: string): boolean => /^(?:[ \t]|-[ \t]|-?$)/.test(line);

const BLOCK = /^([|>])([+-]?)[1-9]?([+-]?)(?:[ \t]+#.*)?$/;

function valueOf(first: string, more: readonly string[]): string {
  const block = BLOCK.exec(first);
  if (block !== null) return blockText(more, block[1] === ">");
  const sign = first[0];
  if (sign === '"' || sign === "'") {
    const quoted = quotedText([first, ...more.map((line) => line.trim())], sign);
    if (quoted !== undefined) return quoted;
  }
  if (first === "" && more.some((line) => /^[ \t]*-(?:[ \t]|$)/.test(line))) return more.join("\n").trim();
  return folded([first, ...more].map(withoutComment)).trim();
}

/** `#` starts a comment only after a blank, or at the start of the line. */
const withoutComment = (line: string): string =>
  line
    .trim()
    .replace(/(?:^|[ \t])#.*$/, "")
    .trimEnd();

/** One line end becomes a blank; several become one fewer. */
function folded(lines: readonly string[]): string {
  let text = "";
  let empty = 0;
  for (const line of lines) {
    if (line === "") empty += 1;
    else {
      text += text === "" ? line : `${empty === 0 ? " " : "\n".repeat(empty)}${line}`;
      empty = 0;
    }
  }
  return text;
}

function blockText(block: readonly string[], folds: boolean): string {
  const indent = /^[ \t]*/.exec(block.find((line) => line.trim() !== "") ?? "")?.[0].length ?? 0;
  const lines = block.map((line) => (line.trim() === "" ? "" : line.slice(Math.min(indent, indentOf(line)))));
  return (folds ? foldedBlock(lines) : lines.join("\n")).trim();
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Like `folded`, but lines with further indentation stay as they are. */
function foldedBlock(lines: readonly string[]): string {
  let text = "";
  let empty = 0;
  let before = "";
  for (const line of lines) {
    if (line === "") {
      empty += 1;
      continue;
    }
    const kept = /^[ \t]/.test(line) || /^[ \t]/.test(before);
    if (text !== "") text += kept ? "\n".repeat(empty + 1) : empty === 0 ? " " : "\n".repeat(empty);
    text += line;
    before = line;
    empty = 0;
  }
  return text;
}

/** The meaning of a backslash with a letter; other letters stay as written. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "", e: "" };

/** Undefined if text follows the closing quote: then the quotes are part of the text. */
function quotedText(lines: readonly string[], sign: '"' | "'"): string | undefined {
  const text = folded(lines).slice(1);
  let found = "";
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (letter === sign && sign === "'" && text[at + 1] === "'") at += 1;
    else if (letter === sign) return /^[ \t]*(?:#.*)?$/s.test(text.slice(at + 1)) ? found : undefined;
    if (letter !== "\\" || sign === "'") {
      found += letter;
      continue;
    }
    const { read, length } = escapeAt(text, at + 1);
    found += read;
    at += length;
  }
  return undefined;
}

const CODE = /^(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8}))/;

function escapeAt(text: string, at: number): { readonly read: string; readonly length: number } {
  const match = CODE.exec(text.slice(at, at + 9));
  const code = Number.parseInt(match?.[1] ?? match?.[2] ?? match?.[3] ?? "", 16);
  if (match !== null && code <= 0x10ffff)
    return { read: String.fromCodePoint(code), length: match[0].length };
  const letter = text[at] ?? "";
  return { read: ESCAPES[letter] ?? letter, length: 1 };
}

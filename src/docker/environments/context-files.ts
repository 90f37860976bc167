/**
 * Files of a build's context that COPY and ADD of a Dockerfile name. Nothing of the host outside the context is read:
 * no link is followed, in the context or on the way to it, and only regular files are opened.
 */
import { createHash } from "node:crypto";
import { lstat, readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { formatSize } from "../../core/wording.ts";
import { readRegular } from "../../platform/safe-files.ts";

export interface ContextFile {
  /** Relative to the project's top. */
  readonly path: string;
  /** Relative to the source that names the file; the file's own name if the source is the file itself. */
  readonly below: string;
  readonly sha256: string;
  readonly executable: boolean;
  readonly bytes: Uint8Array;
}

/** What one source of COPY means: single files, or the content of a folder; or a text that says why it is not taken. */
type ContextSource = readonly ContextMatch[] | string;

export interface ContextMatch {
  readonly isFolder: boolean;
  readonly files: readonly ContextFile[];
}

export type Context = ReadonlyMap<string, ContextSource>;

const MAX_FILES = 500;
const MAX_NAMES = 5000;
const MAX_FILE = 16 * 2 ** 20;
const MAX_ALL = 48 * 2 ** 20;
const MAX_DEPTH = 16;
const MAX_IGNORE = 2 ** 18;

class NotTaken extends Error {}

interface ContextPlace {
  /** The project's top, a real path. */
  readonly top: string;
  /** The context's folder, relative to the top; empty if it is the top. */
  readonly folder: string;
  /** Relative to the top; the Dockerfile's own ignore list takes precedence over the context's. */
  readonly dockerfile: string;
}

export async function readContext(place: ContextPlace, sources: readonly string[]): Promise<Context> {
  const reading = new ContextReader(place);
  const found = new Map<string, ContextSource>();
  for (const source of sources) if (!found.has(source)) found.set(source, await reading.source(source));
  return found;
}

class ContextReader {
  readonly #place: ContextPlace;
  readonly #steps = new MatchSteps();
  readonly #read = new Map<string, Omit<ContextFile, "below">>();
  #ignored: ((file: string, steps: MatchSteps) => boolean) | undefined;
  #bytes = 0;
  #namesSeen = 0;

  constructor(place: ContextPlace) {
    this.#place = place;
  }

  async source(source: string): Promise<ContextSource> {
    try {
      this.#ignored ??= await this.#readIgnoreList();
      const names = source.split("/").filter((name) => name !== "" && name !== ".");
      if (names.includes("..")) throw new NotTaken("it leads out of the build's context");
      if (this.#place.folder === "" && (names.length === 0 || names.join("/") === "*"))
        throw new NotTaken("it is the whole workspace, which set-up commands see as it is");
      const matches: ContextMatch[] = [];
      for (const match of await this.#expanded("", names)) matches.push(await this.#match(match));
      const some = matches.filter(({ files }) => files.length > 0);
      if (some.length === 0)
        throw new NotTaken("the build's context has nothing of this name, or leaves it out");
      return some;
    } catch (thrown) {
      if (thrown instanceof NotTaken || thrown instanceof TooManySteps) return thrown.message;
      throw thrown;
    }
  }

  /** Paths relative to the context's folder. */
  async #expanded(before: string, names: readonly string[]): Promise<readonly string[]> {
    const [name, ...rest] = names;
    if (name === undefined) return [before];
    const at = (each: string): string => (before === "" ? each : `${before}/${each}`);
    if (!isPattern(name)) return this.#expanded(at(name), rest);
    const glob = globOf(name, false);
    if (glob === undefined) throw new NotTaken(`${name} is not a valid pattern`);
    const found: string[] = [];
    for (const each of (await this.#names(before)).filter((one) => glob.matches(one, this.#steps)))
      found.push(...(await this.#expanded(at(each), rest)));
    return found;
  }

  async #match(file: string): Promise<ContextMatch> {
    const stats = file === "" ? undefined : await this.#look(file);
    if (stats === "missing") return { isFolder: false, files: [] };
    if (stats === "file") {
      const read = this.#isIgnored(file) ? [] : [{ ...(await this.#file(file)), below: path.basename(file) }];
      return { isFolder: false, files: read };
    }
    const files: ContextFile[] = [];
    await this.#folder(file, file === "" ? "" : `${file}/`, files);
    return { isFolder: true, files };
  }

  async #folder(folder: string, top: string, into: ContextFile[]): Promise<void> {
    if (folder.split("/").length > MAX_DEPTH) throw new NotTaken(`${folder} is nested too deeply`);
    for (const name of await this.#names(folder)) {
      const file = folder === "" ? name : `${folder}/${name}`;
      const kind = await this.#look(file);
      if (kind === "folder") await this.#folder(file, top, into);
      else if (kind === "file" && !this.#isIgnored(file))
        into.push({ ...(await this.#file(file)), below: file.slice(top.length) });
    }
  }

  async #names(folder: string): Promise<readonly string[]> {
    const at = path.join(this.#place.top, this.#place.folder, folder);
    if ((await realpath(at).catch(() => at)) !== at)
      throw new NotTaken(
        `${folder === "" ? "its context" : folder} is a link, or a folder on the way to it is`,
      );
    const there: readonly string[] = await readdir(at).catch(() => []);
    const names = there.toSorted();
    this.#namesSeen += names.length;
    if (this.#namesSeen > MAX_NAMES) throw new NotTaken(`there are more than ${MAX_NAMES} names to look at`);
    return names;
  }

  async #look(file: string): Promise<"file" | "folder" | "missing"> {
    const stats = await lstat(path.join(this.#place.top, this.#place.folder, file)).catch(
      (thrown: unknown) => {
        if (["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return undefined;
        throw new NotTaken(`${file} cannot be inspected: ${reasonOf(thrown)}`);
      },
    );
    if (stats === undefined) return "missing";
    if (stats.isDirectory()) return "folder";
    if (this.#isIgnored(file)) return "file";
    if (stats.isSymbolicLink()) throw new NotTaken(`${file} is a link`);
    if (!stats.isFile()) throw new NotTaken(`${file} is a pipe or a device, not a file`);
    return "file";
  }

  #isIgnored(file: string): boolean {
    return this.#ignored?.(file, this.#steps) === true;
  }

  async #file(file: string): Promise<Omit<ContextFile, "below">> {
    const there = this.#read.get(file);
    if (there !== undefined) return there;
    if (this.#read.size >= MAX_FILES) throw new NotTaken(`more than ${MAX_FILES} files would be taken`);
    // Each file becomes a line of a list, and its name is shown.
    if (/[\p{Cc}\uFFFD]|^ | $/u.test(file) || file.length > 300) throw new NotTaken("a file has an odd name");
    const from = path.posix.join(this.#place.folder, file);
    const read = await readBelow(this.#place.top, from).catch((thrown: unknown) => {
      throw thrown instanceof NotTaken ? thrown : new NotTaken(`${file} cannot be read: ${reasonOf(thrown)}`);
    });
    this.#bytes += read.bytes.length;
    if (this.#bytes > MAX_ALL) throw new NotTaken(`more than ${formatSize(MAX_ALL)} would be taken`);
    this.#read.set(file, read);
    return read;
  }

  async #readIgnoreList(): Promise<(file: string, steps: MatchSteps) => boolean> {
    const { top, folder, dockerfile } = this.#place;
    for (const name of [`${dockerfile}.dockerignore`, path.posix.join(folder, ".dockerignore")]) {
      const text = await readRegular(path.join(top, name), { links: "refuse", max: MAX_IGNORE }).catch(
        (thrown: unknown) => {
          if (errorCode(thrown) === "ENOENT") return undefined;
          throw new NotTaken(`${name} cannot be read: ${reasonOf(thrown)}`);
        },
      );
      if (text !== undefined) return ignoredBy(text.toString("utf8"));
    }
    return () => false;
  }
}

/** Reads a file of the project, with its hash and mode; no link may be on the way to it. */
async function readBelow(top: string, file: string): Promise<Omit<ContextFile, "below">> {
  const at = path.join(top, file);
  if (
    file.startsWith("..") ||
    path.isAbsolute(file) ||
    (await realpath(path.dirname(at))) !== path.dirname(at)
  )
    throw new NotTaken(`a folder on the way to ${file} is a link`);
  const bytes = await readRegular(at, { links: "refuse", max: MAX_FILE });
  const executable = ((await lstat(at)).mode & 0o111) !== 0;
  return { path: file, bytes, executable, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** The bytes of a file that a recipe pins by its hash; rejects a file with another hash, or outside the project. */
export async function pinnedBytes(
  top: string,
  file: { readonly path: string; readonly sha256: string },
): Promise<Uint8Array> {
  const { bytes, sha256 } = await readBelow(top, file.path);
  if (sha256 !== file.sha256) throw new Error(`${file.path} has changed since the recipe was made`);
  return bytes;
}

/**
 * Patterns of a .dockerignore and of COPY, as Docker reads them. A repository wrote them: matching counts its steps,
 * and never uses a regular expression, which could take for ever.
 */

type Token =
  | { readonly kind: "char"; readonly char: string }
  | { readonly kind: "class"; readonly holds: (char: string) => boolean }
  /** `?`, `*` within one name, `**` across names, and `**` with the slash after it: folders, or none. */
  | { readonly kind: "one" | "name" | "any" | "folders" };

export class TooManySteps extends Error {}

/** The steps of all matching for one reading of a repository. */
export class MatchSteps {
  #left: number;

  constructor(most = 100_000_000) {
    this.#left = most;
  }

  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0) throw new TooManySteps("its patterns take too long to match");
  }
}

const MAX_PATTERN = 500;

interface Glob {
  readonly matches: (path: string, steps: MatchSteps) => boolean;
}

export const isPattern = (text: string): boolean => /[*?[\\]/.test(text);

/** `deep`: two stars cross folders, as in a .dockerignore. Undefined for an invalid pattern. */
export function globOf(pattern: string, deep: boolean): Glob | undefined {
  if (pattern.length > MAX_PATTERN) return undefined;
  const tokens = tokensOf(pattern, deep);
  if (tokens === undefined) return undefined;
  return {
    matches: (path, steps) => {
      let at = new Set([0]);
      for (const token of tokens) {
        steps.take(path.length + 1);
        at = advance(token, path, at);
        if (at.size === 0) return false;
      }
      return at.has(path.length);
    },
  };
}

function tokensOf(pattern: string, deep: boolean): readonly Token[] | undefined {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length;) {
    const char = pattern[at] ?? "";
    const next =
      char === "*"
        ? stars(pattern, at, deep)
        : char === "[" || char === "\\"
          ? quotedOf(pattern, at)
          : plainToken(char, at);
    if (next === undefined) return undefined;
    tokens.push(next.token);
    at = next.end;
  }
  return tokens;
}

interface Next {
  readonly token: Token;
  readonly end: number;
}

const plainToken = (char: string, at: number): Next => ({
  token: char === "?" ? { kind: "one" } : { kind: "char", char },
  end: at + 1,
});

function stars(pattern: string, at: number, deep: boolean): Next {
  const [all = "*"] = /^\*+/.exec(pattern.slice(at)) ?? [];
  const end = at + all.length;
  if (!deep || all.length === 1) return { token: { kind: "name" }, end };
  return pattern[end] === "/"
    ? { token: { kind: "folders" }, end: end + 1 }
    : { token: { kind: "any" }, end };
}

function quotedOf(pattern: string, at: number): Next | undefined {
  if (pattern[at] === "\\") {
    const char = pattern[at + 1];
    return char === undefined ? undefined : { token: { kind: "char", char }, end: at + 2 };
  }
  const end = pattern.indexOf("]", at + 2);
  if (end === -1) return undefined;
  return { token: { kind: "class", holds: classOf(pattern.slice(at + 1, end)) }, end: end + 1 };
}

function classOf(text: string): (char: string) => boolean {
  const not = text.startsWith("^") || text.startsWith("!");
  const body = not ? text.slice(1) : text;
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < body.length; at += 1) {
    const from = body[at] ?? "";
    const isRange = body[at + 1] === "-" && at + 2 < body.length;
    ranges.push([from, isRange ? (body[at + 2] ?? "") : from]);
    if (isRange) at += 2;
  }
  return (char) => char !== "/" && ranges.some(([from, to]) => char >= from && char <= to) !== not;
}

function advance(token: Token, path: string, from: ReadonlySet<number>): Set<number> {
  if (token.kind === "any" || token.kind === "folders" || token.kind === "name")
    return spread(token.kind, path, from);
  const to = new Set<number>();
  for (const at of from) {
    const char = path[at];
    if (char !== undefined && matchesChar(token, char)) to.add(at + 1);
  }
  return to;
}

/** All places where a row of any length can end that begins at one of these. */
function spread(kind: "any" | "folders" | "name", path: string, from: ReadonlySet<number>): Set<number> {
  const to = new Set<number>();
  let open = false;
  for (let at = Math.min(...from); at <= path.length; at += 1) {
    const isBehindSlash = path[at - 1] === "/";
    if (kind === "name" && isBehindSlash) open = false;
    const begins = from.has(at);
    if (begins || (open && (kind !== "folders" || isBehindSlash))) to.add(at);
    open ||= begins;
  }
  return to;
}

const matchesChar = (token: Token, char: string): boolean =>
  token.kind === "char" ? token.char === char : token.kind === "class" ? token.holds(char) : char !== "/";

const MAX_LINES = 500;

/** What a .dockerignore leaves out: the last line that matches the path or a folder above it counts. */
export function ignoredBy(text: string): (path: string, steps: MatchSteps) => boolean {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#") && line.trim() !== "");
  if (lines.length > MAX_LINES) throw new TooManySteps(`its .dockerignore has more than ${MAX_LINES} lines`);
  const rules = lines.flatMap((line) => {
    const not = line.trim().startsWith("!");
    const pattern = normalizePattern(not ? line.trim().slice(1).trim() : line.trim());
    const glob = globOf(pattern, true);
    return glob === undefined || pattern === "" ? [] : [{ glob, not }];
  });
  return (path, steps) => {
    const ways = path.split("/").map((_, index, names) => names.slice(0, index + 1).join("/"));
    let ignored = false;
    for (const { glob, not } of rules)
      if (ignored === not && ways.some((way) => glob.matches(way, steps))) ignored = !not;
    return ignored;
  };
}

/** Without empty names, `.` and `..`. */
function normalizePattern(pattern: string): string {
  const names: string[] = [];
  for (const name of pattern.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === "..") names.pop();
    else names.push(name);
  }
  return names.join("/");
}

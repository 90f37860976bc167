import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { isInside } from "../../core/file-names.ts";
import { lstatIfThere, readSmall, refusedPathError } from "./safe-paths.ts";

/** What the files of a git directory say, read as data: where a `.git` file leads, and the configuration. Git is not run. */

/** Where a `.git` file leads. */
type PointerTarget =
  /** Another place in the workspace; it may not exist yet. */
  | { readonly kind: "inside"; readonly gitDir: string }
  /** A repository outside that names this workspace; `mount` holds all that git needs of it. */
  | { readonly kind: "outside"; readonly gitDir: string; readonly mount: string }
  | { readonly kind: "unsafe"; readonly why: string };

/**
 * Reads a pointer that anybody may have written. A target outside counts only if it looks like a git directory of the
 * same owner and itself names this worktree; anything else could be any folder of the host.
 */
export async function followPointer(pointer: string, root: string, uid: number): Promise<PointerTarget> {
  const text = await readSmall(pointer);
  const named = /^gitdir: ([^\n\r\0]+)[\n\r]*$/.exec(text ?? "")?.[1];
  if (named === undefined) return unreadablePointer(pointer, text, root);
  const gitDir = path.resolve(path.dirname(pointer), named);
  if (gitDir === root) throw refusedPathError(pointer, "makes the workspace itself a git directory");
  if (isInside(root, gitDir)) {
    if (gitDir.includes("\uFFFD")) throw refusedPathError(pointer, "leads to a path that is not valid UTF-8");
    return { kind: "inside", gitDir };
  }
  return outsideTarget(pointer, gitDir, root, uid);
}

/** Git takes line breaks for part of the path and ends it at a NUL: a path that git would follow inside is refused. */
function unreadablePointer(pointer: string, text: string | undefined, root: string): PointerTarget {
  const [line = ""] = (text ?? "").replace(/[\n\r]+$/, "").split("\0", 1);
  if (
    line.startsWith(GITDIR) &&
    isInside(root, path.resolve(path.dirname(pointer), line.slice(GITDIR.length)))
  )
    throw refusedPathError(pointer, "leads to a path with a line break or a NUL");
  return { kind: "unsafe", why: "it is not a gitdir line" };
}

const GITDIR = "gitdir: ";

async function outsideTarget(
  pointer: string,
  gitDir: string,
  root: string,
  uid: number,
): Promise<PointerTarget> {
  const unsafe = (why: string): PointerTarget => ({ kind: "unsafe", why: `${gitDir} ${why}` });
  if (!(await isGitDir(gitDir))) return unsafe("is not a git directory that can be read");
  const mount = (await namesWorktree(gitDir, pointer))
    ? await commonDir(gitDir)
    : await ownRepository(gitDir, pointer);
  if (mount === undefined) return unsafe("does not name this worktree in turn");
  if (isInside(mount, root) || isInside(mount, homedir())) return unsafe("lies above the workspace");
  for (const folder of new Set([mount, gitDir])) {
    if ((await realpath(folder).catch(() => "")) !== folder) return unsafe("is reached through a link");
    if ((await lstatIfThere(folder))?.uid !== uid) return unsafe("belongs to somebody else");
  }
  return { kind: "outside", gitDir, mount };
}

/** A linked worktree: its git directory holds the path of our pointer. */
const namesWorktree = async (gitDir: string, pointer: string): Promise<boolean> =>
  (await pathInGitFile(gitDir, "gitdir")) === pointer;

/** The main repository of a linked worktree, if it is where git itself would have put it. */
async function commonDir(gitDir: string): Promise<string | undefined> {
  const common = await pathInGitFile(gitDir, "commondir");
  if (common === undefined || path.dirname(gitDir) !== path.join(common, "worktrees")) return undefined;
  return (await isGitDir(common)) ? common : undefined;
}

/** A submodule: its configuration names our folder as its worktree. */
async function ownRepository(gitDir: string, pointer: string): Promise<string | undefined> {
  const entries = parseGitConfig((await readSmall(path.join(gitDir, "config"))) ?? "") ?? [];
  const worktree = entries.findLast(({ key }) => key === "core.worktree")?.value;
  const ours = worktree !== undefined && path.resolve(gitDir, worktree) === path.dirname(pointer);
  return ours && (await lstatIfThere(path.join(gitDir, "commondir"))) === undefined ? gitDir : undefined;
}

/** The path in a one-line file of a git directory. */
export async function pathInGitFile(gitDir: string, name: string): Promise<string | undefined> {
  const line = /^([^\n\r\0]+)[\n\r]*$/.exec((await readSmall(path.join(gitDir, name))) ?? "")?.[1];
  return line === undefined ? undefined : path.resolve(gitDir, line);
}

export async function isGitDir(folder: string): Promise<boolean> {
  const [head, objects, refs, common] = await Promise.all(
    ["HEAD", "objects", "refs", "commondir"].map((name) =>
      lstatIfThere(path.join(folder, name)).catch(() => undefined),
    ),
  );
  if (head?.isFile() !== true) return false;
  return common?.isFile() === true || (objects?.isDirectory() === true && refs?.isDirectory() === true);
}

/** One line of a git configuration: `section.name` or `section.Sub Section.name`, section and name in lower case. */
export interface ConfigEntry {
  readonly key: string;
  readonly value: string;
}

/** Undefined for a text that git itself would refuse. Nothing is included, expanded or run. */
export function parseGitConfig(text: string): readonly ConfigEntry[] | undefined {
  const entries: ConfigEntry[] = [];
  // Git accepts a name before the first section; the name has no meaning.
  let section = "";
  let rest = text.replace(/^\ufeff/, "");
  for (;;) {
    rest = rest.replace(/^(?:\s|[#;][^\n]*)+/, "");
    if (rest === "") return entries;
    if (rest.startsWith("[")) {
      const header = HEADER.exec(rest);
      if (header === null) return undefined;
      section = `${sectionName(header)}.`;
      rest = rest.slice(header[0].length);
      continue;
    }
    const name = /^([a-z][a-z0-9-]*)[ \t]*/i.exec(rest);
    if (name === null) return undefined;
    const read = readValue(rest.slice(name[0].length));
    if (read === undefined) return undefined;
    entries.push({ key: `${section}${(name[1] ?? "").toLowerCase()}`, value: read.value });
    rest = read.rest;
  }
}

const HEADER = /^\[([a-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]/i;

const sectionName = (header: RegExpExecArray): string => {
  const [, name = "", sub] = header;
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub.replace(/\\(.)/g, "$1")}`;
};

interface ReadValue {
  readonly value: string;
  readonly rest: string;
}

/** Reads the value after a name: quotes, escapes, continued lines and comments as in git. */
function readValue(text: string): ReadValue | undefined {
  if (text.startsWith("=")) return readText(text.replace(/^=[ \t]*/, ""));
  const end = /^[ \t\r]*(?:[#;][^\n]*)?(?:\n|$)/.exec(text);
  return end === null ? undefined : { value: "true", rest: text.slice(end[0].length) };
}

const ESCAPES = new Map([
  ["\\n", "\n"],
  ["\\t", "\t"],
  ["\\b", "\b"],
  ["\\\\", "\\"],
  ['\\"', '"'],
  ["\\\n", ""],
  ["\\\r\n", ""],
]);

const PIECE = /\\\r\n|\\[^]|"|\n|[#;][^\n"\\]*|[^"\\\n#;]+/y;

function readText(text: string): ReadValue | undefined {
  const piece = new RegExp(PIECE);
  let value = "";
  let kept = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at = piece.lastIndex) {
    const found = piece.exec(text)?.[0];
    const added = meaningOf(found, quoted);
    if (added === undefined) return undefined;
    if (added === END) return { value: value.slice(0, kept), rest: text.slice(at).replace(/^[^\n]+/, "") };
    if (found === '"') quoted = !quoted;
    // Looks at this piece only: earlier pieces were measured before, however many there are.
    const own = quoted || added !== found ? added : added.trimEnd();
    if (own !== "" || quoted || added !== found) kept = value.length + own.length;
    value += added;
  }
  return quoted ? undefined : { value: value.slice(0, kept), rest: "" };
}

const END = Symbol("end of the value");

/** What a piece adds to the value; undefined if git would stop with an error. */
function meaningOf(piece: string | undefined, quoted: boolean): string | typeof END | undefined {
  if (piece === undefined) return undefined;
  if (piece === "\n") return quoted ? undefined : END;
  if (/^[#;]/.test(piece)) return quoted ? piece : END;
  if (piece.startsWith("\\")) return ESCAPES.get(piece);
  return piece === '"' ? "" : piece;
}

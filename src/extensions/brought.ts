import { type Dirent, lstatSync, realpathSync, statSync } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { errorCode, reasonOf } from "../core/errors.ts";
import { formatSize } from "../core/wording.ts";
import { splitLines } from "../core/text/line-diff.ts";
import { skeletonOf } from "../core/file-names.ts";
import { dockerfileOf, filesInCommands, type NamedFiles } from "./named-files.ts";
import { NotRegularError, readRegular, TooLargeError } from "../platform/safe-files.ts";

/** The things in a repository that would take effect once it is trusted, read in a way that cannot harm the reader. */

interface BroughtKind {
  /** The name used by scripts. */
  readonly kind: string;
  readonly what: string;
  /** Possible places, relative to the project's top. If two exist at once, that is an error, except for folders. */
  readonly files: readonly string[];
  /**
   * The places are folders: everything below them counts, sorted by path. If a name occurs in several, the first folder
   * wins.
   */
  readonly folder?: true;
  /** Files that are not text count by their hash alone and are never parsed. */
  readonly binaries?: true;
  /** Further files that the file, in this folder, names: they belong to it, and are shown and recorded with it. */
  readonly names?: (text: string, folder: string) => NamedFiles;
  /** Chats and runs report an untrusted file of this kind by themselves; otherwise only code that looks for it does. */
  readonly isReported: boolean;
}

/** The harness's own folder, and those that other agents read too. */
const LAYOUTS = [".harness", ".agents", ".claude"];

/**
 * The table. A new kind needs a row here, and one in `src/app/project/project-effects.ts` that says what it would do.
 */
const BROUGHT = [
  { kind: "settings", what: "settings", files: [".harness/config.json"], isReported: true },
  {
    kind: "rules",
    what: "rules for commands",
    files: [".harness/policy.toml", ".harness/policy.json"],
    isReported: true,
  },
  { kind: "environment", what: "recipe of an environment", files: [".harness/env.json"], isReported: true },
  {
    kind: "devcontainer",
    what: "dev container",
    files: [".devcontainer/devcontainer.json", ".devcontainer.json"],
    names: dockerfileOf,
    isReported: false,
  },
  {
    kind: "skills",
    what: "skills",
    files: LAYOUTS.map((top) => `${top}/skills`),
    folder: true,
    binaries: true,
    isReported: false,
  },
  {
    kind: "commands",
    what: "commands",
    files: LAYOUTS.map((top) => `${top}/commands`),
    folder: true,
    isReported: false,
  },
  {
    kind: "mcp",
    what: "MCP servers",
    files: [".harness/mcp.json"],
    names: filesInCommands,
    isReported: true,
  },
  {
    kind: "shared-mcp",
    what: "MCP servers of any agent",
    files: [".mcp.json"],
    names: filesInCommands,
    isReported: false,
  },
  { kind: "hooks", what: "hooks", files: [".harness/hooks.json"], names: filesInCommands, isReported: true },
  { kind: "tools", what: "tools", files: [".harness/tools.json"], names: filesInCommands, isReported: true },
] as const satisfies readonly BroughtKind[];

export type Kind = (typeof BROUGHT)[number]["kind"];
export const rowOf = (kind: Kind): BroughtKind => BROUGHT.find((row) => row.kind === kind) ?? BROUGHT[0];

export interface BroughtFile {
  /** Relative to the project's top. */
  readonly path: string;
  /** Empty if the file is not text. */
  readonly text: string;
  /** Hash of the bytes that `text` was read from, in hexadecimal digits. */
  readonly sha256: string;
  /** The size of a file that is not text; left out for texts. */
  readonly bytes?: number | undefined;
}

/** The lines that a person is shown; a file that is not text, or too large to show, is represented by its hash. */
export const linesOf = ({ text, bytes, sha256 }: BroughtFile): readonly string[] =>
  bytes === undefined ? splitLines(text) : [`binary, ${bytes} bytes, sha256 ${sha256}; not shown\n`];

/** One kind that exists in the project: either completely, or the reason why it cannot take effect. */
export type Brought = { readonly kind: Kind } & (
  | { readonly usable: true; readonly files: readonly [BroughtFile, ...BroughtFile[]] }
  | { readonly usable: false; readonly path: string; readonly why: string }
);

export interface ProjectPlace {
  /** The real path of the project's top. */
  readonly top: string;
  readonly dev: string;
  readonly ino: string;
}

/**
 * Finds the project: the nearest folder with a `.harness`, or else with a dev container, from the workspace up to the
 * top of its repository. A folder of another owner ends the search. The home folder is not a project, because
 * everything there is the user's own. Undefined if there is no such folder. Nearly every command asks this at its start:
 * a dozen synchronous looks take less than one that waits for another thread.
 */
export function projectOf(workspace: string, home: string): ProjectPlace | undefined {
  const folders = foldersUp(workspace, realPathOf(home) ?? home);
  for (const name of [".harness", ".devcontainer", ".devcontainer.json", ".agents", ".claude"])
    for (const folder of folders) if (isThere(path.join(folder, name))) return placeOf(folder);
  const top = folders.at(-1);
  return top === undefined ? undefined : placeOf(top);
}

/** Folders above a project in the same repository that would be the project if that one was not nearer. */
export function projectsAbove({ top }: ProjectPlace, home: string): readonly ProjectPlace[] {
  return foldersUp(top, realPathOf(home) ?? home)
    .filter((folder) => folder !== top && isThere(path.join(folder, OWN_FOLDER)))
    .map(placeOf);
}

function placeOf(top: string): ProjectPlace {
  const { dev, ino } = statSync(top, { bigint: true });
  return { top, dev: String(dev), ino: String(ino) };
}

function realPathOf(folder: string): string | undefined {
  try {
    return realpathSync.native(folder);
  } catch {
    return undefined;
  }
}

/** The workspace and the folders above it within its repository. */
function foldersUp(workspace: string, home: string): readonly string[] {
  const start = realPathOf(workspace);
  if (start === undefined || start === home) return [];
  const { uid } = statSync(start);
  const folders: string[] = [];
  for (let folder = start; folder !== home; folder = path.dirname(folder)) {
    if (folder !== start && statSync(folder).uid !== uid) break;
    folders.push(folder);
    if (isThere(path.join(folder, ".git"))) return folders;
    if (path.dirname(folder) === folder) break;
  }
  return [start];
}

function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Finds files of the project that these files use beyond those they name; supplied by code that knows their language.
 */
export type Further = (
  kind: Kind,
  top: string,
  files: readonly BroughtFile[],
) => Promise<readonly BroughtFile[]>;

/** Everything in the table that the project has, or only the `wanted` kinds. */
export async function broughtBy(
  place: ProjectPlace | undefined,
  wanted: (row: BroughtKind) => boolean = () => true,
  further?: Further,
): Promise<readonly Brought[]> {
  if (place === undefined) return [];
  const each = await Promise.all(BROUGHT.filter(wanted).map(({ kind }) => broughtOf(place, kind, further)));
  return each.flatMap((brought) => brought ?? []);
}

/** One kind; undefined if the project does not have it. */
export async function broughtOf(
  { top }: ProjectPlace,
  kind: Kind,
  further?: Further,
): Promise<Brought | undefined> {
  const row = rowOf(kind);
  const present: string[] = [];
  for (const file of row.files) if (isThere(path.join(top, file))) present.push(file);
  const [main, second] = present;
  if (main === undefined) return undefined;
  const unusable = (file: string, why: string): Brought => ({ kind, usable: false, path: file, why });
  if (second !== undefined && row.folder !== true)
    return unusable(main, `${second} exists too, and only one can be used: remove one of them`);
  try {
    if (row.folder === true) return await foldersOf(top, present, kind);
    const file = await readInside(top, main);
    const named = await namedBy(top, file, row);
    const taken = (await further?.(kind, top, [file, ...named])) ?? [];
    return { kind, usable: true, files: [file, ...named, ...taken] };
  } catch (thrown) {
    if (thrown instanceof Unusable) return unusable(thrown.file, thrown.message);
    throw thrown;
  }
}

/**
 * The files that a file names, each once. What it names in the project's own folder and is not a file there stands for
 * any file of that folder.
 */
async function namedBy(
  top: string,
  { path: main, text }: BroughtFile,
  { names }: BroughtKind,
): Promise<readonly BroughtFile[]> {
  const { files, any } = names?.(text, path.dirname(main)) ?? { files: [], any: false };
  const paths = new Set(files.map((file) => path.relative(top, path.resolve(top, file))));
  const plain = [...paths].filter(
    (file) => !file.startsWith(`${OWN_FOLDER}/`) || isFile(path.join(top, file)),
  );
  const named: BroughtFile[] = [];
  for (const file of plain) named.push(await readInside(top, file));
  if (!any && plain.length === paths.size) return named;
  for (const file of await pathsBelow(top, [OWN_FOLDER], isOfAnotherKind))
    if (!paths.has(file)) named.push(await readInside(top, file, true));
  return named;
}

/** A link, or anything else that cannot be used, is refused where it is read. */
const isFile = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isDirectory() === false;

const OWN_FOLDER = ".harness";
const isOfAnotherKind = (file: string): boolean =>
  BROUGHT.some(({ files }) => (files as readonly string[]).includes(file));

const MAX_FILES = 200;
const MAX_DEPTH = 8;
/** Bytes of all files that are not text: as much as a box receives of one skill. */
const MAX_BINARIES = 4 * 2 ** 20;

/** Treats folders as one thing: adding, removing or renaming a file changes it. Empty folders count as missing. */
async function foldersOf(top: string, folders: readonly string[], kind: Kind): Promise<Brought | undefined> {
  const main = folders[0] ?? "";
  const files: BroughtFile[] = [];
  const bytes = { texts: 0, binaries: 0 };
  for (const file of await pathsBelow(top, folders)) {
    const read = await readInside(top, file, rowOf(kind).binaries);
    bytes.texts += Buffer.byteLength(read.text);
    bytes.binaries += read.bytes ?? 0;
    if (bytes.texts > MAX_BYTES)
      throw new Unusable(main, `its text files are larger than ${formatSize(MAX_BYTES)} in total`);
    if (bytes.binaries > MAX_BINARIES)
      throw new Unusable(main, `its binary files are larger than ${formatSize(MAX_BINARIES)} in total`);
    files.push(read);
  }
  const [first, ...others] = files;
  return first === undefined ? undefined : { kind, usable: true, files: [first, ...others] };
}

async function pathsBelow(
  top: string,
  folders: readonly string[],
  leaveOut: (file: string) => boolean = () => false,
): Promise<readonly string[]> {
  const paths: string[] = [];
  const waiting: string[] = [];
  for (const folder of folders) if (!(await isLinkIntoOther(top, folder, folders))) waiting.push(folder);
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    for (const entry of await entriesOf(top, at)) {
      const file = `${at}/${entry.name}`;
      if (leaveOut(file)) continue;
      if (entry.isDirectory()) waiting.push(file);
      else if (!entry.isSymbolicLink() || !(await isLinkIntoOther(top, file, folders))) paths.push(file);
      if (paths.length + waiting.length > MAX_FILES)
        throw new Unusable(folders[0] ?? "", `it has more than ${MAX_FILES} files`);
      if (file.split("/").length > MAX_DEPTH)
        throw new Unusable(file, `it is nested more than ${MAX_DEPTH} levels deep`);
    }
  }
  return paths.toSorted();
}

/**
 * A link into one of these folders: the target already counts under its own name. Agents' folders are often linked this
 * way.
 */
async function isLinkIntoOther(top: string, file: string, folders: readonly string[]): Promise<boolean> {
  const real = await realpath(path.join(top, file)).catch(() => "");
  if (real === path.join(top, file)) return false;
  return folders.some((folder) => `${real}/`.startsWith(`${path.join(top, folder)}/`));
}

/**
 * The entries of a folder that is reached without links. Names that are not UTF-8 are refused: they could not be told
 * apart.
 */
async function entriesOf(top: string, folder: string): Promise<readonly Dirent[]> {
  const at = path.join(top, folder);
  try {
    if ((await realpath(at)) !== at)
      throw new Unusable(folder, "it is a link, or one of its parent folders is");
    const entries = await readdir(at, { withFileTypes: true });
    const notUtf8 = entries.find(({ name }) => name.includes("\uFFFD"));
    if (notUtf8 !== undefined) throw new Unusable(`${folder}/${notUtf8.name}`, "its name is not UTF-8");
    return entries;
  } catch (thrown) {
    if (thrown instanceof Unusable) throw thrown;
    throw new Unusable(folder, errorCode(thrown) === "ENOTDIR" ? "it is not a folder" : whyUnread(thrown));
  }
}

/** Names that resemble one that counts, each with what is odd about it. */
export async function lookAlikesIn({ top }: ProjectPlace): Promise<readonly string[]> {
  const known = new Set(BROUGHT.flatMap(({ files }) => files).flatMap((file) => [file, path.dirname(file)]));
  const found: string[] = [];
  for (const folder of [".", ".devcontainer", ...LAYOUTS]) {
    const names = await readdir(path.join(top, folder)).catch(() => []);
    for (const name of names) {
      const file = path.join(folder, name);
      const resembled = skeletonOf(file);
      if (resembled !== "." && resembled !== file && known.has(resembled))
        found.push(`${file} is not ${resembled}, and is ignored`);
    }
  }
  return found.toSorted();
}

class Unusable extends Error {
  readonly file: string;

  constructor(file: string, why: string) {
    super(why);
    this.file = file;
  }
}

const MAX_BYTES = 2 ** 20;

/** Reads a file of the project itself: no links, and nothing but a regular file is opened. */
async function readInside(top: string, file: string, binaries = false): Promise<BroughtFile> {
  try {
    const bytes = await bytesInside(top, file);
    const sha256 = sha256Of(bytes);
    const text = binaries ? textOrUndefined(bytes) : decoded(bytes);
    return text === undefined
      ? { path: file, text: "", sha256, bytes: bytes.length }
      : { path: file, text, sha256 };
  } catch (thrown) {
    throw thrown instanceof Unusable ? thrown : new Unusable(file, whyUnread(thrown));
  }
}

export const sha256Of = (content: Uint8Array | string): string =>
  process.getBuiltinModule("node:crypto").createHash("sha256").update(content).digest("hex");

const decoded = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

/**
 * Undefined if the file is not text. A script that is not text is an error: it would run without anyone having read it.
 */
function textOrUndefined(bytes: Uint8Array): string | undefined {
  try {
    return decoded(bytes);
  } catch (thrown) {
    if (bytes[0] === HASH && bytes[1] === BANG) throw thrown;
    return undefined;
  }
}

const HASH = 0x23;
const BANG = 0x21;

async function bytesInside(top: string, file: string): Promise<Uint8Array> {
  if (file === "" || file.startsWith("..") || path.isAbsolute(file))
    throw new Unusable(file, "it is outside the project");
  const at = path.join(top, file);
  const real = await realpath(path.dirname(at));
  if (real !== path.dirname(at)) throw new Unusable(file, "one of its parent folders is a link");
  return readRegular(at, { links: "refuse", max: MAX_BYTES });
}

/** The trusted bytes; rejects if a file that is not text has changed since. */
export async function bytesOf(top: string, file: BroughtFile): Promise<Uint8Array> {
  if (file.bytes === undefined) return Buffer.from(file.text);
  const bytes = await bytesInside(top, file.path);
  if (sha256Of(bytes) !== file.sha256) throw new Unusable(file.path, "it has changed since it was trusted");
  return bytes;
}

function whyUnread(thrown: unknown): string {
  if (thrown instanceof TooLargeError)
    return `it is ${formatSize(thrown.size)}, larger than the limit of ${formatSize(MAX_BYTES)}`;
  if (thrown instanceof NotRegularError)
    return thrown.what === "folder" ? "it is a folder" : "it is a pipe or a device, not a file";
  const code = errorCode(thrown);
  if (code === "ELOOP" || code === "EMLINK") return "it is a link";
  if (code === "ENXIO") return "it is a socket or a device, not a file";
  if (code === "ENOENT") return "it does not exist";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "it is not UTF-8";
  return `it cannot be read: ${reasonOf(thrown)}`;
}

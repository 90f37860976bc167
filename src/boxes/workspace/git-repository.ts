import path from "node:path";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { readRegular } from "../../platform/safe-files.ts";
import { followPointer, parseGitConfig, pathInGitFile } from "./git-directory.ts";
import { lstatIfThere, readSmall, refusedPathError } from "./safe-paths.ts";

/** The repository of a folder, its author and its tracked files, read without running git. */

export interface FoundRepository {
  readonly worktree: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** The texts of config and config.worktree, if they exist. */
  readonly config: readonly string[];
}

interface Bounds {
  readonly workspace: string;
  /** The top of the repository around the workspace, or the workspace itself. */
  readonly top: string;
  readonly uid: number;
}

/** The repository that git would find from this folder upwards, never above the top; links are refused. */
export async function findRepository(
  { workspace, top, uid }: Bounds,
  folder: string,
): Promise<FoundRepository | undefined> {
  for (let worktree = path.resolve(folder); isInside(top, worktree); worktree = path.dirname(worktree)) {
    if ((await lstatIfThere(worktree))?.isDirectory() !== true)
      throw refusedPathError(worktree, "is not a folder");
    // A pointer that commands could have written may lead out of the workspace only to a repository that names it.
    const found = await repositoryAt(isInside(workspace, worktree) ? workspace : top, worktree, uid);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function repositoryAt(
  root: string,
  worktree: string,
  uid: number,
): Promise<FoundRepository | undefined> {
  const dotGit = path.join(worktree, ".git");
  const stats = await lstatIfThere(dotGit);
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) return describe(worktree, dotGit, dotGit);
  if (!stats.isFile()) throw refusedPathError(dotGit, "is neither a folder nor a file");
  const lead = await followPointer(dotGit, root, uid);
  if (lead.kind === "unsafe") throw refusedPathError(dotGit, lead.why);
  return describe(worktree, lead.gitDir, (await pathInGitFile(lead.gitDir, "commondir")) ?? lead.gitDir);
}

async function describe(worktree: string, gitDir: string, commonDir: string): Promise<FoundRepository> {
  const files = [path.join(commonDir, "config"), path.join(gitDir, "config.worktree")];
  const texts = await Promise.all(files.map(textOf));
  return { worktree, gitDir, commonDir, config: texts.filter((text) => text !== undefined) };
}

/** Undefined only if nothing is there: git would read what we could not. */
async function textOf(file: string): Promise<string | undefined> {
  const text = await readSmall(file);
  if (text === undefined && (await lstatIfThere(file)) !== undefined)
    throw refusedPathError(file, "could not be read as git configuration");
  return text;
}

interface Identity {
  readonly name: string;
  readonly email: string;
}

/** The author of a commit: from the command's own -c options, from the user's git settings, or the harness. */
export async function commitIdentity(home: string, config: readonly string[]): Promise<Identity> {
  const settings = new Map(config.map(pair));
  const odd = [...settings.keys()].find((key) => key !== "user.name" && key !== "user.email");
  if (odd !== undefined)
    throw new HarnessError(
      EXIT.refused,
      `a commit takes only the settings user.name and user.email, not ${odd}`,
      "leave out -c, or commit it yourself",
    );
  const files = [path.join(home, ".config", "git", "config"), path.join(home, ".gitconfig")];
  const texts = await Promise.all(files.map((file) => readSmall(file)));
  const own = texts.flatMap((text) => parseGitConfig(text ?? "") ?? []);
  const value = (key: string): string | undefined =>
    settings.get(key) ?? own.findLast((entry) => entry.key === key)?.value;
  return { name: value("user.name") ?? "harness", email: value("user.email") ?? "harness@localhost" };
}

function pair(text: string): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  return at < 0 ? [text.toLowerCase(), "true"] : [text.slice(0, at).toLowerCase(), text.slice(at + 1)];
}

/** The files that git tracks in a workspace: ignore rules do not apply to them. */
export interface Tracked {
  /** Removes the tracked files from these paths below the workspace; all paths that an unreadable index might list. */
  readonly drop: (paths: Set<string>) => Promise<void>;
}

export const NOTHING_TRACKED: Tracked = { drop: () => Promise.resolve() };

/** Bytes of an index: about half a million files. */
const MAX_BYTES = 2 ** 26;

/**
 * Reads the index of the workspace's own repository as it is now, wherever above the workspace that repository begins.
 * The indexes of repositories inside the workspace are read on demand: they matter only if one of their paths would be
 * hidden.
 */
export async function trackedIn(root: string): Promise<Tracked> {
  const own = await repositoryAbove(root);
  const indexes = own === undefined ? [] : await indexesOf(own.gitDir);
  return {
    drop: async (paths) => {
      if (own !== undefined) {
        const taken = { paths, folders: foldersAbove(paths), whole: new Set<string>() };
        dropListed(taken, { root, worktree: own.worktree, indexes });
        dropBelow(taken);
      }
      const taken = { paths, folders: foldersAbove(paths), whole: new Set<string>() };
      for (const worktree of await nestedRepositories(root, taken.folders)) {
        const gitDir = await gitDirIn(worktree);
        if (gitDir !== undefined) dropListed(taken, { root, worktree, indexes: await indexesOf(gitDir) });
      }
      dropBelow(taken);
    },
  };
}

async function repositoryAbove(
  root: string,
): Promise<Pick<FoundRepository, "worktree" | "gitDir"> | undefined> {
  for (let worktree = root; ; worktree = path.dirname(worktree)) {
    const gitDir = await gitDirIn(worktree);
    if (gitDir !== undefined) return { worktree, gitDir };
    if (worktree === path.dirname(worktree)) return undefined;
  }
}

/** Follows a pointer wherever it leads: reading there can only keep changes from being hidden. */
async function gitDirIn(worktree: string): Promise<string | undefined> {
  const dotGit = path.join(worktree, ".git");
  const stats = await lstatIfThere(dotGit).catch(() => undefined);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return dotGit;
  const text = await readSmall(dotGit).catch(() => undefined);
  const named = /^gitdir: ([^\n\r\0]+)/.exec(text ?? "")?.[1];
  return named === undefined ? undefined : path.resolve(worktree, named);
}

/** Both halves of a split index; undefined if an index cannot be read. */
async function indexesOf(gitDir: string): Promise<readonly GitIndex[] | undefined> {
  try {
    const bytes = await contentOf(path.join(gitDir, "index"));
    if (bytes === undefined) return [];
    const index = readGitIndex(bytes);
    if (index.shared === undefined) return [index];
    const common = (await pathInGitFile(gitDir, "commondir")) ?? gitDir;
    const other =
      (await contentOf(path.join(gitDir, index.shared))) ??
      (await contentOf(path.join(common, index.shared)));
    return other === undefined ? undefined : [index, readGitIndex(other)];
  } catch {
    return undefined;
  }
}

/** Undefined if there is no such file. */
async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    return await readRegular(bytesOfText(file), { links: "refuse", max: MAX_BYTES });
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

interface IndexContext {
  readonly root: string;
  readonly worktree: string;
  readonly indexes: readonly GitIndex[] | undefined;
}

interface TrackedPaths {
  readonly paths: Set<string>;
  /** All folders above the paths. */
  readonly folders: ReadonlySet<string>;
  /** The folders in which everything counts as tracked; "" is the workspace. Each path is checked once against all. */
  readonly whole: Set<string>;
}

function dropListed(
  { paths, folders, whole }: TrackedPaths,
  { root, worktree, indexes }: IndexContext,
): void {
  // Paths of the index and paths of the workspace differ by a prefix, on one side or the other.
  const above = isInside(worktree, root) ? prefixOf(path.relative(worktree, root)) : "";
  const below = isInside(worktree, root) ? "" : prefixOf(path.relative(root, worktree));
  if (indexes === undefined) return void whole.add(below.slice(0, -1));
  for (const index of indexes)
    for (const known of index.paths()) {
      if (!known.startsWith(above)) continue;
      const here = below + known.slice(above.length);
      if (!here.endsWith("/")) paths.delete(here);
      else if (folders.has(here.slice(0, -1))) whole.add(here.slice(0, -1));
    }
}

const prefixOf = (folder: string): string => (folder === "" ? "" : `${folder}/`);

function dropBelow({ paths, whole }: TrackedPaths): void {
  if (whole.has("")) return paths.clear();
  if (whole.size > 0) for (const each of paths) if (liesBelow(each, whole)) paths.delete(each);
}

function liesBelow(file: string, folders: ReadonlySet<string>): boolean {
  for (let folder = path.dirname(file); folder !== "."; folder = path.dirname(folder))
    if (folders.has(folder)) return true;
  return false;
}

function foldersAbove(paths: ReadonlySet<string>): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const each of paths)
    for (
      let folder = path.dirname(each);
      folder !== "." && !folders.has(folder);
      folder = path.dirname(folder)
    )
      folders.add(folder);
  return folders;
}

/** The absolute paths of those folders of the workspace that are repositories. */
async function nestedRepositories(root: string, folders: ReadonlySet<string>): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    const worktree = path.join(root, folder);
    if ((await lstatIfThere(path.join(worktree, ".git")).catch(() => undefined)) !== undefined)
      found.push(worktree);
  }
  return found;
}

/**
 * The paths of a git index, versions 2 to 4, as documented in `gitformat-index`. Nothing is run and nothing is trusted:
 * input that does not fit the format throws. This reads one half of a split index; a folder that stands for its files
 * in a sparse index ends with a slash.
 */
interface GitIndex {
  readonly paths: () => Generator<string>;
  /** The name of the file with the other half, if the index is split. */
  readonly shared: string | undefined;
}

/** Before the name of an entry: stat data of 40 bytes, an object name of 20 or 32 bytes, flags. */
const STAT_BYTES = 40;
const SHA1 = 20;
const SHA256 = 32;
const EXTENDED_FLAG = 0x4000;
/** More bytes than any file name has. Names may extend the whole name before: without a limit an index has no end. */
const MAX_NAME = 16_384;

export function readGitIndex(bytes: Buffer): GitIndex {
  const version = bytes.length >= 12 ? bytes.readUInt32BE(4) : 0;
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) throw malformed();
  // The index does not say which hash it uses: with the wrong one, no index can be read to its end.
  for (const hash of [SHA1, SHA256]) {
    const layout = { bytes, version, hash };
    const end = endOf(layout);
    const shared = end === undefined ? undefined : sharedBehind(layout, end);
    if (shared !== undefined)
      return { paths: () => pathsIn(layout), shared: shared === "" ? undefined : `sharedindex.${shared}` };
  }
  throw malformed();
}

interface Layout {
  readonly bytes: Buffer;
  readonly version: number;
  readonly hash: number;
}

/** Where the entries end; undefined if they cannot be read. */
function endOf(layout: Layout): number | undefined {
  try {
    let end = 12;
    for (const entry of entriesIn(layout)) end = entry.end;
    return end;
  } catch {
    return undefined;
  }
}

interface Entry {
  readonly name: Buffer;
  readonly end: number;
}

function* pathsIn(layout: Layout): Generator<string> {
  // Entries that a split index replaces have no name there.
  for (const { name } of entriesIn(layout)) if (name.length > 0) yield textOfBytes(name);
}

function* entriesIn({ bytes, version, hash }: Layout): Generator<Entry> {
  const count = bytes.readUInt32BE(8);
  let before: Buffer = Buffer.alloc(0);
  for (let at = 12, entry = 0; entry < count; entry += 1) {
    const flags = bytes.readUInt16BE(at + STAT_BYTES + hash);
    const begin = at + STAT_BYTES + hash + ((flags & EXTENDED_FLAG) !== 0 && version >= 3 ? 4 : 2);
    const { from, kept } = version === 4 ? prefixAt(bytes, begin, before) : { from: begin, kept: EMPTY };
    const nul = bytes.indexOf(0, from);
    if (nul === -1 || nul > bytes.length - hash) throw malformed();
    const rest = bytes.subarray(from, nul);
    if (kept.length + rest.length > MAX_NAME) throw malformed();
    const name = kept.length === 0 ? rest : Buffer.concat([kept, rest]);
    const nameLength = flags & 0xfff;
    if (nameLength < 0xfff ? name.length !== nameLength : name.length < 0xfff) throw malformed();
    at = version === 4 ? nul + 1 : at + padded(nul - at);
    before = name;
    yield { name, end: at };
  }
}

const EMPTY = Buffer.alloc(0);

/** One to eight NULs pad an entry to a multiple of eight. */
const padded = (length: number): number => (Math.floor(length / 8) + 1) * 8;

/** Reads how many bytes to cut off the end of the name before, in git's own number format. */
function prefixAt(
  bytes: Buffer,
  at: number,
  before: Buffer,
): { readonly from: number; readonly kept: Buffer } {
  let from = at;
  let byte = bytes.readUInt8(from);
  let off = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    from += 1;
    byte = bytes.readUInt8(from);
    off = (off + 1) * 128 + (byte & 0x7f);
    if (off > before.length) throw malformed();
  }
  if (off > before.length) throw malformed();
  return { from: from + 1, kept: before.subarray(0, before.length - off) };
}

/** The name of the other half from the extensions, empty if there is none; undefined if the extensions do not fit. */
function sharedBehind({ bytes, hash }: Layout, end: number): string | undefined {
  let shared = "";
  let at = end;
  for (; at + 8 <= bytes.length - hash; at += 8 + bytes.readUInt32BE(at + 4)) {
    if (bytes.toString("latin1", at, at + 4) !== "link") continue;
    const name = bytes.subarray(at + 8, at + 8 + hash);
    if (name.some((byte) => byte !== 0)) shared = name.toString("hex");
  }
  return at === bytes.length - hash ? shared : undefined;
}

const malformed = (): Error => new Error("it is not a git index");

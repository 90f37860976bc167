import { constants, open } from "node:fs/promises";
import path from "node:path";
import { bytesOfText } from "../../core/byte-text.ts";
import { errorCode } from "../../core/errors.ts";
import { type GitIndex, readGitIndex } from "./git-index.ts";
import { within } from "./mounts.ts";
import { resolved } from "./pointer.ts";
import { look, readSmall } from "./solid.ts";

/** What git keeps track of in a workspace: ignore rules say nothing of it. */
export interface Tracked {
  /** Takes the tracked ones out of these paths below the workspace; all where nobody can tell. */
  readonly drop: (paths: Set<string>) => Promise<void>;
}

export const NOTHING_TRACKED: Tracked = { drop: () => Promise.resolve() };

/** Bytes of an index: about half a million files. */
const LARGEST = 2 ** 26;

interface Repository {
  readonly worktree: string;
  readonly gitDir: string;
}

/**
 * The index of the workspace's own repository as it is now, wherever above it that begins. Those of repositories in
 * it are read when they are asked for: they matter only where a path of theirs would be hidden.
 */
export async function trackedIn(root: string): Promise<Tracked> {
  const own = await repositoryAbove(root);
  const indexes = own === undefined ? [] : await indexesOf(own.gitDir);
  return {
    drop: async (paths) => {
      if (own !== undefined) dropIn(paths, { root, worktree: own.worktree, indexes });
      for (const worktree of await nested(root, paths)) {
        const gitDir = await gitDirIn(worktree);
        if (gitDir !== undefined) dropIn(paths, { root, worktree, indexes: await indexesOf(gitDir) });
      }
    },
  };
}

async function repositoryAbove(root: string): Promise<Repository | undefined> {
  for (let worktree = root; ; worktree = path.dirname(worktree)) {
    const gitDir = await gitDirIn(worktree);
    if (gitDir !== undefined) return { worktree, gitDir };
    if (worktree === path.dirname(worktree)) return undefined;
  }
}

/** Followed wherever it leads: what is read there only keeps changes from being hidden. */
async function gitDirIn(worktree: string): Promise<string | undefined> {
  const dotGit = path.join(worktree, ".git");
  const stats = await look(dotGit).catch(() => undefined);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return dotGit;
  const text = await readSmall(dotGit).catch(() => undefined);
  const named = /^gitdir: ([^\n\r\0]+)/.exec(text ?? "")?.[1];
  return named === undefined ? undefined : path.resolve(worktree, named);
}

/** Both halves of one that is split; undefined where it cannot be read. */
async function indexesOf(gitDir: string): Promise<readonly GitIndex[] | undefined> {
  try {
    const bytes = await contentOf(path.join(gitDir, "index"));
    if (bytes === undefined) return [];
    const index = readGitIndex(bytes);
    if (index.shared === undefined) return [index];
    const common = (await resolved(gitDir, "commondir")) ?? gitDir;
    const other =
      (await contentOf(path.join(gitDir, index.shared))) ??
      (await contentOf(path.join(common, index.shared)));
    return other === undefined ? undefined : [index, readGitIndex(other)];
  } catch {
    return undefined;
  }
}

/** A link could lead to a device, and a pipe that nobody writes to would be opened for ever. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Undefined where there is none. */
async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    await using handle = await open(bytesOfText(file), FLAGS);
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > LARGEST) throw new Error("it is no file, or too large");
    const bytes = Buffer.alloc(stats.size);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    return bytes.subarray(0, bytesRead);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

interface In {
  readonly root: string;
  readonly worktree: string;
  readonly indexes: readonly GitIndex[] | undefined;
}

function dropIn(paths: Set<string>, { root, worktree, indexes }: In): void {
  // Of paths from the one to the other: what stands before them there, or here.
  const above = within(worktree, root) ? prefixOf(path.relative(worktree, root)) : "";
  const below = within(worktree, root) ? "" : prefixOf(path.relative(root, worktree));
  if (indexes === undefined) return dropBelow(paths, below);
  for (const index of indexes)
    for (const known of index.paths()) {
      if (!known.startsWith(above)) continue;
      const here = below + known.slice(above.length);
      if (here.endsWith("/")) dropBelow(paths, here);
      else paths.delete(here);
    }
}

const prefixOf = (folder: string): string => (folder === "" ? "" : `${folder}/`);

function dropBelow(paths: Set<string>, prefix: string): void {
  for (const each of paths) if (each.startsWith(prefix)) paths.delete(each);
}

/** Folders below the workspace, and above some of these paths, that are repositories. */
async function nested(root: string, paths: ReadonlySet<string>): Promise<readonly string[]> {
  const folders = new Set<string>();
  for (const each of paths)
    for (
      let folder = path.dirname(each);
      folder !== "." && !folders.has(folder);
      folder = path.dirname(folder)
    )
      folders.add(folder);
  const found: string[] = [];
  for (const folder of folders) {
    const worktree = path.join(root, folder);
    if ((await look(path.join(worktree, ".git")).catch(() => undefined)) !== undefined) found.push(worktree);
  }
  return found;
}

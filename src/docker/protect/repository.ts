import path from "node:path";
import { within } from "./mounts.ts";
import { followPointer, resolved } from "./pointer.ts";
import { look, readSmall, refuse } from "./solid.ts";

export interface FoundRepository {
  readonly worktree: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** The text of config and config.worktree, those that are there. */
  readonly config: readonly string[];
}

/** The repository that git would find from this folder upwards, never above the workspace; links are refused. */
export async function findRepository(
  root: string,
  folder: string,
  uid: number,
): Promise<FoundRepository | undefined> {
  for (let worktree = path.resolve(folder); within(root, worktree); worktree = path.dirname(worktree)) {
    if ((await look(worktree))?.isDirectory() !== true) throw refuse(worktree, "is no folder");
    const found = await at(root, worktree, uid);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function at(root: string, worktree: string, uid: number): Promise<FoundRepository | undefined> {
  const dotGit = path.join(worktree, ".git");
  const stats = await look(dotGit);
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) return describe(worktree, dotGit, dotGit);
  if (!stats.isFile()) throw refuse(dotGit, "is neither a folder nor a file");
  const lead = await followPointer(dotGit, root, uid);
  if (lead.kind === "unsafe") throw refuse(dotGit, lead.why);
  return describe(worktree, lead.gitDir, (await resolved(lead.gitDir, "commondir")) ?? lead.gitDir);
}

async function describe(worktree: string, gitDir: string, commonDir: string): Promise<FoundRepository> {
  const files = [path.join(commonDir, "config"), path.join(gitDir, "config.worktree")];
  const texts = await Promise.all(files.map(textOf));
  return { worktree, gitDir, commonDir, config: texts.filter((text) => text !== undefined) };
}

/** Undefined only where nothing is: git would read what was not understood here. */
async function textOf(file: string): Promise<string | undefined> {
  const text = await readSmall(file);
  if (text === undefined && (await look(file)) !== undefined)
    throw refuse(file, "could not be read as git configuration");
  return text;
}

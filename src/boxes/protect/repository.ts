import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { parseGitConfig } from "./git-config.ts";
import { followPointer, resolved } from "./git-pointer.ts";
import { look, readSmall, refuse } from "./solid.ts";

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
    if ((await look(worktree))?.isDirectory() !== true) throw refuse(worktree, "is not a folder");
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

/** Undefined only if nothing is there: git would read what we could not. */
async function textOf(file: string): Promise<string | undefined> {
  const text = await readSmall(file);
  if (text === undefined && (await look(file)) !== undefined)
    throw refuse(file, "could not be read as git configuration");
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

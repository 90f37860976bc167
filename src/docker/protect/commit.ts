import path from "node:path";
import { COMMIT_KEYS, GIT_OFF } from "./commit-keys.ts";
import { type ConfigEntry, parseGitConfig } from "./config.ts";
import { readGitWords, refuseCommit } from "./git-words.ts";
import { within } from "./mounts.ts";

/** The repository of a commit, as absolute paths. */
export interface CommitTarget {
  readonly workspace: string;
  /** The folder that is committed: the workspace, or a submodule or nested repository of it. */
  readonly worktree: string;
  readonly gitDir: string;
  /** The main repository of a linked worktree; else the same as `gitDir`. */
  readonly commonDir: string;
  /** The text of config and config.worktree, those that are there. */
  readonly config: readonly string[];
  /** Used when the repository names nobody. */
  readonly identity: { readonly name: string; readonly email: string };
}

interface CommitMount {
  readonly path: string;
  readonly writable: boolean;
  /** Left out when nothing is there: git does not make it for a commit. */
  readonly optional: boolean;
}

/** All that the second container needs beside image and limits. Mounts stand parents before children. */
export interface CommitPlan {
  readonly argv: readonly string[];
  /** Before the words of a command that only looks: whatever could start a program is off in it, too. */
  readonly looking: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly mounts: readonly CommitMount[];
}

/** The container of one `git add` or `git commit`. Refuses what could start a program; reads and runs nothing itself. */
export function commitPlan(target: CommitTarget, args: readonly string[]): CommitPlan {
  const entries = target.config.map((text) => parseGitConfig(text));
  const known = entries.flatMap((list) => list ?? []);
  if (entries.includes(undefined)) throw refuseCommit("its configuration could not be read");
  const refused = refusedKeys(known, target);
  if (refused.length > 0) throw refuseCommit(`its configuration holds ${refused.join(", ")}`);
  return {
    argv: gitArgv(args),
    looking: GIT,
    env: commitEnvironment(target, known),
    cwd: target.worktree,
    mounts: commitMounts(target),
  };
}

/** The keys, in the order of the file, that are not in the list; each once. */
export function refusedKeys(
  entries: readonly ConfigEntry[],
  { gitDir, worktree }: Pick<CommitTarget, "gitDir" | "worktree">,
): readonly string[] {
  const bad = entries.filter(({ key, value }) =>
    key === "core.worktree" ? path.resolve(gitDir, value) !== worktree : !isKnown(key),
  );
  return [...new Set(bad.map(({ key }) => key))];
}

function isKnown(key: string): boolean {
  const section = key.slice(0, key.indexOf("."));
  const name = key.slice(key.lastIndexOf(".") + 1);
  const plain = `${section}.${name}` === key;
  return KEYS.has(`${section}.*`) || KEYS.has(plain ? key : `${section}.*.${name}`);
}

const KEYS = new Set(COMMIT_KEYS);

/** The whole command line of `git add …` or `git commit …` (`args` begins with the subcommand). */
export function gitArgv(args: readonly string[]): readonly string[] {
  const [verb = "", ...words] = args;
  readGitWords(verb, words);
  return [...GIT, ...args];
}

const GIT = ["git", "--no-pager", "--literal-pathspecs", ...GIT_OFF.flatMap((off) => ["-c", off])];

/** Added to the box's own environment, which is built from empty. */
function commitEnvironment(
  target: CommitTarget,
  entries: readonly ConfigEntry[],
): Readonly<Record<string, string>> {
  const has = (key: string): boolean => entries.some((entry) => entry.key === key);
  const { name, email } = target.identity;
  return {
    GIT_DIR: target.gitDir,
    GIT_WORK_TREE: target.worktree,
    ...(target.commonDir === target.gitDir ? {} : { GIT_COMMON_DIR: target.commonDir }),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_EDITOR: "true",
    GIT_SEQUENCE_EDITOR: "true",
    GIT_PAGER: "cat",
    GIT_ASKPASS: "true",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "",
    GIT_NO_LAZY_FETCH: "1",
    ...(has("user.name") ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(has("user.email") ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
}

/**
 * What stays read-only inside the git directory: all that a host program would later obey. A commit writes only
 * objects, refs, logs, index, HEAD, COMMIT_EDITMSG and their lock files.
 */
const FROZEN = [
  "config",
  "config.worktree",
  "hooks",
  "info",
  "modules",
  "worktrees",
  "commondir",
  "gitdir",
  "objects/info",
];

const readOnly = (file: string): CommitMount => ({ path: file, writable: false, optional: true });

const writable = (file: string): CommitMount => ({ path: file, writable: true, optional: false });

const frozen = (folder: string): readonly CommitMount[] =>
  FROZEN.map((name) => readOnly(path.join(folder, name)));

function commitMounts({ workspace, gitDir, commonDir }: CommitTarget): readonly CommitMount[] {
  const shared = [writable(commonDir), ...frozen(commonDir)];
  const own = gitDir === commonDir ? [] : [writable(gitDir), ...frozen(gitDir)];
  return [
    { path: workspace, writable: false, optional: false },
    ...pinned(workspace, commonDir),
    ...shared,
    ...own,
  ];
}

/** Folders between the workspace and a git directory in it: pinned, as in every box. */
function pinned(workspace: string, gitDir: string): readonly CommitMount[] {
  if (!within(workspace, gitDir)) return [];
  const parts = path
    .relative(workspace, path.dirname(gitDir))
    .split(path.sep)
    .filter((part) => part !== "");
  return parts.map((_, index) => ({
    path: path.join(workspace, ...parts.slice(0, index + 1)),
    writable: false,
    optional: false,
  }));
}

import { readdir, readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { type ConfigEntry, parseGitConfig } from "./config.ts";
import { within } from "./mounts.ts";
import { resolved } from "./pointer.ts";
import { look, readSmall, refuse, refuseOwner } from "./solid.ts";

/** A git directory and the folder that its relative settings start from. */
export interface Repository {
  readonly gitDir: string;
  readonly worktree: string;
}

export interface Obeyed {
  /** Paths inside the workspace, there or not, that git reads or runs because the git directory says so. */
  readonly paths: readonly string[];
  readonly warnings: readonly string[];
}

interface Finding {
  readonly root: string;
  readonly uid: number;
  readonly repository: Repository;
  readonly paths: Set<string>;
  readonly warnings: string[];
}

/**
 * What lies in the workspace and yet is obeyed by git: included configuration, hooks, scripts, and what
 * links of the git directory lead to. The configuration is read as text; git is not run.
 * Limit: the user's own configuration (~/.gitconfig) is not read.
 */
export async function obeyed(repository: Repository, root: string, uid: number): Promise<Obeyed> {
  const finding: Finding = { root, uid, repository, paths: new Set(), warnings: [] };
  const { gitDir } = repository;
  const common = await resolved(gitDir, "commondir");
  if (common !== undefined) {
    if (within(root, common)) finding.paths.add(common);
    else if (within(root, gitDir))
      finding.warnings.push(
        `${gitDir} says that its repository is ${common}: not mounted, git does not work there`,
      );
  }
  if (within(root, gitDir) && (await look(path.join(gitDir, "objects/info/alternates"))) !== undefined)
    finding.warnings.push(`${gitDir} borrows objects of another repository that the box may not see`);
  const known = common !== undefined && (within(root, common) || !within(root, gitDir));
  for (const folder of known ? [gitDir, common] : [gitDir]) {
    await links(folder, finding);
    for (const name of ["config", "config.worktree"]) await readConfig(path.join(folder, name), finding, 0);
  }
  if (finding.paths.has(root))
    throw refuse(gitDir, "makes git obey the workspace as a whole (core.hooksPath?)");
  return { paths: [...finding.paths], warnings: finding.warnings };
}

const LINKABLE = [
  "HEAD",
  "config",
  "config.worktree",
  "commondir",
  "hooks",
  "info",
  "modules",
  "objects",
  "refs",
];

const MOST_HOOKS = 200;

/** A link inside a git directory leaves its target writable; so does a second name of a file. */
async function links(gitDir: string, finding: Finding): Promise<void> {
  const below = async (name: string): Promise<readonly string[]> =>
    (await readdir(path.join(gitDir, name)).catch(() => []))
      .slice(0, MOST_HOOKS)
      .map((file) => path.join(name, file));
  for (const name of [...LINKABLE, ...(await below("hooks")), ...(await below("info"))]) {
    const file = path.join(gitDir, name);
    const stats = await look(file);
    if (stats?.isSymbolicLink() === true)
      add(path.resolve(path.dirname(file), await readlink(file)), finding);
    else if (stats?.isFile() === true && within(finding.root, file)) refuseOwner(file, stats, finding.uid);
  }
}

const add = (file: string, { root, paths }: Finding): void => void (within(root, file) && paths.add(file));

const DEEPEST_INCLUDE = 10;

async function readConfig(file: string, finding: Finding, depth: number): Promise<void> {
  const real = await realpath(file).catch(() => undefined);
  if (real === undefined) return;
  if (real !== file && within(finding.root, real)) throw refuse(file, `is reached through a link, ${real}`);
  const text = await readSmall(real);
  const entries = text === undefined ? undefined : parseGitConfig(text);
  // Git might read it all the same, and then nobody has looked at what it names.
  if (entries === undefined) throw refuse(file, "could not be read as git configuration");
  for (const entry of entries) {
    const { worktree } = finding.repository;
    if (INCLUDES.test(entry.key)) {
      const included = expand(path.dirname(file), entry.value);
      add(included, finding);
      if (depth < DEEPEST_INCLUDE) await readConfig(included, finding, depth + 1);
    } else if (FILES.has(entry.key)) add(expand(worktree, entry.value), finding);
    else if (RUNS.test(entry.key)) await addScripts(entry, finding);
  }
}

const INCLUDES = /^include(if\..*)?\.path$/s;
const FILES = new Set(["core.hookspath", "core.excludesfile", "core.attributesfile", "commit.template"]);

/** Settings whose value is a command line. */
const RUNS =
  /^(alias|pager)\.|\.(clean|smudge|process|textconv|command|cmd|driver|helper|program|editor|pager|external|fsmonitor|sshcommand|askpass|gitproxy|difffilter|uploadpack|receivepack|packobjectshook|alternaterefscommand|defaultkeycommand)$/s;

const MOST_WORDS = 50;

/** Files of the worktree that a command line names: `!sh tools/x.sh`. A folder called like a word is left alone. */
async function addScripts({ value }: ConfigEntry, finding: Finding): Promise<void> {
  for (const word of value.split(/[\s"'!;&|()<>=]+/).slice(0, MOST_WORDS)) {
    if (word === "" || word.startsWith("-")) continue;
    const file = expand(finding.repository.worktree, word);
    if (!within(finding.root, file)) continue;
    const stats = await look(file).catch(() => undefined);
    if (stats !== undefined && !stats.isDirectory()) finding.paths.add(file);
  }
}

const expand = (base: string, value: string): string =>
  value.startsWith("~/") ? path.join(homedir(), value.slice(2)) : path.resolve(base, value);

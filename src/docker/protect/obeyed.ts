import { readdir, readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { errorCode, reasonOf } from "../../core/errors.ts";
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
  /** Configuration that was read. */
  readonly read: Set<string>;
}

/**
 * What lies in the workspace and yet is obeyed by git: included configuration, hooks, scripts, and what
 * links of the git directory lead to. The configuration is read as text; git is not run.
 * Limit: the user's own configuration (~/.gitconfig) is not read.
 */
export async function obeyed(repository: Repository, root: string, uid: number): Promise<Obeyed> {
  const finding: Finding = { root, uid, repository, paths: new Set(), warnings: [], read: new Set() };
  const { gitDir } = repository;
  const common = await resolved(gitDir, "commondir");
  if (common === undefined && within(root, gitDir)) await refuseOdd(path.join(gitDir, "commondir"));
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
    for (const name of ["config", "config.worktree"]) await readConfig(path.join(folder, name), finding);
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

/** Git would follow what was not understood here. */
async function refuseOdd(file: string): Promise<void> {
  if ((await look(file)) !== undefined)
    throw refuse(file, "does not hold one plain line, the path of a folder");
}

/** A link inside a git directory leaves its target writable; so does a second name of a file. */
async function links(gitDir: string, finding: Finding): Promise<void> {
  const below = async (name: string): Promise<readonly string[]> => {
    const folder = path.join(gitDir, name);
    const names = await readdir(folder).catch((thrown: unknown) => {
      if (["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return [];
      throw refuse(folder, `cannot be read: ${reasonOf(thrown)}`);
    });
    if (names.length > MOST) throw refuse(folder, `holds more than ${MOST} files`);
    return names.map((file) => path.join(name, file));
  };
  for (const name of [...LINKABLE, ...(await below("hooks")), ...(await below("info"))]) {
    const file = path.join(gitDir, name);
    const stats = await look(file);
    if (stats?.isSymbolicLink() === true)
      add(path.resolve(path.dirname(file), await readlink(file)), finding);
    else if (stats?.isFile() === true && within(finding.root, file)) refuseOwner(file, stats, finding.uid);
  }
}

/** Far more than any repository has hooks, included files or words in its commands. */
const MOST = 10_000;

function add(file: string, { root, paths, repository }: Finding): void {
  if (!within(root, file)) return;
  // Its bytes are lost by then, so that it could not be found.
  if (file.includes("\uFFFD"))
    throw refuse(repository.gitDir, `names a path that is not valid UTF-8: ${file}`);
  paths.add(file);
}

async function readConfig(file: string, finding: Finding): Promise<void> {
  if (finding.read.has(file)) return;
  finding.read.add(file);
  if (finding.read.size > MOST) throw refuse(file, `is one of more than ${MOST} included files`);
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
      await readConfig(included, finding);
    } else if (FILES.has(entry.key)) add(expand(worktree, entry.value), finding);
    else if (RUNS.test(entry.key)) await addScripts(entry, finding);
  }
}

const INCLUDES = /^include(if\..*)?\.path$/s;
const FILES = new Set(["core.hookspath", "core.excludesfile", "core.attributesfile", "commit.template"]);

/** Settings whose value is a command line. */
const RUNS =
  /^(alias|pager)\.|\.(clean|smudge|process|textconv|command|cmd|driver|helper|program|editor|pager|external|fsmonitor|sshcommand|askpass|gitproxy|difffilter|uploadpack|receivepack|packobjectshook|alternaterefscommand|defaultkeycommand)$/s;

/** Files of the worktree that a command line names: `!sh tools/x.sh`. A folder called like a word is left alone. */
async function addScripts({ key, value }: ConfigEntry, finding: Finding): Promise<void> {
  const words = new Set(value.split(/[\s"'!;&|()<>=]+/));
  const { worktree, gitDir } = finding.repository;
  if (words.size > MOST) throw refuse(gitDir, `holds a setting of more than ${MOST} words, ${key}`);
  for (const word of words) {
    if (word === "" || word.startsWith("-")) continue;
    const file = expand(worktree, word);
    if (!within(finding.root, file)) continue;
    const stats = await look(file).catch(() => undefined);
    if (stats !== undefined && !stats.isDirectory()) add(file, finding);
  }
}

/** Git takes a path that may be missing with a mark in front. */
function expand(base: string, value: string): string {
  const plain = value.replace(/^:\(optional\)/, "");
  return plain.startsWith("~/") ? path.join(homedir(), plain.slice(2)) : path.resolve(base, plain);
}

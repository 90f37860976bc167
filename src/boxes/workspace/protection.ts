import type { Stats } from "node:fs";
import { readdir, readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { setImmediate as breath } from "node:timers/promises";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { foldName, isInside, PROTECTED, type ProtectedName, protectedName } from "../../core/file-names.ts";
import { firstOf } from "../../core/wording.ts";
import { type ConfigEntry, followPointer, parseGitConfig, pathInGitFile } from "./git-directory.ts";
import type { Isolation } from "./layer-record.ts";
import { arrange, liesIn, outermostPaths } from "./protected-mounts.ts";
import { walk } from "./protected-walk.ts";
import {
  lstatIfThere,
  escapeForTerminal,
  readSmall,
  refusedPathError,
  requireOwner,
  requireMountable,
} from "./safe-paths.ts";

export interface Protection {
  /** Existing paths to mount read-only over themselves, parents before children; none lies inside another. */
  readonly readOnly: readonly string[];
  /** Folders between the workspace and those paths: mounted over themselves, so that they cannot be renamed away. */
  readonly pinned: readonly string[];
  /** Absolute paths to look for after each call; a last part with `*` stands for every such name. */
  readonly absent: readonly string[];
  readonly warnings: readonly string[];
  /** Git directories outside the workspace that the workspace leads to: read-only at their own paths. */
  readonly outside: readonly string[];
  /** The repository around the workspace, if there is one: read-only at its own paths, in every mode. */
  readonly above: readonly string[];
  /** Sockets and FIFOs in any of these places: an empty file is mounted over each, since a host program may listen. */
  readonly covered: readonly string[];
}

/** Protects nothing. */
export const NOTHING: Protection = {
  readOnly: [],
  pinned: [],
  absent: [],
  warnings: [],
  outside: [],
  above: [],
  covered: [],
};

interface Scan {
  readonly root: string;
  readonly uid: number;
  readonly inside: Set<string>;
  readonly outside: Set<string>;
  readonly absent: Set<string>;
  readonly warnings: string[];
  /** Folders that are known to be folders, so that each is looked at once. */
  readonly folders: Set<string>;
}

/**
 * Finds what must not be written in this workspace (an absolute path without links), and what must not be reached.
 * Refuses paths that cannot be mounted safely, and a tree that cannot be searched to its end.
 */
export async function findProtected(root: string, signal?: AbortSignal): Promise<Protection> {
  const top = await lstatIfThere(root);
  if (top?.isDirectory() !== true) throw refusedPathError(root, "is not a folder");
  const { uid } = top;
  const walked = await walk(root, { signal, user: top, reached: true, linked: true });
  refuseUnseen(root, walked.unseen);
  for (const file of [...walked.found, ...walked.linked]) refuseUnnamable(file);
  // Checks the number before each path is looked at: there may be very many.
  arrange(root, walked.found);
  const absent = new Set(absentNames(root, walked.found));
  const [inside, outside, folders] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const scan: Scan = { root, uid, inside, outside, absent, warnings: [], folders };
  const pointedAt = walked.found.some((file) => path.dirname(file) === root && isDotGit(file));
  if (!pointedAt && walked.bare)
    throw refusedPathError(root, "is a bare git repository, so all of it would have to be read-only");
  for (const [index, file] of walked.found.entries()) {
    if (index % FILES_PER_BREATH === 0) await breath();
    signal?.throwIfAborted();
    await protect(file, scan);
  }
  await protectForAbove(scan);
  const { readOnly, pinned, warnings } = arrange(root, [...scan.inside, ...walked.linked]);
  const away = outermostPaths(scan.outside);
  const reached = await reachedIn(root, walked.reached, { away, top, signal });
  return {
    readOnly,
    pinned,
    absent: [...scan.absent],
    warnings: [...scan.warnings, ...warnings, ...linkedLines(root, walked.linked), ...reached.warnings],
    outside: away,
    above: [],
    covered: reached.covered,
  };
}

/** For a box that only reads its workspace: finds sockets and FIFOs that could still be reached through it. */
export async function findReached(root: string, signal?: AbortSignal): Promise<Protection> {
  const top = await lstatIfThere(root);
  if (top?.isDirectory() !== true) throw refusedPathError(root, "is not a folder");
  const walked = await walk(root, { signal, user: top, reached: true, nameless: true });
  refuseUnseen(root, walked.unseen);
  return { ...NOTHING, ...(await reachedIn(root, walked.reached, { away: [], top, signal })) };
}

interface OutsideFolders {
  /** Folders outside the workspace that are mounted too. */
  readonly away: readonly string[];
  readonly top: Pick<Stats, "uid" | "gid">;
  readonly signal: AbortSignal | undefined;
}

/** The most empty files that are mounted. */
const MAX_COVERS = 100;

/** The sockets and FIFOs to cover: the known ones of the workspace, and those of folders outside. */
export async function reachedIn(
  root: string,
  known: readonly string[],
  { away, top, signal }: OutsideFolders,
): Promise<Pick<Protection, "covered" | "warnings">> {
  const covered = [...known];
  for (const folder of away) {
    const { reached, unseen } = await walk(folder, { signal, user: top, reached: true, nameless: true });
    refuseUnseen(folder, unseen);
    covered.push(...reached);
  }
  covered.sort();
  covered.forEach(refuseUnnamable);
  if (covered.length > MAX_COVERS)
    throw new HarnessError(
      EXIT.sandbox,
      `${root} holds ${covered.length} sockets and FIFOs, through which commands could reach programs of the host; at most ${MAX_COVERS} can be covered: ${listFiles(covered)}`,
      OVERLAY_OR("or remove those that are no longer used"),
    );
  if (covered.length === 0) return { covered, warnings: [] };
  const many = covered.length === 1 ? "a socket or FIFO is" : `${covered.length} sockets and FIFOs are`;
  return {
    covered,
    warnings: [
      `${many} covered by an empty file, so that no command can connect through them: ${listFiles(covered)}`,
    ],
  };
}

const OVERLAY_OR = (more: string): string =>
  `use --isolation overlay (nothing reaches the folder before harness apply), ${more}`;

function refuseUnseen(folder: string, unseen: readonly string[]): void {
  if (unseen.length === 0) return;
  throw new HarnessError(
    EXIT.sandbox,
    `${escapeForTerminal(folder)} could not be searched completely, so it is not known what must be protected there:\n    ${unseen.join("\n    ")}`,
    OVERLAY_OR("or remove these paths, or make them readable (chmod u+rwx)"),
  );
}

function linkedLines(root: string, linked: readonly string[]): readonly string[] {
  if (linked.length === 0) return [];
  const [are, names] = linked.length === 1 ? ["a file is", "its"] : [`${linked.length} files are`, "their"];
  return [
    `${are} read-only, because ${names} content has another name outside of ${root} or in a protected path (hard links): ${listFiles(linked)}. With --isolation overlay they can be changed`,
  ];
}

const MAX_NAMED = 5;

const listFiles = (files: readonly string[]): string => firstOf(files, MAX_NAMED, escapeForTerminal);

const FILES_PER_BREATH = 64;

/** The longest path that the kernel accepts, with its terminating byte. */
const MAX_LENGTH = 4096;

/** The engine takes paths as text: one that is not UTF-8, or too long, cannot be mounted and so cannot be protected. */
function refuseUnnamable(file: string): void {
  if (file.isWellFormed() && (file.length < MAX_LENGTH / 4 || Buffer.byteLength(file) < MAX_LENGTH)) return;
  const why = file.isWellFormed() ? "its path is too long" : "its name is not valid UTF-8";
  throw new HarnessError(
    EXIT.sandbox,
    `${shortened(escapeForTerminal(file))} cannot be protected: ${why}`,
    "rename that path or one of the folders above it",
  );
}

const shortened = (text: string): string =>
  text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;

/** What protects a file below the workspace by its name. */
function namedFor(file: string, root: string): ProtectedName | undefined {
  const folder = path.dirname(file);
  return protectedName(path.basename(file), folder === root, folder === root ? "" : path.basename(folder));
}

const isDotGit = (file: string): boolean => foldName(path.basename(file)) === ".git";

function absentNames(root: string, found: readonly string[]): readonly string[] {
  const present = new Set(
    found.flatMap((file) => {
      const entry = namedFor(file, root);
      const depth =
        entry?.name.includes("/") === true ? path.dirname(path.dirname(file)) : path.dirname(file);
      return depth === root && entry !== undefined ? [entry] : [];
    }),
  );
  return PROTECTED.filter((entry) => !present.has(entry)).map(({ name }) => path.join(root, name));
}

async function protect(file: string, scan: Scan): Promise<void> {
  const stats = await requireMountable(scan, file);
  if (stats === undefined) return;
  scan.inside.add(file);
  if (isDotGit(file) && stats.isFile()) await protectPointed(file, scan);
  else if (isDotGit(file)) await protectObeyed({ gitDir: file, worktree: path.dirname(file) }, scan);
  else if (namedFor(file, scan.root) === undefined)
    await protectObeyed({ gitDir: file, worktree: file }, scan);
}

async function protectPointed(pointer: string, scan: Scan): Promise<void> {
  const lead = await followPointer(pointer, scan.root, scan.uid);
  switch (lead.kind) {
    case "unsafe":
      scan.warnings.push(`${pointer} is not followed, so git does not work there in the box: ${lead.why}`);
      return;
    case "outside":
      scan.outside.add(lead.mount);
      break;
    case "inside":
      await protectNamed(lead.gitDir, scan);
      break;
  }
  await protectObeyed({ gitDir: lead.gitDir, worktree: path.dirname(pointer) }, scan);
}

/** Protects what repositories around the workspace name in their settings and hooks. */
async function protectForAbove(scan: Scan): Promise<void> {
  for (let up = scan.root; up !== path.dirname(up);) {
    up = path.dirname(up);
    const dotGit = path.join(up, ".git");
    const gitDir = await realpath(dotGit).catch(() => undefined);
    if (gitDir === undefined) continue;
    const pointer = await readSmall(gitDir);
    const named = pointer === undefined ? gitDir : /^gitdir: ([^\n\r\0]+)/.exec(pointer)?.[1];
    if (named !== undefined) await protectObeyed({ gitDir: path.resolve(up, named), worktree: up }, scan);
  }
}

async function protectObeyed(repository: Repository, scan: Scan): Promise<void> {
  const { paths, warnings } = await findObeyed(repository, scan.root, scan.uid);
  scan.warnings.push(...warnings);
  for (const file of paths) await protectNamed(file, scan);
}

/** Protects a path that is obeyed whatever its name is; a path that does not exist is watched for. */
async function protectNamed(file: string, scan: Scan): Promise<void> {
  if (scan.inside.has(file) || liesIn(file, scan.inside)) return;
  if ((await requireMountable(scan, file)) === undefined) scan.absent.add(file);
  else scan.inside.add(file);
}

/** A git directory and the folder that its relative settings start from. */
interface Repository {
  readonly gitDir: string;
  readonly worktree: string;
}

interface Obeyed {
  /** Paths inside the workspace, existing or not, that git reads or runs because the git directory says so. */
  readonly paths: readonly string[];
  readonly warnings: readonly string[];
}

interface ObeyedSearch {
  readonly root: string;
  readonly uid: number;
  readonly repository: Repository;
  readonly paths: Set<string>;
  readonly warnings: string[];
  /** Configuration files that have been read. */
  readonly read: Set<string>;
}

/**
 * What git obeys although it lies in the workspace: included configuration, hooks, scripts, and the targets of links in
 * the git directory. The configuration is read as text; git is not run.
 * Limit: the user's own configuration (~/.gitconfig) is not read.
 */
async function findObeyed(repository: Repository, root: string, uid: number): Promise<Obeyed> {
  const finding: ObeyedSearch = { root, uid, repository, paths: new Set(), warnings: [], read: new Set() };
  const { gitDir } = repository;
  const common = await pathInGitFile(gitDir, "commondir");
  if (common === undefined && isInside(root, gitDir)) await refuseOdd(path.join(gitDir, "commondir"));
  if (common !== undefined) {
    if (isInside(root, common)) finding.paths.add(common);
    else if (isInside(root, gitDir))
      finding.warnings.push(
        `${gitDir} says that its repository is ${common}, which is not mounted, so git does not work there`,
      );
  }
  if (
    isInside(root, gitDir) &&
    (await lstatIfThere(path.join(gitDir, "objects/info/alternates"))) !== undefined
  )
    finding.warnings.push(`${gitDir} borrows objects of another repository that the box may not see`);
  const known = common !== undefined && (isInside(root, common) || !isInside(root, gitDir));
  for (const folder of known ? [gitDir, common] : [gitDir]) {
    await addLinked(folder, finding);
    for (const name of ["config", "config.worktree"]) await readConfig(path.join(folder, name), finding);
  }
  if (finding.paths.has(root))
    throw refusedPathError(gitDir, "makes git obey the workspace as a whole (core.hooksPath?)");
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

/** Git would follow a file that was not understood here. */
async function refuseOdd(file: string): Promise<void> {
  if ((await lstatIfThere(file)) !== undefined)
    throw refusedPathError(file, "does not hold exactly one line with the path of a folder");
}

/** A link inside a git directory leaves its target writable, and so does a second name of a file. */
async function addLinked(gitDir: string, finding: ObeyedSearch): Promise<void> {
  const below = async (name: string): Promise<readonly string[]> => {
    const folder = path.join(gitDir, name);
    const names = await readdir(folder).catch((thrown: unknown) => {
      if (["ENOENT", "ENOTDIR"].includes(errorCode(thrown) ?? "")) return [];
      throw refusedPathError(folder, `cannot be read: ${reasonOf(thrown)}`);
    });
    if (names.length > MAX_COUNT) throw refusedPathError(folder, `holds more than ${MAX_COUNT} files`);
    return names.map((file) => path.join(name, file));
  };
  for (const name of [...LINKABLE, ...(await below("hooks")), ...(await below("info"))]) {
    const file = path.join(gitDir, name);
    const stats = await lstatIfThere(file);
    if (stats?.isSymbolicLink() === true)
      addPath(path.resolve(path.dirname(file), await readlink(file)), finding);
    else if (stats?.isFile() === true && isInside(finding.root, file)) requireOwner(file, stats, finding.uid);
  }
}

/** Far more hooks, included files or words in a command than any repository has. */
const MAX_COUNT = 10_000;

function addPath(file: string, { root, paths, repository }: ObeyedSearch): void {
  if (!isInside(root, file)) return;
  // The bytes of the path are lost by then, so the path could not be found.
  if (file.includes("\uFFFD"))
    throw refusedPathError(repository.gitDir, `names a path that is not valid UTF-8: ${file}`);
  paths.add(file);
}

async function readConfig(file: string, finding: ObeyedSearch): Promise<void> {
  if (finding.read.has(file)) return;
  finding.read.add(file);
  if (finding.read.size > MAX_COUNT)
    throw refusedPathError(file, `is one of more than ${MAX_COUNT} included files`);
  const real = await realpath(file).catch(() => undefined);
  if (real === undefined) return;
  if (real !== file && isInside(finding.root, real))
    throw refusedPathError(file, `is reached through a link, ${real}`);
  const text = await readSmall(real);
  const entries = text === undefined ? undefined : parseGitConfig(text);
  // Git might still read it, and then nobody has checked what it names.
  if (entries === undefined) throw refusedPathError(file, "could not be read as git configuration");
  for (const entry of entries) {
    const { worktree } = finding.repository;
    if (INCLUDES.test(entry.key)) {
      const included = expand(path.dirname(file), entry.value);
      addPath(included, finding);
      await readConfig(included, finding);
    } else if (FILES.has(entry.key)) addPath(expand(worktree, entry.value), finding);
    else if (RUNS.test(entry.key)) await addScripts(entry, finding);
  }
}

const INCLUDES = /^include(if\..*)?\.path$/s;
const FILES = new Set(["core.hookspath", "core.excludesfile", "core.attributesfile", "commit.template"]);

/** Settings whose value is a command line. */
const RUNS =
  /^(alias|pager)\.|\.(clean|smudge|process|textconv|command|cmd|driver|helper|program|editor|pager|external|fsmonitor|sshcommand|askpass|gitproxy|difffilter|uploadpack|receivepack|packobjectshook|alternaterefscommand|defaultkeycommand)$/s;

/** Files of the worktree that a command line names: `!sh tools/x.sh`. A folder with a word's name is left alone. */
async function addScripts({ key, value }: ConfigEntry, finding: ObeyedSearch): Promise<void> {
  const words = new Set(value.split(/[\s"'!;&|()<>=]+/));
  const { worktree, gitDir } = finding.repository;
  if (words.size > MAX_COUNT)
    throw refusedPathError(gitDir, `holds a setting of more than ${MAX_COUNT} words, ${key}`);
  for (const word of words) {
    if (word === "" || word.startsWith("-")) continue;
    const file = expand(worktree, word);
    if (!isInside(finding.root, file)) continue;
    const stats = await lstatIfThere(file).catch(() => undefined);
    if (stats !== undefined && !stats.isDirectory()) addPath(file, finding);
  }
}

/** Git marks a path that may be missing with a prefix. */
function expand(base: string, value: string): string {
  const plain = value.replace(/^:\(optional\)/, "");
  return plain.startsWith("~/") ? path.join(homedir(), plain.slice(2)) : path.resolve(base, plain);
}

/**
 * The protection of a box over a layer or a copy. Nothing inside is protected, because nothing inside reaches the
 * repository by itself, and a socket or FIFO of the lower layer leads to nobody. A git directory outside that the
 * workspace leads to is visible through the layer's box, read-only and at its own path: what could be reached there is
 * covered.
 */
export async function protectOutside(
  isolation: Exclude<Isolation, "bind">,
  { path: root, uid, gid }: { readonly path: string; readonly uid: number; readonly gid: number },
  signal?: AbortSignal,
): Promise<Protection> {
  const pointer = path.join(root, ".git");
  if ((await lstatIfThere(pointer))?.isFile() !== true) return NOTHING;
  const lead = await followPointer(pointer, root, uid);
  if (lead.kind === "inside") return NOTHING;
  if (lead.kind === "unsafe") return brokenRepository(`${pointer} is not followed: ${lead.why}`);
  if (isolation === "overlay") {
    const outside = [lead.mount];
    return {
      ...NOTHING,
      outside,
      ...(await reachedIn(root, [], { away: outside, top: { uid, gid }, signal })),
    };
  }
  return brokenRepository(`${lead.gitDir} lies outside the workspace and is not copied`);
}

/** Protects nothing, and says why git sees no repository. */
export const brokenRepository = (why: string): Protection => ({
  ...NOTHING,
  warnings: [`git does not work in the box: ${why}`],
});

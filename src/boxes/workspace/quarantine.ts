import { chmod, mkdtemp, readdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { quote } from "shell-quote";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { foldName, protectedName } from "../../core/file-names.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { firstOf } from "../../core/wording.ts";
import { makeFolder } from "../../platform/folders.ts";
import { Inert, takeBackScript, type TakenOut } from "./inert-tree.ts";
import { remove, renameOrOpenUp, SharedCopies } from "./shared-copies.ts";
import { liesIn, outermostPaths } from "./protected-mounts.ts";
import { walk } from "./protected-walk.ts";
import type { Protection } from "./protection.ts";
import { holdFolder, kindOf, lstatIfThere, escapeForTerminal } from "./safe-paths.ts";

/** What a box made that the user's programs would obey: found, moved out of the workspace, and made inert. */

/** A cheap check after each call: protected and watched names at the workspace's top that were not there before. */
export async function findPlanted(root: string, protection: Protection): Promise<readonly string[]> {
  const names = (await readdir(root, { encoding: "buffer" })).map(textOfBytes);
  const top = names
    .filter((name) => protectedName(name, true) !== undefined)
    .map((name) => path.join(root, name));
  // Names that resemble no name in the listing are not looked up one by one.
  const near = new Set(names.map(foldName));
  const named = protection.absent.filter(
    (file) => path.dirname(file) !== root || near.has(foldName(path.basename(file))),
  );
  const made = await Promise.all(named.map(async (file) => ((await exists(file)) ? file : "")));
  const repository = isRepository(root, protection) ? [] : headsOf(root, names);
  return onlyNew([...top, ...made.filter((file) => file !== ""), ...repository], protection);
}

const isRepository = (root: string, { readOnly }: Protection): boolean =>
  readOnly.some((file) => path.dirname(file) === root && path.basename(file) === ".git");

const isHead = (name: string): boolean => name.toLowerCase() === "head";

/**
 * What makes git take the workspace itself for a repository, settings included. The workspace was none when the box
 * began, because such a folder is refused. Without its HEAD it is none again.
 */
function headsOf(root: string, names: readonly string[]): readonly string[] {
  const lower = new Set(names.map((name) => name.toLowerCase()));
  if (!lower.has("commondir") && !(lower.has("objects") && lower.has("refs"))) return [];
  return names.filter(isHead).map((name) => path.join(root, name));
}

const exists = async (file: string): Promise<boolean> =>
  (await lstatIfThere(file).catch(() => undefined)) !== undefined;

/** A path through a link or below another planted path needs no move of its own. */
const onlyNew = (found: readonly string[], { readOnly }: Protection): readonly string[] => {
  const old = new Set(readOnly);
  return outermostPaths(found.filter((file) => !old.has(file) && !liesIn(file, old))).toSorted();
};

interface PlantedFindings {
  readonly planted: readonly string[];
  readonly warnings: readonly string[];
  /** What could not be searched, and why; empty if all of the tree was searched. */
  readonly unseen: readonly string[];
}

/** For the end of a run: the whole tree, nested repositories included; `opens`: also folders locked meanwhile. */
export async function findAllPlanted(
  root: string,
  protection: Protection,
  opens = true,
): Promise<PlantedFindings> {
  const top = await lstatIfThere(root);
  const walked = await walk(root, { opens, ...(top === undefined ? {} : { user: top }) });
  // Runs after that walk, which unlocks folders.
  const near = await findPlanted(root, protection);
  const warnings: string[] = [];
  const moved = near.some((file) => path.dirname(file) === root && isHead(path.basename(file)));
  if (!isRepository(root, protection) && walked.bare && !moved)
    warnings.push(`${root} now looks like a git repository itself (config, hooks): do not run git in it`);
  return { planted: onlyNew([...near, ...walked.found], protection), warnings, unseen: walked.unseen };
}

/** A planted path that was taken out of the workspace. */
export interface Quarantined {
  /** Where it was. */
  readonly from: string;
  /** Where it is now; null for a FIFO, socket or device, which was removed. */
  readonly to: string | null;
  readonly kind: string;
  /** ISO time. */
  readonly at: string;
  /** The command that puts the thing back, for a person; empty if there is nothing to put back. */
  readonly takeBack: string;
}

/**
 * Moves planted paths into a private folder of their own below `into` (outside the workspace) and makes them inert
 * there. A manifest.json is written before the first move and after the last. The parent folder of each path is held
 * open, so a process in the box that swaps folders for links cannot make the host move something else; if it swaps the
 * last part, the replacement is simply what gets moved. A path that cannot be moved does not hold up the others; the
 * thrown error names it.
 * Limits: a thing that is recreated at once is found only after the next call, and off Linux the parent is not held.
 */
export async function quarantine(
  root: string,
  planted: readonly string[],
  into: string,
): Promise<readonly Quarantined[]> {
  if (planted.length === 0) return [];
  const at = new Date().toISOString();
  const folder = await privateFolder(into, at).catch((thrown: unknown) => {
    throw notMoved(planted, reasonOf(thrown), thrown);
  });
  const manifest = (items: readonly unknown[]): Promise<void> =>
    writeFile(path.join(folder, "manifest.json"), `${JSON.stringify({ root, at, items }, undefined, 2)}\n`, {
      mode: 0o600,
    });
  const moved: Quarantined[] = [];
  const failed: { readonly from: string; readonly thrown: unknown }[] = [];
  try {
    await using copies = new SharedCopies(folder);
    await manifest(planted.map((from, index) => ({ from, to: path.join(folder, inertName(index)), at })));
    for (const [index, from] of planted.entries()) {
      const to = path.join(folder, inertName(index));
      const item = await takeOut(root, { from, to, copies }).catch((thrown: unknown) => {
        failed.push({ from, thrown });
      });
      if (item !== undefined) moved.push({ ...item, at });
    }
    await manifest(moved);
  } catch (thrown) {
    throw notMoved(planted, `${folder}: ${reasonOf(thrown)}`, thrown);
  }
  const [first] = failed;
  if (first !== undefined) {
    const others = moved.length === 0 ? "" : `; ${moved.length} more were moved to ${folder}`;
    const from = failed.map((one) => one.from);
    throw notMoved(from, `${reasonOf(first.thrown)}${others}`, first.thrown);
  }
  return moved;
}

async function privateFolder(into: string, at: string): Promise<string> {
  makeFolder(into);
  return mkdtemp(path.join(into, `${at.replaceAll(":", "-")}-`));
}

const MAX_NAMED = 10;

function notMoved(planted: readonly string[], why: string, thrown: unknown): HarnessError {
  const names = firstOf(planted, MAX_NAMED, (file) => shortened(escapeForTerminal(file)));
  return new HarnessError(
    EXIT.sandbox,
    `${names} was made inside the box and could not be moved out of the workspace and made inert: ${why}`,
    "check and remove it before any of your programs reads that folder",
    thrown,
  );
}

const shortened = (text: string): string =>
  text.length > 300 ? `${text.slice(0, 150)}…${text.slice(-150)}` : text;

/** Not the original name, so that no program obeys the thing here. */
const inertName = (index: number): string => `item-${index}`;

interface Taking {
  readonly from: string;
  readonly to: string;
  readonly copies: SharedCopies;
}

async function takeOut(
  root: string,
  { from, to, copies }: Taking,
): Promise<Omit<Quarantined, "at"> | undefined> {
  using parent = holdFolder(root, path.relative(root, path.dirname(from)));
  const entry = parent.entry(path.basename(from));
  const stats = await lstatIfThere(entry);
  if (stats === undefined) return undefined;
  const kind = kindOf(stats);
  if (stats.isDirectory())
    return { from, to, kind, takeBack: await takeFolder(entry, stats.mode, { from, to, copies }) };
  if (!stats.isFile() && !stats.isSymbolicLink()) {
    await remove(entry);
    return { from, to: null, kind, takeBack: "" };
  }
  await copies.move(entry, to);
  const plain = stats.isSymbolicLink() || (stats.mode & 0o111) === 0;
  if (!plain) await withoutRights(to, copies);
  const modes = plain ? [] : [{ part: 0, rel: "", mode: stats.mode & 0o777, folder: false }];
  return { from, to, kind, takeBack: await takeBackCommand({ from, to, done: { ...NO_CHANGES, modes } }) };
}

/** Well below the longest path that one call accepts. */
const MAX_LENGTH = 4000;

const NO_CHANGES = { cuts: [], modes: [], renames: [], partName: String };

/**
 * Another name of the file may be one of the user's; then the rights are removed from a copy. Out of the workspace, the
 * file gets no further names.
 */
async function withoutRights(file: string, copies: SharedCopies): Promise<void> {
  const stats = await lstatIfThere(file);
  if (stats?.isFile() === true && stats.nlink === 1) return chmod(file, 0o600);
  const copied = `${file}.copy`;
  await copies.file(file, copied);
  await rename(copied, file);
  await chmod(file, 0o600);
}

/** To another file system the folder is copied, and the original is removed. */
async function takeFolder(entry: string, mode: number, { from, to, copies }: Taking): Promise<string> {
  const done = new Inert();
  try {
    await renameOrOpenUp(entry, to);
    await done.straighten(to, copies);
  } catch (thrown) {
    if (errorCode(thrown) !== "EXDEV") throw thrown;
    await done.straighten(entry, "later");
    await copies.whole(entry, to);
    await remove(entry);
    await done.straighten(to, "none");
  }
  await done.rename(to);
  // A folder that locked its owner out was unlocked to be moved.
  if ((mode & 0o700) !== 0o700 && !done.modes.some(({ part, rel }) => part === 0 && rel === ""))
    done.modes.push({ part: 0, rel: "", mode: mode & 0o777, folder: true });
  return takeBackCommand({ from, to, done });
}

/** The command that puts the thing back: a plain move if there is nothing inside it to restore. */
async function takeBackCommand(taken: TakenOut): Promise<string> {
  const { from, to, done } = taken;
  const [mode, ...more] = done.modes;
  const isFile = mode === undefined || (mode.rel === "" && !mode.folder);
  const isPlain = isFile && done.cuts.length + more.length + done.renames.length === 0;
  if (isPlain && Buffer.byteLength(from) < MAX_LENGTH) {
    const [out, back] = [quoted(to), quoted(from)];
    if (mode === undefined) return `mv -nT -- ${out} ${back}`;
    // The right to execute comes back only with the file.
    const isFree = `[ ! -e ${back} ] && [ ! -L ${back} ]`;
    return `${isFree} && chmod ${mode.mode.toString(8)} -- ${out} && mv -nT -- ${out} ${back}`;
  }
  const file = `${to}.take-back.sh`;
  await writeFile(file, takeBackScript(taken), { mode: 0o600 });
  return `sh ${quoted(file)}`;
}

/** Makes moved folders inert once more after all processes have ended: one may have been working in such a folder. */
export async function stillInert(moved: readonly Quarantined[]): Promise<void> {
  for (const { from, to, kind } of moved) {
    if (to === null || kind !== "folder" || (await lstatIfThere(to)) === undefined) continue;
    const again = new Inert();
    try {
      await using copies = new SharedCopies(path.dirname(to));
      await again.straighten(to, copies);
      await again.rename(to);
    } catch (thrown) {
      throw notMoved([from], `${to}: ${reasonOf(thrown)}`, thrown);
    }
  }
}

/** One shell word for any text. What a terminal cannot show is written as bytes, in the notation of bash and zsh. */
const quoted = (text: string): string =>
  UNPRINTABLE.test(text) ? `$'${Array.from(text, byBytes).join("")}'` : quote([text]);

/** Control characters, direction marks, invisible characters, line ends of any kind, and bytes that are not UTF-8. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

const byBytes = (character: string): string =>
  UNPRINTABLE.test(character) || /['\\]/.test(character)
    ? [...bytesOfText(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
    : character;

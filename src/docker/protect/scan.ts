import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { arrange, outermost, within } from "./mounts.ts";
import { fold, PROTECTED, protectedName } from "../../core/protected-names.ts";
import { obeyed, type Repository } from "./obeyed.ts";
import { followPointer } from "./pointer.ts";
import { look, refuse, solid } from "./solid.ts";
import { isBare, walk } from "./walk.ts";

export interface Protection {
  /** Existing paths to be mounted read-only over themselves, parents before children; none lies in another. */
  readonly readOnly: readonly string[];
  /** Folders between the workspace and those: mounted over themselves, so that they cannot be renamed away. */
  readonly pinned: readonly string[];
  /** Absolute paths to be looked for after each call; a last part with `*` stands for every such name. */
  readonly absent: readonly string[];
  readonly warnings: readonly string[];
  /** Git directories outside the workspace that it leads to: read-only at their own path. */
  readonly outside: readonly string[];
  /** False when a bound ended the search: then what a later search finds may have been there before. */
  readonly complete: boolean;
}

interface Scan {
  readonly root: string;
  readonly uid: number;
  readonly inside: Set<string>;
  readonly outside: Set<string>;
  readonly absent: Set<string>;
  readonly warnings: string[];
}

/** What must not be written in this workspace (an absolute path without links). Refuses what cannot be mounted safely. */
export async function findProtected(root: string): Promise<Protection> {
  const top = await look(root);
  if (top?.isDirectory() !== true) throw refuse(root, "is no folder");
  const walked = await walk(root);
  walked.found.forEach(refuseUnnamable);
  const scan: Scan = {
    root,
    uid: top.uid,
    inside: new Set(),
    outside: new Set(),
    absent: new Set(absentNames(root, walked.found)),
    warnings: [...walked.warnings],
  };
  const pointedAt = walked.found.some((file) => path.dirname(file) === root && isDotGit(file));
  if (!pointedAt && (await isBare(root)))
    throw refuse(root, "is a bare git repository, so that all of it would have to be read-only");
  for (const file of walked.found) await protect(file, scan);
  const { readOnly, pinned, warnings } = arrange(root, scan.inside);
  return {
    readOnly,
    pinned,
    absent: [...scan.absent],
    warnings: [...scan.warnings, ...warnings],
    outside: outermost(scan.outside),
    complete: walked.complete,
  };
}

/** The engine takes paths as text: one that is not UTF-8 cannot be mounted, so it cannot be protected. */
function refuseUnnamable(file: string): void {
  if (file.isWellFormed()) return;
  throw new HarnessError(
    EXIT.sandbox,
    `${JSON.stringify(file).slice(1, -1)} is to be protected and its name is not valid UTF-8`,
    "rename that path or one of the folders above it",
  );
}

const isDotGit = (file: string): boolean => fold(path.basename(file)) === ".git";

function absentNames(root: string, found: readonly string[]): readonly string[] {
  const top = found.filter((file) => path.dirname(file) === root).map((file) => path.basename(file));
  const present = new Set(top.map((name) => protectedName(name, true)));
  return PROTECTED.filter((entry) => !present.has(entry)).map(({ name }) => path.join(root, name));
}

async function protect(file: string, scan: Scan): Promise<void> {
  const stats = await solid(scan.root, file, scan.uid);
  if (stats === undefined) return;
  scan.inside.add(file);
  if (isDotGit(file) && stats.isFile()) await protectPointed(file, scan);
  else if (isDotGit(file)) await protectObeyed({ gitDir: file, worktree: path.dirname(file) }, scan);
  else if (protectedName(path.basename(file), path.dirname(file) === scan.root) === undefined)
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

async function protectObeyed(repository: Repository, scan: Scan): Promise<void> {
  const { paths, warnings } = await obeyed(repository, scan.root, scan.uid);
  scan.warnings.push(...warnings);
  for (const file of paths) await protectNamed(file, scan);
}

/** A path that is obeyed whatever its name is; when it is not there, it is to be watched for. */
async function protectNamed(file: string, scan: Scan): Promise<void> {
  if ([...scan.inside].some((folder) => within(folder, file))) return;
  if ((await solid(scan.root, file, scan.uid)) === undefined) scan.absent.add(file);
  else scan.inside.add(file);
}

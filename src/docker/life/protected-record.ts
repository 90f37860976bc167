import { createHash } from "node:crypto";
import { open, readdir, realpath, rm } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/text/file-paths.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import type { Owner } from "../../boxes/box-labels.ts";
import { NOTHING, type Protection } from "../../boxes/protect/scan.ts";
import { isAlive } from "../../boxes/life/owner.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * `<state>/protected/<workspace's hash>.<owner>.json` records what of a workspace was protected when a box that can
 * write to it began. The file exists until that box has ended with a search of the whole tree. The next start compares
 * with the records of dead owners: a path that is protected by then and was not at that time may come from the dead
 * run. A file appears whole (written aside, synced, renamed); its name alone says whose it is, and for which workspace.
 * Limit: a workspace that was moved meanwhile is not found.
 */
export interface DeadRecord {
  readonly file: string;
  /** Undefined if the record cannot be read: damaged, or of another version. */
  readonly held: RecordedProtection | undefined;
}

export interface RecordedProtection {
  readonly workspace: string;
  /** ISO time. */
  readonly since: string;
  readonly protection: Protection;
}

const form = z.strictObject({
  form: z.literal(1),
  workspace: z.string(),
  since: z.string(),
  read_only: z.array(z.string()),
  absent: z.array(z.string()),
});

const MAX_BYTES = 16 * 2 ** 20;

const folderIn = (stateDir: string): string => path.join(stateDir, "protected");

const hashOf = (workspace: string): string =>
  createHash("sha256").update(workspace).digest("hex").slice(0, 32);

/** The record is on disk when this resolves; the returned function removes it. */
export async function recordProtected(
  stateDir: string,
  { workspace, owner }: { readonly workspace: string; readonly owner: Owner },
  { readOnly, absent }: Protection,
): Promise<() => Promise<void>> {
  const folder = folderIn(stateDir);
  const { pid, start, boot } = owner;
  const file = path.join(folder, `${hashOf(workspace)}.${pid}-${start}-${boot}.json`);
  const text = JSON.stringify({
    form: 1,
    workspace,
    since: new Date().toISOString(),
    read_only: readOnly,
    absent,
  });
  try {
    if (text.length > MAX_BYTES) throw new Error("it would be too long");
    makeFolder(folder);
    await replaceFile(file, text, { aside: `${file}.new`, lasts: "name" });
  } catch (thrown) {
    throw new HarnessError(
      EXIT.sandbox,
      `the list of what is protected in ${workspace} cannot be written: ${reasonOf(thrown)}`,
      `df -h ${stateDir}; ls -ld ${stateDir}`,
      thrown,
    );
  }
  return () => rm(file, { force: true });
}

/** Records of dead runs: those over this folder, over a folder above it and over a folder in it. */
export async function deadRecords(stateDir: string, workspacePath: string): Promise<readonly DeadRecord[]> {
  const folder = folderIn(stateDir);
  const names = await readdir(folder).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    const message = `cannot find out what earlier runs left: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `ls -ld ${folder}`, thrown);
  });
  if (names.length === 0) return [];
  // A missing folder is refused elsewhere.
  const workspace = await realpath(workspacePath).catch(() => workspacePath);
  const found = await Promise.all(names.map((name) => deadIn(folder, name, workspace)));
  return found.flat();
}

const NAME = /^([0-9a-f]{32})\.(\d+)-(\d+)-([\w-]+)\.json(\.new)?$/;

async function deadIn(folder: string, name: string, workspace: string): Promise<readonly DeadRecord[]> {
  const [, hash = "", pid = "", start = "", boot = "", begun] = NAME.exec(name) ?? [];
  if (hash === "" || (await isAlive({ pid: Number(pid), start, boot }))) return [];
  const file = path.join(folder, name);
  if (begun !== undefined) {
    // Killed before the box could do anything.
    await rm(file, { force: true });
    return [];
  }
  const held = await readRecord(file);
  if (held === "gone") return [];
  if (held === undefined) return hash === hashOf(workspace) ? [{ file, held }] : [];
  const met = isInside(held.workspace, workspace) || isInside(workspace, held.workspace);
  return met && hash === hashOf(held.workspace) ? [{ file, held }] : [];
}

async function readRecord(file: string): Promise<RecordedProtection | undefined | "gone"> {
  try {
    await using handle = await open(file, "r");
    if ((await handle.stat()).size > MAX_BYTES) return undefined;
    const { data } = form.safeParse(JSON.parse(await handle.readFile("utf8")));
    if (data === undefined) return undefined;
    const { workspace, since, read_only: readOnly, absent } = data;
    return { workspace, since, protection: { ...NOTHING, readOnly, absent } };
  } catch (thrown) {
    return errorCode(thrown) === "ENOENT" ? "gone" : undefined;
  }
}

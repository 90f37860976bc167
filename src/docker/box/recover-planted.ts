import { open, readdir, realpath, rm } from "node:fs/promises";
import path from "node:path";
import { createHash } from "node:crypto";
import { quote } from "shell-quote";
import * as z from "zod";
import type { MovedAway } from "../../core/run-record.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { lockWorkspace } from "../../boxes/workspace/workspace-lock.ts";
import { firstOf } from "../../core/wording.ts";
import { findAllPlanted, quarantine } from "../../boxes/workspace/quarantine.ts";
import { lstatIfThere } from "../../boxes/workspace/safe-paths.ts";
import { walk } from "../../boxes/workspace/protected-walk.ts";
import type { BoxMaker, BoxRequest } from "./prepare-box.ts";
import { isInside } from "../../core/file-names.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { isAlive, type Owner } from "../../boxes/box-record.ts";
import { NOTHING, type Protection } from "../../boxes/workspace/protection.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * `<state>/protected/<workspace's hash>.<owner>.json` records what of a workspace was protected when a box that can
 * write to it began. The file exists until that box has ended with a search of the whole tree. The next start compares
 * with the records of dead owners: a path that is protected by then and was not at that time may come from the dead
 * run. A file appears whole (written aside, synced, renamed); its name alone says whose it is, and for which workspace.
 * Limit: a workspace that was moved meanwhile is not found.
 */

/**
 * Moves what a killed run may have planted out of the workspace before anything there counts as the user's. Such files
 * cannot be told from what the user has made since, so each is reported with its reason and the command that brings it
 * back. A box that only reads is no danger and moves nothing: it only reports.
 */
export async function recoverPlanted(
  { stateDir, onWarning }: BoxMaker,
  { workspace, mode, isolation }: BoxRequest,
  /** Resolves once no box of a dead run is left; to false if one may be left. */
  reaped: () => Promise<boolean>,
): Promise<readonly MovedAway[]> {
  const dead = await deadRecords(stateDir, workspace);
  if (dead.length === 0) return [];
  const alone = await reaped();
  const moved: MovedAway[] = [];
  for (const { file, record } of dead) {
    if (record === undefined) await refuseUnknown(file, { workspace, mode }, onWarning);
    else if (mode === "read-only") await tellPlanted(record, onWarning);
    else {
      const sweep = sweeping({ stateDir, onWarning }, { file, record }, alone);
      moved.push(...(await (isolation === "bind" ? sweep() : sweep().catch(warnInstead(onWarning)))));
    }
  }
  return moved;
}

type Warn = BoxMaker["onWarning"];

/** Nothing that is there now can be recognized as the user's. */
async function refuseUnknown(
  file: string,
  { workspace, mode }: Pick<BoxRequest, "workspace" | "mode">,
  warn: Warn,
): Promise<void> {
  const { found } = await walk(path.resolve(workspace));
  const there = firstOf(found, MAX_NAMED) || "nothing";
  const message = `a run in ${workspace} was killed, and the list of files there that the host would obey is lost: ${file} is damaged. There is now: ${there}`;
  if (mode === "read-only") return warn(message);
  throw new HarnessError(
    EXIT.sandbox,
    message,
    `check these, remove what is not yours, then: rm ${quote([file])}`,
  );
}

const MAX_NAMED = 20;

const plantedReason = (since: string): string =>
  `was not there when a run that was killed began here at ${since}, and may come from that run`;

async function tellPlanted({ workspace, since, protection }: RecordedProtection, warn: Warn): Promise<void> {
  const { planted } = await findAllPlanted(workspace, protection, false).catch(() => ({ planted: [] }));
  for (const file of planted.slice(0, MAX_NAMED))
    warn(
      `${file} ${plantedReason(since)}: check it; the next run that can write moves it out of the workspace`,
    );
  if (planted.length > MAX_NAMED) warn(`${planted.length - MAX_NAMED} more in ${workspace}`);
}

const sweeping =
  (
    { stateDir, onWarning }: Pick<BoxMaker, "stateDir" | "onWarning">,
    { file, record }: DeadRecord & { readonly record: RecordedProtection },
    alone: boolean,
  ): (() => Promise<readonly MovedAway[]>) =>
  async () => {
    const { workspace, since, protection } = record;
    const stats = await lstatIfThere(workspace);
    if (stats?.isDirectory() !== true) {
      await rm(file, { force: true });
      return [];
    }
    const { dev, ino } = stats;
    await using _ = await lockWorkspace({ path: workspace, dev, ino, write: true, stateDir });
    const { planted, warnings, unseen } = await findAllPlanted(workspace, protection);
    const moved = await quarantine(workspace, planted, path.join(stateDir, "quarantine"));
    for (const warning of warnings) onWarning(warning);
    for (const { from, to, takeBack } of moved.slice(0, MAX_NAMED))
      onWarning(
        to === null
          ? `${from} ${plantedReason(since)}: removed, because it was not a file, folder or link`
          : `${from} ${plantedReason(since)}: moved out of the workspace; if it is yours, take it back: ${takeBack}`,
      );
    if (moved.length > MAX_NAMED)
      onWarning(`${moved.length - MAX_NAMED} more were moved out of ${workspace}`);
    if (unseen.length === 0 && alone) await rm(file, { force: true });
    return moved.map(({ from, to, takeBack }) => ({ from, to, takeBack, earlier: true }));
  };

/** A layer or a copy lets none of it out; the next start that can write tries again. */
const warnInstead =
  (warn: Warn) =>
  (thrown: unknown): readonly MovedAway[] => {
    warn(`the workspace was not searched for what a killed run may have left: ${reasonOf(thrown)}`);
    return [];
  };

/** The record of a run whose process has ended. */
interface DeadRecord {
  readonly file: string;
  /** Undefined if the record cannot be read: damaged, or of another version. */
  readonly record: RecordedProtection | undefined;
}

interface RecordedProtection {
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
  const record = await readRecord(file);
  if (record === "gone") return [];
  if (record === undefined) return hash === hashOf(workspace) ? [{ file, record }] : [];
  const met = isInside(record.workspace, workspace) || isInside(workspace, record.workspace);
  return met && hash === hashOf(record.workspace) ? [{ file, record }] : [];
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

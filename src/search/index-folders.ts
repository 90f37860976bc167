import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import {
  type DiskTrouble,
  diskTroubleOf,
  errorCode,
  EXIT,
  HarnessError,
  reasonOf,
  sqliteCodeOf,
} from "../core/errors.ts";
import { replaceFileSync } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";
import { FileLock, privateFile } from "../platform/sqlite.ts";

/** Where the indexes of workspaces lie on disk, who may write them, and what their failures mean. */

/** Identifies a folder after it was moved: a copy has another inode, a replacement has another birth time. */
interface RootIdentity {
  readonly dev: string;
  readonly ino: string;
  readonly born: string;
}

interface IndexRecord extends RootIdentity {
  /** Letters and digits; the name of the index's folder. */
  readonly id: string;
  readonly workspace: string;
}

/** The folder of one index. */
export interface IndexPlace {
  readonly id: string;
  readonly folder: string;
  /** Absolute and resolved. */
  readonly workspace: string;
  /** Where the workspace was when it was last indexed, if it has moved. */
  readonly movedFrom: string | null;
}

const RECORD = "workspace.json";

/** Finds the index of a workspace, by its path or by the identity of a folder that was moved there. */
export function findIndex(root: string, workspace: string): IndexPlace | undefined {
  const identity = identityOf(workspace);
  if (identity === undefined) return undefined;
  const records = indexesIn(root);
  const place = ({ id }: IndexRecord, movedFrom: string | null): IndexPlace => ({
    id,
    folder: path.join(root, id),
    workspace,
    movedFrom,
  });
  const same = records.find((each) => isSame(each, identity));
  if (same?.workspace === workspace) return place(same, null);
  if (same !== undefined && hasLeft(same)) return place(same, same.workspace);
  const here = records.find((each) => each.workspace === workspace);
  // Another folder has replaced this one: its index is compared file by file.
  return here === undefined ? undefined : place(here, null);
}

/**
 * Like `findIndex`, but records the present path of a workspace that has moved, where that can be written: otherwise a
 * prune would take its index for one that nobody needs.
 */
export function findMovedIndex(root: string, workspace: string): IndexPlace | undefined {
  const found = findIndex(root, workspace);
  if (found === undefined || found.movedFrom === null) return found;
  try {
    return claimIndex(root, workspace);
  } catch {
    return found;
  }
}

/** Like `findIndex`, but creates a missing index and records the present path of the workspace. */
export function claimIndex(root: string, workspace: string): IndexPlace {
  try {
    return claimUnderLock(root, workspace);
  } catch (thrown) {
    throw indexFailure(thrown, root);
  }
}

function claimUnderLock(root: string, workspace: string): IndexPlace {
  makeFolder(root);
  // Two processes that begin at the same time make one index.
  using _ = waitForWriter(() => root);
  const found = findIndex(root, workspace);
  const id = found?.id ?? process.getBuiltinModule("node:crypto").randomBytes(12).toString("hex");
  const folder = path.join(root, id);
  makeFolder(folder);
  const identity = identityOf(workspace) ?? { dev: "", ino: "", born: "" };
  writeRecord(folder, { id, workspace, ...identity });
  return { id, folder, workspace, movedFrom: found?.movedFrom ?? null };
}

/** All indexes; a folder without a readable record is none. */
export function indexesIn(root: string): readonly IndexRecord[] {
  return namesIn(root).flatMap((name) => {
    const record = readRecord(path.join(root, name));
    return record?.id === name ? [record] : [];
  });
}

/** Whether its workspace no longer exists. */
export const isOrphan = (record: IndexRecord): boolean => identityOf(record.workspace) === undefined;

/** Whether the recorded folder is gone or has been replaced by another. */
function hasLeft(record: IndexRecord): boolean {
  const now = identityOf(record.workspace);
  return now === undefined || !isSame(record, now);
}

const isSame = (a: RootIdentity, b: RootIdentity): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.born === b.born;

function identityOf(folder: string): RootIdentity | undefined {
  try {
    const stats = lstatSync(folder, { bigint: true });
    if (!stats.isDirectory()) return undefined;
    return { dev: String(stats.dev), ino: String(stats.ino), born: String(stats.birthtimeNs) };
  } catch {
    return undefined;
  }
}

function writeRecord(folder: string, record: IndexRecord): void {
  const file = path.join(folder, RECORD);
  const text = JSON.stringify(record);
  if (textOf(file) === text) return;
  replaceFileSync(file, text, { aside: `${file}.new`, lasts: "content" });
}

function readRecord(folder: string): IndexRecord | undefined {
  try {
    const value = JSON.parse(textOf(path.join(folder, RECORD)) ?? "") as Partial<Record<string, unknown>>;
    const texts = [value["id"], value["workspace"], value["dev"], value["ino"], value["born"]];
    return texts.every((each) => typeof each === "string") ? (value as unknown as IndexRecord) : undefined;
  } catch {
    return undefined;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Names of the entries of a folder; none if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The name of the catalog in the folder of an index. */
export const CATALOG = "catalog.db";

/** Pause between two attempts to get the lock. */
const STEP_MS = 50;

/**
 * Takes the writer's lock, held by one process at a time. It is SQLite's own lock on a file that stays empty, so that a
 * kill frees it.
 */
export async function takeWriter(
  folder: string,
  { patienceMs, signal }: { readonly patienceMs: number; readonly signal: AbortSignal },
): Promise<Disposable> {
  const until = performance.now() + patienceMs;
  for (;;) {
    const lock = tryWriter(folder);
    if (lock !== undefined) return lock;
    signal.throwIfAborted();
    if (performance.now() >= until) throw lockTaken(folder);
    await sleep(STEP_MS);
  }
}

/** For locks that are held for milliseconds: waits synchronously. The folder may be gone afterwards. */
export function waitForWriter(folderOf: () => string): Disposable {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const lock = tryWriter(folderOf());
    if (lock !== undefined) return lock;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  throw lockTaken(folderOf());
}

const MAX_ATTEMPTS = 200;
const PAUSE_MS = 10;

/** Takes the writer's lock, or returns undefined if another process has it. */
export function tryWriter(folder: string): Disposable | undefined {
  const lock = lockFile(folder);
  try {
    lock.take("exclusive");
    writeFileSync(path.join(folder, "writer.json"), JSON.stringify({ pid: process.pid, since: Date.now() }));
  } catch (thrown) {
    lock[Symbol.dispose]();
    if (troubleOf(thrown) === "busy") return undefined;
    throw indexFailure(thrown, folder);
  }
  return lock;
}

export const lockFileIn = (folder: string): string => path.join(folder, "writer.lock");

function lockFile(folder: string): FileLock {
  try {
    return new FileLock(privateFile(lockFileIn(folder)), 0);
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

function lockTaken(folder: string): HarnessError {
  const who = writerOf(folder);
  const since = who === null ? "" : ` (process ${who.pid}, since ${new Date(who.since).toISOString()})`;
  return new HarnessError(
    EXIT.failed,
    `another harness is writing this index${since}`,
    "try again when it is done; until then, harness search uses the index as it is",
  );
}

interface Writer {
  readonly pid: number;
  readonly since: number;
}

/** The last writer; whether it still writes, only the lock tells. */
function writerOf(folder: string): Writer | null {
  try {
    const { pid, since } = JSON.parse(readFileSync(path.join(folder, "writer.json"), "utf8")) as Writer;
    return Number.isSafeInteger(pid) && Number.isSafeInteger(since) ? { pid, since } : null;
  } catch {
    return null;
  }
}

/** How long one process waits while another writes. */
export const PATIENCE_MS = 10_000;

/** `another`: an intact file whose format this version cannot read, as opposed to a damaged one. */
type Trouble = DiskTrouble | "another";

export function troubleOf(thrown: unknown): Trouble {
  if (thrown instanceof AnotherIndex) return "another";
  // Data of this program that can no longer be decompressed or decoded.
  if (thrown instanceof DamagedIndex || thrown instanceof RangeError) return "damaged";
  if (/^Z(?:STD)?_/.test(errorCode(thrown) ?? "")) return "damaged";
  // The queries never change: if SQLite knows no such table or column, the file has other tables.
  return sqliteCodeOf(thrown) === SQL_ERROR ? "damaged" : diskTroubleOf(thrown);
}

const SQL_ERROR = 1;

/** Thrown if the bytes of an index are not valid. */
export class DamagedIndex extends Error {
  override readonly name = "DamagedIndex";
}

/** Thrown to a reader if this version can read nothing of the index. */
export class AnotherIndex extends Error {
  override readonly name = "AnotherIndex";
}

/** Describes a failure for a person; an abort or a HarnessError is returned unchanged. */
export function indexFailure(thrown: unknown, folder: string): unknown {
  if (thrown instanceof HarnessError) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") return thrown;
  const [why, remedy] = {
    full: ["no space is left on the disk", `df -h ${folder}`],
    "read-only": ["it is not writable", `ls -ld ${folder}`],
    damaged: ["it is damaged", `rm -r ${folder}; the next search rebuilds it`],
    another: ["this version of harness cannot read it as it is", "harness index"],
    busy: [`another harness has kept it locked for ${PATIENCE_MS / 1000} s`, "try again when it is done"],
    taken: [
      "something that is not a file has the name of one of its files",
      `ls -ld ${folder}/*; move it away`,
    ],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[troubleOf(thrown)] as [string, string];
  return new HarnessError(
    EXIT.failed,
    `search index in ${folder}: ${why} (${reasonOf(thrown)})`,
    remedy,
    thrown,
  );
}

/** Opens a database without changing anything. */
export function openedToRead(file: string): DatabaseSync {
  try {
    return openedAtOnce(new DatabaseSync(file, { readOnly: true, timeout: PATIENCE_MS }));
  } catch (thrown) {
    // In a read-only place there is no writer, so SQLite need not look for one. But that would ignore changes left in a
    // journal, so a database with a journal is refused.
    if (!["read-only", "unreachable"].includes(troubleOf(thrown)) || hasJournal(file)) throw thrown;
    const url = pathToFileURL(file);
    url.searchParams.set("immutable", "1");
    return openedAtOnce(new DatabaseSync(url, { readOnly: true }));
  }
}

/** SQLite opens the file at the first query. */
function openedAtOnce(sqlite: DatabaseSync): DatabaseSync {
  try {
    sqlite.prepare("SELECT count(*) FROM sqlite_schema").get();
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

const hasJournal = (file: string): boolean =>
  (lstatSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;

/**
 * Moves a damaged database, or its folder, out of the way and returns its new name. Whatever was set aside there before
 * is deleted: an index can always be rebuilt from the files.
 */
export function setAside(place: string): string {
  const aside = `${place}.damaged`;
  rmSync(aside, { recursive: true, force: true });
  for (const suffix of ["-wal", "-shm"]) rmSync(place + suffix, { force: true });
  if (existsSync(place)) renameSync(place, aside);
  return aside;
}

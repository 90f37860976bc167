import { existsSync, lstatSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { type DiskTrouble, diskTroubleOf, sqliteCodeOf } from "../core/disk-trouble.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

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

/** The result of `work`, or the reason of the signal once it aborts, even if the work ignores the signal. */
export async function inTime<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: left, reject: leave } = Promise.withResolvers<never>();
  const ended = (): void => leave(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", ended, { once: true });
  try {
    return await Promise.race([work(), left]);
  } finally {
    signal.removeEventListener("abort", ended);
  }
}

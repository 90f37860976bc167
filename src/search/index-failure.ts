import { existsSync, lstatSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { type DiskTrouble, diskTroubleOf, sqliteCodeOf } from "../core/disk-trouble.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** How long one process waits for another that writes. */
export const PATIENCE_MS = 10_000;

/** An intact file whose format this version cannot read; unlike any damage that a database may have. */
type Trouble = DiskTrouble | "another";

export function troubleOf(thrown: unknown): Trouble {
  if (thrown instanceof AnotherIndex) return "another";
  // What was compressed here and cannot be expanded, or encoded and cannot be read.
  if (thrown instanceof DamagedIndex || thrown instanceof RangeError) return "damaged";
  if (/^Z(?:STD)?_/.test(errorCode(thrown) ?? "")) return "damaged";
  // What is asked is always the same: where SQLite knows no such table or column, they were other ones that it read.
  return sqliteCodeOf(thrown) === SQL_ERROR ? "damaged" : diskTroubleOf(thrown);
}

const SQL_ERROR = 1;

/** Thrown where the bytes of the index do not say what they must. */
export class DamagedIndex extends Error {
  override readonly name = "DamagedIndex";
}

/** Thrown to who only reads, where what is there is nothing that this version could read. */
export class AnotherIndex extends Error {
  override readonly name = "AnotherIndex";
}

/** The failure in a person's words; an abort and what is a HarnessError already stay what they are. */
export function indexFailure(thrown: unknown, folder: string): unknown {
  if (thrown instanceof HarnessError) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") return thrown;
  const [why, remedy] = {
    full: ["no space is left on the disk", `df -h ${folder}`],
    "read-only": ["it may not be written", `ls -ld ${folder}`],
    damaged: ["it is damaged", `rm -r ${folder}; the next search makes it again`],
    another: ["it is none that can be read as it is", "harness index"],
    busy: [`another harness has kept it locked for ${PATIENCE_MS / 1000} s`, "try again when it is done"],
    taken: ["something that is no file has the name of one", `ls -ld ${folder}/*; move it away`],
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

/** A database that this process changes nothing of. */
export function openedToRead(file: string): DatabaseSync {
  try {
    return looked(new DatabaseSync(file, { readOnly: true, timeout: PATIENCE_MS }));
  } catch (thrown) {
    // Where nothing may be written there is no writer either, and SQLite need not look for one. What one has left in
    // its journal would be passed over then: that is no answer.
    if (!["read-only", "unreachable"].includes(troubleOf(thrown)) || hasJournal(file)) throw thrown;
    const url = pathToFileURL(file);
    url.searchParams.set("immutable", "1");
    return looked(new DatabaseSync(url, { readOnly: true }));
  }
}

/** It is opened at the first look. */
function looked(sqlite: DatabaseSync): DatabaseSync {
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
 * Moves a damaged database, or a folder of one, out of the way; under which name it is then. What was set aside before
 * makes room for it: all of an index comes from files.
 */
export function setAside(place: string): string {
  const aside = `${place}.damaged`;
  rmSync(aside, { recursive: true, force: true });
  for (const beside of ["-wal", "-shm"]) rmSync(place + beside, { force: true });
  if (existsSync(place)) renameSync(place, aside);
  return aside;
}

/** What comes of work, or the reason of the signal once that is aborted: also of work that does not heed it. */
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

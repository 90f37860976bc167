import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { FileLock } from "../../platform/lock.ts";
import { privateFile } from "../../platform/sqlite-connection.ts";
import { indexFailure, troubleOf } from "../index-failure.ts";

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

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { privateFile } from "../../sqlite/private-file.ts";
import { indexFailure, troubleOf } from "../index-failure.ts";

/** Between two looks whether the other one is done. */
const STEP_MS = 50;

/** One process at a time; SQLite's own lock on a file that stays empty, so that a kill frees it. */
export async function takeWriter(
  folder: string,
  { patienceMs, signal }: { readonly patienceMs: number; readonly signal: AbortSignal },
): Promise<Disposable> {
  const until = performance.now() + patienceMs;
  for (;;) {
    const lock = tryWriter(folder);
    if (lock !== undefined) return lock;
    signal.throwIfAborted();
    if (performance.now() >= until) throw taken(folder);
    await sleep(STEP_MS);
  }
}

/** Where whoever has it is done in milliseconds, perhaps with the folder gone; meanwhile nothing else of this process goes on. */
export function waitForWriter(folderOf: () => string): Disposable {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const lock = tryWriter(folderOf());
    if (lock !== undefined) return lock;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  throw taken(folderOf());
}

const MOST_ATTEMPTS = 200;
const PAUSE_MS = 10;

/** Undefined where somebody else has it. */
export function tryWriter(folder: string): Disposable | undefined {
  const sqlite = lockFile(folder);
  try {
    sqlite.exec("BEGIN EXCLUSIVE");
    writeFileSync(path.join(folder, "writer.json"), JSON.stringify({ pid: process.pid, since: Date.now() }));
  } catch (thrown) {
    sqlite.close();
    if (troubleOf(thrown) === "busy") return undefined;
    throw indexFailure(thrown, folder);
  }
  return {
    [Symbol.dispose]: () => sqlite.close(),
  };
}

export const lockFileIn = (folder: string): string => path.join(folder, "writer.lock");

function lockFile(folder: string): DatabaseSync {
  try {
    return new DatabaseSync(privateFile(lockFileIn(folder)), { timeout: 0 });
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}

function taken(folder: string): HarnessError {
  const who = writerOf(folder);
  const since = who === null ? "" : ` (process ${who.pid}, since ${new Date(who.since).toISOString()})`;
  return new HarnessError(
    EXIT.failed,
    `another harness is writing this index${since}`,
    "try again when it is done; harness search answers from what is there meanwhile",
  );
}

interface Writer {
  readonly pid: number;
  readonly since: number;
}

/** Who wrote last; whether it still does, only the lock says. */
function writerOf(folder: string): Writer | null {
  try {
    const { pid, since } = JSON.parse(readFileSync(path.join(folder, "writer.json"), "utf8")) as Writer;
    return Number.isSafeInteger(pid) && Number.isSafeInteger(since) ? { pid, since } : null;
  } catch {
    return null;
  }
}

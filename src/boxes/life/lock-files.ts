import { randomBytes } from "node:crypto";
import { chmod, readdir, readFile, rename, unlink, writeFile } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Owner } from "../box-labels.ts";
import type { Claim } from "./owner.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * A lock is a file whose name contains its owner and a nonce, so that the lock of a dead owner is recognized and
 * removed without reading it, and no other file ever gets that name. A lock appears whole (written aside, then renamed)
 * and is never renamed again; a second file `.held` says that its owner has won the lock and is not just asking for it.
 */
export interface LockName {
  readonly stem: string;
  readonly owner: Owner;
}

export interface LockFile extends LockName {
  readonly held: boolean;
}

export interface LockEntry {
  readonly claim: Claim;
  /** For people; no decision depends on it. */
  readonly since: string;
}

const entry: z.ZodType<LockEntry> = z.object({
  claim: z.object({ path: z.string(), self: z.string(), above: z.array(z.string()), write: z.boolean() }),
  since: z.string(),
});

export const locksIn = (stateDir: string): string => path.join(stateDir, "locks");

export function newName(owner: Owner): LockName {
  return { stem: `${owner.pid}-${owner.start}-${owner.boot}-${randomBytes(8).toString("hex")}`, owner };
}

/** The owner named by one of our files; undefined for any other file. */
export function ownerOf(file: string): LockName | undefined {
  const match = /^((\d+)-(\d+)-([\w-]+)-[0-9a-f]{16})\.(?:lock|held|new)$/.exec(file);
  const [, stem, pid, start, boot] = match ?? [];
  return stem === undefined || start === undefined || boot === undefined
    ? undefined
    : { stem, owner: { pid: Number(pid), start, boot } };
}

export async function announce(folder: string, { stem }: LockName, content: LockEntry): Promise<void> {
  const [aside, file] = [path.join(folder, `${stem}.new`), path.join(folder, `${stem}.lock`)];
  try {
    makeFolder(folder);
    await chmod(folder, 0o700);
    await writeFile(aside, JSON.stringify(content), { flag: "wx", mode: 0o600 });
    await rename(aside, file);
  } catch (thrown) {
    await unlink(aside).catch(() => undefined);
    throw unusable(folder, thrown);
  }
}

export async function markHeld(folder: string, { stem }: LockName): Promise<void> {
  await writeFile(path.join(folder, `${stem}.held`), "", { mode: 0o600 }).catch((thrown: unknown) => {
    throw unusable(folder, thrown);
  });
}

/** The lock is removed first: if the process dies in between, the remaining file has no meaning. */
export async function withdraw(folder: string, { stem }: LockName): Promise<void> {
  for (const kind of ["lock", "held", "new"])
    await unlink(path.join(folder, `${stem}.${kind}`)).catch((thrown: unknown) => {
      if (errorCode(thrown) !== "ENOENT") throw unusable(folder, thrown);
    });
}

export async function filesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw unusable(folder, thrown);
  });
}

export function locksAmong(files: readonly string[]): readonly LockFile[] {
  const all = new Set(files);
  return files
    .filter((file) => file.endsWith(".lock"))
    .flatMap((file) => ownerOf(file) ?? [])
    .map((name) => ({ ...name, held: all.has(`${name.stem}.held`) }));
}

/** Undefined if the lock was released meanwhile. An unreadable lock is "odd" and compatible with nothing. */
export async function readLock(folder: string, { stem }: LockName): Promise<LockEntry | "odd" | undefined> {
  try {
    return entry.parse(JSON.parse(await readFile(path.join(folder, `${stem}.lock`), "utf8")));
  } catch (thrown) {
    return errorCode(thrown) === "ENOENT" ? undefined : "odd";
  }
}

function unusable(folder: string, thrown: unknown): HarnessError {
  const full = ["ENOSPC", "EDQUOT"].includes(errorCode(thrown) ?? "");
  const remedy = full
    ? `free some space there: df -h ${folder}`
    : `make sure that you can write to this folder: ls -ld ${folder}   (or: XDG_STATE_HOME=DIR)`;
  const what = full ? "no space for a lock" : "the lock cannot be taken";
  return new HarnessError(EXIT.sandbox, `${what}: ${reasonOf(thrown)}`, remedy, thrown);
}

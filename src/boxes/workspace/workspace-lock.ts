import { randomBytes } from "node:crypto";
import { chmod, readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { makeFolder } from "../../platform/folders.ts";
import { liveness, type Owner, thisProcess } from "../box-record.ts";

interface LockRequest {
  /** The workspace's real path, and its identity as the caller saw it. */
  readonly path: string;
  readonly dev: number | bigint;
  readonly ino: number | bigint;
  readonly write: boolean;
  readonly stateDir: string;
}

interface Rival extends LockFile {
  readonly entry: LockEntry | "odd";
}

/** How long to wait for others that have asked and neither won nor lost yet; they need milliseconds. */
const PATIENCE_MS = 2000;
const POLL_MS = 4;

/** Allows one writer or many readers for a workspace. */
export async function lockWorkspace(request: LockRequest): Promise<AsyncDisposable> {
  return lockClaim(request.stateDir, await claimOf(request), inUse);
}

/** The process that has the lock. */
export interface Holder {
  readonly pid: number;
  readonly since: string;
}

/**
 * Locks a session for one process alone, whether the process works on the session or deletes it. The lock's name is not
 * the path of any folder, so it never clashes with a workspace.
 */
export const lockSession = (
  stateDir: string,
  session: string,
  refusal: (holder: Holder) => HarnessError,
): Promise<AsyncDisposable> => {
  const name = `session:${session}`;
  return lockClaim(stateDir, { path: name, self: name, above: [], write: true }, (_, { owner, entry }) =>
    refusal({ pid: owner.pid, since: entry === "odd" ? "?" : entry.since }),
  );
};

/** What a run claims of a workspace. */
export interface Claim {
  /** Absolute, with links resolved. */
  readonly path: string;
  /** dev:inode of the workspace and of every folder above it: the same folder mounted elsewhere is recognized. */
  readonly self: string;
  readonly above: readonly string[];
  readonly write: boolean;
}

/** Readers share; a writer excludes all others from its folder, from all folders above it and from all inside it. */
export const conflicts = (a: Claim, b: Claim): boolean => (a.write || b.write) && overlap(a, b);

const overlap = (a: Claim, b: Claim): boolean =>
  a.self === b.self ||
  a.above.includes(b.self) ||
  b.above.includes(a.self) ||
  isInside(a.path, b.path) ||
  isInside(b.path, a.path);

/**
 * A process first announces its claim in a file and then looks at the other claims: of two that clash, the later
 * process always sees the other claim, so never do both win. If both ask at once, the lower name waits and the other
 * steps back. Files of dead processes do not count, so nothing has to be taken over.
 */
async function lockClaim(stateDir: string, claim: Claim, refusal: Refusal): Promise<AsyncDisposable> {
  const folder = locksIn(stateDir);
  const name = newName(await thisProcess());
  const entry = { claim, since: new Date().toISOString() };
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    await announce(folder, name, entry);
    try {
      const ahead = await contend({ folder, name, claim, deadline, refusal });
      if (ahead.length === 0) {
        await markHeld(folder, name);
        return { [Symbol.asyncDispose]: () => withdraw(folder, name) };
      }
      await withdraw(folder, name);
      await untilDecided(folder, ahead, deadline);
    } catch (thrown) {
      await withdraw(folder, name).catch(() => undefined);
      throw thrown;
    }
  }
}

type Refusal = (claim: Claim, holder: Rival) => HarnessError;

interface Contest {
  readonly refusal: Refusal;
  readonly folder: string;
  readonly name: LockName;
  readonly claim: Claim;
  readonly deadline: number;
}

/** Empty if the lock was won, else the rivals to step back for. */
async function contend({ folder, name, claim, deadline, refusal }: Contest): Promise<readonly Rival[]> {
  for (;;) {
    const rivals = await rivalsOf(folder, name, claim);
    const holder = rivals.find(({ held }) => held);
    const [first] = rivals;
    if (holder !== undefined) throw refusal(claim, holder);
    if (first === undefined) return [];
    if (performance.now() > deadline) throw refusal(claim, first);
    const ahead = rivals.filter(({ stem }) => stem < name.stem);
    if (ahead.length > 0) return ahead;
    await sleep(POLL_MS);
  }
}

async function untilDecided(folder: string, ahead: readonly Rival[], deadline: number): Promise<void> {
  const waited = new Set(ahead.map(({ stem }) => stem));
  const alive = liveness();
  while (performance.now() < deadline) {
    const asking = locksAmong(await filesIn(folder)).filter(({ stem, held }) => waited.has(stem) && !held);
    const living = await Promise.all(asking.map(({ owner }) => alive(owner)));
    if (!living.includes(true)) return;
    await sleep(POLL_MS);
  }
}

/** Claims of living processes that clash with this claim. */
async function rivalsOf(folder: string, own: LockName, claim: Claim): Promise<readonly Rival[]> {
  const alive = liveness();
  const others = locksAmong(await filesIn(folder)).filter(({ stem }) => stem !== own.stem);
  const rivals = others.map(async (file): Promise<readonly Rival[]> => {
    if (!(await alive(file.owner))) return [];
    const entry = await readLock(folder, file);
    if (entry === undefined || (entry !== "odd" && !conflicts(claim, entry.claim))) return [];
    return [{ ...file, entry }];
  });
  return (await Promise.all(rivals)).flat();
}

async function claimOf({ path: workspace, dev, ino, write }: LockRequest): Promise<Claim> {
  const above: string[] = [];
  for (let folder = workspace; folder !== path.dirname(folder);) {
    folder = path.dirname(folder);
    const found = await stat(folder, { bigint: true }).catch(() => undefined);
    if (found !== undefined) above.push(`${found.dev}:${found.ino}`);
  }
  return { path: workspace, self: `${dev}:${ino}`, above, write };
}

function inUse(claim: Claim, { owner, entry }: Rival): HarnessError {
  if (entry === "odd")
    return new HarnessError(
      EXIT.sandbox,
      `${claim.path} may be in use by another run (pid ${owner.pid}): its lock cannot be read`,
      `wait for it to end; harness sandbox ls shows what runs`,
    );
  const where = entry.claim.path === claim.path ? "" : ` in ${entry.claim.path}`;
  // Nobody may run beside a writer; only another reader may run beside readers.
  const alternative = entry.claim.write ? "" : ", or run beside it: --mode read-only, or --isolation overlay";
  return new HarnessError(
    EXIT.sandbox,
    `${claim.path} is in use by another run${where} (pid ${owner.pid}, since ${entry.since})`,
    `wait for it to end, or leave it if it is a chat or an editor (harness sandbox ls shows it)${alternative}`,
  );
}

/**
 * A lock is a file whose name contains its owner and a nonce, so that the lock of a dead owner is recognized and
 * removed without reading it, and no other file ever gets that name. A lock appears whole (written aside, then renamed)
 * and is never renamed again; a second file `.held` says that its owner has won the lock and is not just asking for it.
 */
interface LockName {
  readonly stem: string;
  readonly owner: Owner;
}

interface LockFile extends LockName {
  readonly held: boolean;
}

interface LockEntry {
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
async function withdraw(folder: string, { stem }: LockName): Promise<void> {
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

function locksAmong(files: readonly string[]): readonly LockFile[] {
  const all = new Set(files);
  return files
    .filter((file) => file.endsWith(".lock"))
    .flatMap((file) => ownerOf(file) ?? [])
    .map((name) => ({ ...name, held: all.has(`${name.stem}.held`) }));
}

/** Undefined if the lock was released meanwhile. An unreadable lock is "odd" and compatible with nothing. */
async function readLock(folder: string, { stem }: LockName): Promise<LockEntry | "odd" | undefined> {
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

import { lstat, stat } from "node:fs/promises";
import path from "node:path";
import {
  type LookedAtTree,
  verdictOf,
  VET_EXIT,
  type VetComparison,
  type VetReport,
} from "../../core/behaviour.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { readRegular, TooLargeError } from "../../platform/safe-files.ts";
import { changesBetween, compareReports } from "../../vet/compare-versions.ts";
import { MAX_LOCK } from "../../vet/manifests.ts";
import { brokenLock, type LockForm, lockFormNamed, lockFormOf, usualName } from "../../vet/lock-forms.ts";
import { type TreeLook, lookAt } from "../../vet/look/look-at.ts";

/** Two locks of one kind, compared without running a command: what the later one installs in addition. */

interface LockFile {
  /** As the user named it. */
  readonly name: string;
  readonly form: LockForm;
  readonly bytes: Buffer;
}

type Both<T> = readonly [T, T];

const EXAMPLE = "harness vet --compare old/package-lock.json new/package-lock.json";

const refused = (message: string, cause?: unknown): HarnessError =>
  new HarnessError(EXIT.usage, message, EXAMPLE, cause);

/** Undefined if neither is a lock. A single lock, two kinds, and a file that cannot be read to its end are refused. */
export async function lockFiles([one, other]: Both<string>): Promise<Both<LockFile> | undefined> {
  const [before, after] = [await lockFile(one), await lockFile(other)];
  if (before === undefined && after === undefined) return undefined;
  if (before === undefined || after === undefined) {
    const [lock, not] = before === undefined ? [after, one] : [before, other];
    const kind = lock === undefined ? "" : usualName(lock.form);
    throw refused(
      `${lock?.name ?? ""} is a lock file (${kind}), but ${not} ${await whatElse(not)}: a lock file can only be compared with another`,
    );
  }
  if (before.form !== after.form)
    throw refused(
      `${one} and ${other} are lock files of different kinds: ${usualName(before.form)} and ${usualName(after.form)}`,
    );
  return [before, after];
}

async function whatElse(name: string): Promise<string> {
  const stats = await stat(name).catch(() => undefined);
  if (stats !== undefined)
    return stats.isDirectory()
      ? "is a folder"
      : stats.isFile()
        ? "is not a known lock file"
        : "is not a file";
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(name) ? "is an address" : "does not exist";
}

async function lockFile(name: string): Promise<LockFile | undefined> {
  const lower = path.basename(name).toLowerCase();
  const stats = await stat(name).catch(() => undefined);
  if (stats?.isFile() !== true) {
    const isNamed = lockFormNamed(lower) !== undefined && stats?.isDirectory() !== true;
    // A pipe would block, and a dangling link cannot be read.
    if (isNamed && (await lstat(name).catch(() => undefined)) !== undefined)
      throw refused(`${name} is not a file`);
    return undefined;
  }
  const bytes = await bytesOf(name, lockFormNamed(lower) !== undefined);
  if (bytes === undefined) return undefined;
  const text = bytes.includes(0) ? undefined : bytes.toString("utf8");
  const form = text === undefined ? lockFormNamed(lower) : lockFormOf(lower, text);
  if (form === undefined) return undefined;
  const broken = text === undefined ? "it is not text" : brokenLock(form, text);
  if (broken !== undefined) throw refused(`${name} is not a complete ${usualName(form)}: ${broken}`);
  return { name, form, bytes };
}

/** Undefined for an unreadable file whose name is not that of a lock. */
async function bytesOf(name: string, isLock: boolean): Promise<Buffer | undefined> {
  try {
    return await readRegular(name, { links: "follow", max: MAX_LOCK });
  } catch (thrown) {
    if (!isLock) return undefined;
    const why =
      thrown instanceof TooLargeError
        ? `it is larger than ${MAX_LOCK / 2 ** 20} MiB`
        : errorCode(thrown) === "EACCES"
          ? "you may not read it"
          : reasonOf(thrown);
    throw refused(`${name}: ${why}`, thrown);
  }
}

const NOT_SEEN =
  "nothing was run and no package was fetched: only the two lock files were compared, not the contents of the packages";

export async function locksCompared(
  [before, after]: Both<LockFile>,
  signal: AbortSignal,
): Promise<VetComparison> {
  // Both locks get the same name, so that an entry in both is recognised.
  const own = path.basename(after.name);
  const as = lockFormNamed(own.toLowerCase()) === after.form ? own : usualName(after.form);
  const looking = (lock: LockFile): Promise<TreeLook> =>
    lookAt(treeOf(as, lock.bytes), { signal, obeys: () => undefined });
  const [was, is] = [await looking(before), await looking(after)];
  return compareReports(reportOf(before, was), reportOf(after, is), changesBetween(was.facts, is.facts));
}

/** A tree that contains only the lock. */
function treeOf(name: string, bytes: Buffer): LookedAtTree {
  return {
    async *entries(signal) {
      await Promise.resolve();
      signal.throwIfAborted();
      yield { path: name, kind: "file", mode: 0o644, size: bytes.length };
    },
    read: (file, limit, from = 0) =>
      Promise.resolve(file === name ? bytes.subarray(from, from + limit) : undefined),
  };
}

function reportOf({ name, bytes }: LockFile, { findings }: TreeLook): VetReport {
  const verdict = verdictOf(findings);
  return {
    verdict,
    exit_code: VET_EXIT[verdict],
    repository: { name, kind: "lock", commit: null, files: 1, bytes: bytes.length },
    findings,
    steps: [],
    granted: [],
    runtime: "none",
    unseen: [NOT_SEEN],
    took_ms: 0,
    own_ms: 0,
  };
}

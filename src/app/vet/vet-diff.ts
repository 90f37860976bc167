/** What changes between two versions: of two repositories, two locks, two reports, or two commits of one repository. */
import { lstat, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import {
  type LookedAtTree,
  verdictOf,
  VET_EXIT,
  type VetComparison,
  type VetReport,
} from "../../core/behaviour.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { changesBetween, compareReports, type TreeFacts } from "../../vet/compare-versions.ts";
import { lookAt, type TreeLook } from "../../vet/look/look-at.ts";
import { touches } from "../../vet/step-plan.ts";
import { copyRepository, git, stageRepository } from "./staging.ts";
import { isBare, type VetOptions } from "./vet-box.ts";
import { reportOf, timedLook, tryTree, vetWithFacts } from "./vet-repository.ts";
import { readRegular, TooLargeError } from "../../platform/safe-files.ts";
import {
  brokenLock,
  type LockForm,
  lockFormNamed,
  lockFormOf,
  MAX_LOCK,
  usualName,
} from "../../vet/manifests.ts";

interface Side {
  readonly report: VetReport;
  /** Facts of its tree; a saved report has none. */
  readonly facts: TreeFacts | undefined;
}

/** Examines and runs each side, or reads a lock or a saved answer of `--json`; new findings decide the verdict. */
export async function vetCompared(
  options: VetOptions,
  [one, other]: readonly [string, string],
  signal: AbortSignal,
): Promise<VetComparison> {
  const locks = await lockFiles([one, other]);
  if (locks !== undefined) return locksCompared(locks, signal);
  const sideOf = async (name: string): Promise<Side> => {
    const report = await savedReport(name);
    return report === undefined
      ? vetWithFacts(options, { name, command: null }, signal)
      : { report, facts: undefined };
  };
  const [before, after] = [await sideOf(one), await sideOf(other)];
  if (before.facts !== undefined && after.facts !== undefined)
    return compareReports(before.report, after.report, changesBetween(before.facts, after.facts));
  const comparison = compareReports(before.report, after.report);
  return { ...comparison, unseen: [...comparison.unseen, SAVED] };
}

const SAVED =
  "only the findings and commands of a saved report are compared, not lock entries, their integrity and hosts, or the files that the host obeys";

const MAX_REPORT = 256 * 2 ** 20;

/** Undefined if the file is no report. */
async function savedReport(name: string): Promise<VetReport | undefined> {
  const stats = await lstat(name).catch(() => undefined);
  if (stats?.isFile() !== true || stats.size > MAX_REPORT || !name.endsWith(".json")) return undefined;
  try {
    const value = JSON.parse(await readFile(name, "utf8")) as Partial<VetReport> | null;
    const isReport =
      Array.isArray(value?.findings) &&
      Array.isArray(value.steps) &&
      Array.isArray(value.unseen) &&
      typeof value.verdict === "string" &&
      typeof value.repository === "object";
    if (isReport) return value as VetReport;
  } catch (thrown) {
    throw notSaved(name, reasonOf(thrown), thrown);
  }
  throw notSaved(name, "it is neither a report of harness vet --json nor a known lock file");
}

const notSaved = (name: string, why: string, cause?: unknown): HarnessError =>
  new HarnessError(EXIT.usage, `${name}: ${why}`, "harness vet --json REPO > report.json", cause);

interface DiffRequest {
  /** `BASE..HEAD`, `BASE...HEAD` for what HEAD adds since they diverged, or `BASE`. */
  readonly range: string;
  readonly name: string;
}

interface Ends {
  readonly base: string;
  readonly head: string;
  readonly changed: readonly string[];
}

/**
 * Extracts both trees in the box, only from the repository's objects; runs the commands of the later tree that the
 * change affects.
 */
export async function vetDiff(
  options: VetOptions,
  { range, name }: DiffRequest,
  signal: AbortSignal,
): Promise<VetReport> {
  const started = performance.now();
  const [from, to, apart] = endsOf(range);
  const folder = await realpath(name).catch((thrown: unknown) => {
    throw new HarnessError(
      EXIT.usage,
      `${name}: ${reasonOf(thrown)}`,
      "harness vet --diff main..HEAD FOLDER",
      thrown,
    );
  });
  const own = await lstat(path.join(folder, ".git")).catch(() => undefined);
  if (own === undefined && !(await isBare(folder)))
    throw new HarnessError(
      EXIT.usage,
      `${name} is not a git repository, so it has no commits to compare`,
      "harness vet OLDER NEWER   (two folders, archives or addresses)",
    );
  options.onProgress({ now: "checking out both commits" });
  const ends: { found?: Ends } = {};
  const fill = async (box: OwnedBox) => {
    ends.found = await extractBoth(box, { folder, from, to, apart }, signal);
    return { commit: ends.found.head, findings: [], notRun: null };
  };
  await using both = await stageRepository(options, { granted: [], fill }, signal);
  const { base, head, changed } = ends.found ?? { base: "", head: "", changed: [] };
  const [before, after] = [path.join(both.tree, "base"), path.join(both.tree, "head")];
  const { looked } = await timedLook(options, before, signal);
  const tried = await tryTree(
    options,
    {
      tree: after,
      staged: { commit: head, notRun: changed.length === 0 ? "nothing differs" : null },
      command: null,
      chooses: (step) => touches(step, changed),
    },
    signal,
  );
  const findings = changesBetween(looked.facts, tried.looked.facts);
  const untouched = `only what the change from ${base.slice(0, 12)} touches was run: ${changed.length} files differ`;
  return reportOf({
    ...tried,
    looked: { ...tried.looked, findings },
    unseen: [untouched, ...tried.unseen],
    options,
    kind: "git",
    name: `${name} ${range}`,
    staged: undefined,
    started,
  });
}

function endsOf(range: string): readonly [from: string, to: string, apart: boolean] {
  const [, from = "", dots = "", to = ""] = /^(.+?)(?:(\.{2,3})(.*))?$/s.exec(range) ?? [];
  for (const name of [from, to])
    if (!/^(?!-)[\w./@{}^~+-]{0,200}$/.test(name))
      throw new HarnessError(
        EXIT.usage,
        `${JSON.stringify(name)} cannot be the name of a commit`,
        "harness vet --diff main..HEAD",
      );
  return [from, to === "" ? "HEAD" : to, dots === "..."];
}

interface Taking {
  readonly folder: string;
  readonly from: string;
  readonly to: string;
  readonly apart: boolean;
}

/** Extracts into `tree/base` and `tree/head`. The repository's own settings do not count: only its objects are used. */
async function extractBoth(
  box: OwnedBox,
  { folder, from, to, apart }: Taking,
  signal: AbortSignal,
): Promise<Ends> {
  await copyRepository(box, folder, signal);
  const source = `--git-dir=${box.workspace}/source.git`;
  const commitAt = async (name: string): Promise<string> =>
    (
      await git(box, [source, "rev-parse", "--verify", "--end-of-options", `${name}^{commit}`], signal)
    ).trim();
  const head = await commitAt(to);
  const own = `${box.workspace}/own.git`;
  await git(box, ["init", "--quiet", "--bare", "--template=", own], signal);
  const script = `mkdir -p ${quoted(`${own}/objects/info`)} ${quoted(`${box.workspace}/tree/base`)} ${quoted(`${box.workspace}/tree/head`)} && echo ${quoted(`${box.workspace}/source.git/objects`)} > ${quoted(`${own}/objects/info/alternates`)} && { [ ! -f ${quoted(`${box.workspace}/source.git/shallow`)} ] || cp ${quoted(`${box.workspace}/source.git/shallow`)} ${quoted(own)}/; }`;
  await box.exec({ words: ["sh", "-c", script], timeoutMs: 20_000, keep: { head: 4096, tail: 0 } }, signal);
  const at = `--git-dir=${own}`;
  const first = await commitAt(from);
  const base = apart ? (await git(box, [at, "merge-base", first, head], signal)).trim() : first;
  for (const [commit, name] of [
    [base, "base"],
    [head, "head"],
  ] as const) {
    const place = [at, `--work-tree=${box.workspace}/tree/${name}`];
    await git(box, [...place, "read-tree", commit], signal);
    await git(box, [...place, "checkout-index", "--all", "--force", "--quiet"], signal);
  }
  const names = await git(
    box,
    [at, "diff-tree", "-r", "-z", "--no-renames", "--name-only", base, head],
    signal,
  );
  return { base, head, changed: names.split("\0").filter((each) => each !== "") };
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

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
async function lockFiles([one, other]: Both<string>): Promise<Both<LockFile> | undefined> {
  const [before, after] = [await lockFile(one), await lockFile(other)];
  if (before === undefined && after === undefined) return undefined;
  if (before === undefined || after === undefined) {
    const [lock, not] = before === undefined ? [after, one] : [before, other];
    const kind = lock === undefined ? "" : usualName(lock.form);
    throw refused(
      `${lock?.name ?? ""} is a lock file (${kind}), but ${not} ${await describePath(not)}: a lock file can only be compared with another`,
    );
  }
  if (before.form !== after.form)
    throw refused(
      `${one} and ${other} are lock files of different kinds: ${usualName(before.form)} and ${usualName(after.form)}`,
    );
  return [before, after];
}

async function describePath(name: string): Promise<string> {
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

/** Compares two locks of one kind without running a command: what the later one installs in addition. */
async function locksCompared([before, after]: Both<LockFile>, signal: AbortSignal): Promise<VetComparison> {
  // Both locks get the same name, so that an entry in both is recognised.
  const own = path.basename(after.name);
  const as = lockFormNamed(own.toLowerCase()) === after.form ? own : usualName(after.form);
  const looking = (lock: LockFile): Promise<TreeLook> =>
    lookAt(treeOf(as, lock.bytes), { signal, obeys: () => undefined });
  const [was, is] = [await looking(before), await looking(after)];
  return compareReports(lockReport(before, was), lockReport(after, is), changesBetween(was.facts, is.facts));
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

function lockReport({ name, bytes }: LockFile, { findings }: TreeLook): VetReport {
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

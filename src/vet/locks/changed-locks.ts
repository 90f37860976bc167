import type { Found, LookRule } from "../look/rules.ts";
import { hostOf, isFromRegistry } from "./judge-locks.ts";
import { entryText, type LockEntry, OF_GO_MOD } from "./lock-entry.ts";

/** Compares the entries of later locks with those of earlier ones. Pure. */

interface Known {
  /** Package, version and file → the entry. */
  readonly exact: ReadonlyMap<string, LockEntry>;
  readonly anywhere: ReadonlyMap<string, LockEntry>;
  readonly packages: Packages;
  readonly hosts: ReadonlySet<string>;
  /** All entries from a registry had an integrity. */
  readonly proved: boolean;
}

type Packages = ReadonlyMap<string, readonly LockEntry[]>;

const packageOf = ({ ecosystem, name }: LockEntry): string => `${ecosystem} ${name}`;
const versionOf = (entry: LockEntry): string => `${packageOf(entry)} ${entry.version}`;

export function changedLocks(before: readonly LockEntry[], after: readonly LockEntry[], found: Found): void {
  const packages = Map.groupBy(before, packageOf);
  const fixed = before.filter(isFromRegistry);
  const known: Known = {
    exact: new Map(before.map((each) => [`${versionOf(each)} ${each.from}`, each])),
    anywhere: new Map(before.map((each) => [versionOf(each), each])),
    packages,
    hosts: new Set(before.map(({ resolved }) => hostOf(resolved))),
    proved: fixed.length > 0 && fixed.every(({ integrity }) => integrity !== ""),
  };
  const now = Map.groupBy(after, packageOf);
  for (const entry of after) {
    const report = (rule: LookRule, words: string): void =>
      found.add(rule, `${entryText(entry)} ${words}`, placeOf(entry));
    const host = hostOf(entry.resolved);
    if (host !== "" && before.length > 0 && !known.hosts.has(host))
      found.add("change.lock-host", `${entryText(entry)}: ${entry.resolved}`, placeOf(entry));
    const was = packages.get(packageOf(entry)) ?? [];
    if (entry.runs === true && !was.some(({ runs }) => runs === true))
      report(
        "change.script",
        "runs code when it is installed, according to the lock; no earlier version of it did",
      );
    const old = known.exact.get(`${versionOf(entry)} ${entry.from}`) ?? known.anywhere.get(versionOf(entry));
    if (old !== undefined) sameVersion(old, entry, report);
    else otherVersion(entry, { was, now, known }, found);
  }
  for (const [name, entries] of packages)
    for (const entry of now.has(name) ? [] : entries.filter(isFetched))
      found.add("change.dependency", `${entryText(entry)} is removed`, { path: entry.from });
}

const placeOf = ({ from, line }: LockEntry): { readonly path: string; readonly line?: number } => ({
  path: from,
  ...(line === undefined ? {} : { line }),
});

interface Around {
  /** All earlier entries of the package. */
  readonly was: readonly LockEntry[];
  readonly now: Packages;
  readonly known: Known;
}

function otherVersion(entry: LockEntry, { was, now, known }: Around, found: Found): void {
  const newVersions = new Set(now.get(packageOf(entry))?.map(({ version }) => version));
  const goneVersions = was.filter(({ version }) => !newVersions.has(version));
  const words =
    was.length === 0
      ? `${entryText(entry)} is new`
      : goneVersions.length === 0
        ? `${entryText(entry)} is new beside ${versionsOf(was)}`
        : `${entry.name} ${versionsOf(goneVersions)} becomes ${entry.version || "any version"}`;
  if (isFetched(entry)) found.add("change.dependency", words, placeOf(entry));
  const others = was.length === 0 ? known.proved : was.some(({ integrity }) => integrity !== "");
  if (entry.integrity === "" && others && isFromRegistry(entry) && !CODE_HOST.test(hostOf(entry.resolved)))
    found.add(
      "change.unproved",
      `${entryText(entry)} has no integrity hash, although ${was.length === 0 ? "all others had one" : "its earlier version had one"}`,
      placeOf(entry),
    );
}

const isFetched = ({ integrity }: LockEntry): boolean => !integrity.startsWith(OF_GO_MOD);

const CODE_HOST = /^(?:github\.com|gitlab\.com|bitbucket\.org)$/;

const versionsOf = (entries: readonly LockEntry[]): string =>
  [...new Set(entries.map(({ version }) => version || "any version"))].join(", ");

type Report = (rule: LookRule, words: string) => void;

/** The contents of a branch change from day to day. */
const MOVING = /^dev-|-dev$/;

function sameVersion(old: LockEntry, now: LockEntry, report: Report): void {
  const [before, after] = [sumsOf(old.integrity), sumsOf(now.integrity)];
  const gained = after.filter((sum) => !before.includes(sum));
  const lost = before.filter((sum) => !after.includes(sum));
  const isOther = gained.some((sum) => lost.some((each) => kindOf(each) === kindOf(sum)));
  if (isOther && now.version !== "" && !MOVING.test(now.version))
    report("change.integrity", "has a different integrity hash than before");
  else if (before.length > 0 && after.length === 0)
    report("change.unproved", "no longer has an integrity hash");
  else if (gained.some((sum) => hasKind(before, sum)))
    report("change.dependency", `has more hashes than before (${gained.length} added)`);
  if (old.resolved !== "" && now.resolved !== "") otherSource(old.resolved, now.resolved, report);
}

const hasKind = (before: readonly string[], sum: string): boolean =>
  before.some((each) => kindOf(each) === kindOf(sum));

function otherSource(old: string, now: string, report: Report): void {
  const moved = hostOf(old) !== hostOf(now) || (isRepository(now) && repositoryOf(old) !== repositoryOf(now));
  if (moved) report("change.source", `comes from ${now}, not from ${old}`);
  else if (isRepository(now) && commitOf(old) !== commitOf(now))
    report("change.dependency", `comes from another commit: ${commitOf(now)}, not ${commitOf(old)}`);
}

const isRepository = (address: string): boolean =>
  /^(?:git|ssh|hg|svn|github:|gitlab:|bitbucket:)|\.git(?:[?#]|$)|\/\/(?:github\.com|gitlab\.com|bitbucket\.org|codeload\.github\.com)\//.test(
    address,
  );

const CODELOAD = /^(https?:\/\/codeload\.github\.com\/[^/]+\/[^/]+)\/[^#]*?\/([^/#]+)$/;

/** The repository of an address, however the address is written and fetched. */
const repositoryOf = (address: string): string =>
  (CODELOAD.exec(address)?.[1] ?? address.replace(/[?#].*$/s, ""))
    .replace(/^(?:[\w+]+:)*(?:\/\/)?(?:[^/@\s]*@)?/, "")
    .replace(/(?<=^[\w.-]+):/, "/")
    .replace(/(?:\.git)?\/?$/, "")
    .toLowerCase();

const commitOf = (address: string): string =>
  CODELOAD.exec(address)?.[2] ?? /#(.*)$/s.exec(address)?.[1] ?? "";

/** Yarn puts the number of its cache before a sum. */
const sumsOf = (integrity: string): readonly string[] =>
  integrity
    .split(/\s+/)
    .filter((sum) => sum !== "")
    .map((sum) => sum.replace(/^\d+(?:c\d+)?\//, ""));

/** Only sums of one kind can be compared. */
const kindOf = (sum: string): string =>
  /^(?:sha\d+|md5|h1|go\.mod)(?=[-:=])/.exec(sum)?.[0] ?? String(sum.length);

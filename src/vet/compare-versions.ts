/** What one version of a repository contains or does that another does not: in reports, trees and locks. Pure. */
import {
  type Finding,
  verdictOf,
  VET_EXIT,
  type VetComparison,
  type VetReport,
  type VetStep,
  type Weight,
} from "../core/behaviour.ts";
import { lastName } from "../core/file-names.ts";
import { visibleLine } from "../core/visible.ts";
import type { Handoff } from "../core/run-record.ts";
import { entryText, type LockEntry, OF_GO_MOD } from "./manifests.ts";
import { Findings, type LookRule } from "./look/looked-at.ts";
import { hostOf, isFromRegistry } from "./judge-locks.ts";

/**
 * What one version of a repository does that another did not. `more`: further findings that are known to be new. Pure.
 */
export function compareReports(
  before: VetReport,
  after: VetReport,
  more: readonly Finding[] = [],
): VetComparison {
  const [was, is] = [keysOf(before.findings), keysOf(after.findings)];
  const known = new Set(more.map(exactly));
  const fresh = [
    ...more,
    ...after.findings.filter((finding) => !was.has(keyOf(finding)) && !known.has(exactly(finding))),
  ]
    .map((finding) => withCommand(finding, after.steps))
    .toSorted((one, other) => WEIGHTS.indexOf(one.weight) - WEIGHTS.indexOf(other.weight));
  const verdict = verdictOf(fresh);
  return {
    verdict,
    exit_code: VET_EXIT[verdict],
    before: { verdict: before.verdict, repository: before.repository },
    after: { verdict: after.verdict, repository: after.repository },
    findings: fresh,
    gone: before.findings.filter((finding) => !is.has(keyOf(finding))),
    changes: changesIn(before, after),
    unseen: [...new Set([...before.unseen, ...after.unseen])],
  };
}

/** Ignores numbers: those of lines, processes, ports and versions change from one version to the next. */
const keyOf = ({ rule, path, text }: Finding): string => `${rule}\n${path ?? text.replaceAll(/\d+/g, "0")}`;

const exactly = ({ rule, path, text }: Finding): string => `${rule}\n${path ?? ""}\n${text}`;

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];

/** A comparison has no steps, so the finding names the command of its step. */
function withCommand({ step, ...finding }: Finding, steps: readonly VetStep[]): Finding {
  const command = step === undefined ? undefined : steps[step]?.command;
  return command === undefined || (finding.by ?? []).length > 0 ? finding : { ...finding, by: [command] };
}

const keysOf = (findings: readonly Finding[]): ReadonlySet<string> => new Set(findings.map(keyOf));

const MAX_LINES = 20;

const commands = (report: VetReport): ReadonlySet<string> =>
  new Set(report.steps.map(({ what, command }) => `${what} command ${command}`));

function changesIn(before: VetReport, after: VetReport): readonly string[] {
  const kinds = KINDS_OF_DEEDS.map(([does, what]) => {
    const all = (report: VetReport): ReadonlySet<string> => new Set(report.steps.flatMap(what));
    return [does, all(before), all(after)] as const;
  });
  return [["has the", commands(before), commands(after)] as const, ...kinds].flatMap(([does, was, is]) => [
    ...changeLines(`now ${does}`, withoutKnown(is, was)),
    ...changeLines(`no longer ${does}`, withoutKnown(was, is)),
  ]);
}

const withoutKnown = (all: ReadonlySet<string>, known: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...all].filter((each) => !known.has(each)));

function changeLines(does: string, what: ReadonlySet<string>): readonly string[] {
  const all = [...what].map((each) => `${does} ${visibleLine(each)}`);
  return all.length <= MAX_LINES
    ? all
    : [...all.slice(0, MAX_LINES), `${does} ${all.length - MAX_LINES} more`];
}

function contactedAddresses({ connections, observed }: VetStep): readonly string[] {
  const addresses = observed.acts.flatMap((act) =>
    (act.kind === "connect" || act.kind === "send") &&
    act.family === "ip" &&
    !/^(?:127\.|::1$)/.test(act.address)
      ? [act.port === null ? act.address : `${act.address}:${act.port}`]
      : [],
  );
  return [...connections.map(({ host, port }) => `${host}:${port}`), ...addresses];
}

const programs = ({ observed }: VetStep): readonly string[] =>
  observed.processes.flatMap(({ words: [program = ""] }) => {
    const name = lastName(program);
    return name === "" ? [] : [name];
  });

const TRANSIENT = /^\/(?:tmp|dev|proc|var\/tmp)\/|\/\.(?:cache|npm)\//;

/** Paths outside of the repository only: what a build makes in it differs in every version. */
function writtenPaths({ observed }: VetStep): readonly string[] {
  return pathsOf(observed.acts, new Set(["write", "make", "remove", "mode"]));
}

function readPaths({ observed }: VetStep): readonly string[] {
  return pathsOf(observed.acts, new Set(["read"]));
}

const pathsOf = (acts: VetStep["observed"]["acts"], kinds: ReadonlySet<string>): readonly string[] =>
  acts.flatMap((act) =>
    "path" in act && kinds.has(act.kind) && isPersonal(act.path) && !TRANSIENT.test(act.path)
      ? [act.path]
      : [],
  );

const isPersonal = (path: string): boolean => /^\/(?:home\/box|root|etc|opt|usr\/local|var|srv)\//.test(path);

const KINDS_OF_DEEDS: readonly (readonly [does: string, what: (step: VetStep) => readonly string[]])[] = [
  ["contacts", contactedAddresses],
  ["runs", programs],
  ["writes", writtenPaths],
  ["changes", ({ changes }) => [...changes.modified, ...changes.deleted]],
  ["reads", readPaths],
];

/** Facts about a tree that are kept to compare it with another. */
export interface TreeFacts {
  /** All findings, also those beyond the number that is shown. */
  readonly findings: readonly Finding[];
  /** Path and name → the text of what runs by itself. */
  readonly scripts: ReadonlyMap<string, string>;
  /** Path → what the host obeys, and a digest of it. */
  readonly obeyed: ReadonlyMap<string, { readonly handoff: Handoff; readonly digest: string }>;
  readonly programs: ReadonlySet<string>;
  /** Hosts that sources name → the first file that does. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly locks: readonly LockEntry[];
}

/** What the second tree brings that the first one did not have. Pure. */
export function changesBetween(before: TreeFacts, after: TreeFacts): readonly Finding[] {
  const found = new Findings();
  changedScripts(before, after, found);
  changedObeyed(before, after, found);
  for (const path of after.programs)
    if (!before.programs.has(path)) found.add("change.program", "it is now executable", { path });
  for (const [host, path] of after.hosts)
    if (!before.hosts.has(host)) found.add("change.host", `${host} is named for the first time`, { path });
  changedLocks(before.locks, after.locks, found);
  const known = new Set(before.findings.map(exactly));
  for (const each of after.findings)
    if (!known.has(exactly(each))) found.add(each.rule as LookRule, each.text, each);
  return found.all();
}

function changedScripts(before: TreeFacts, after: TreeFacts, found: Findings): void {
  for (const [key, text] of after.scripts) {
    const old = before.scripts.get(key);
    if (old === text) continue;
    const [path = "", ...name] = key.split("\n");
    const words = old === undefined ? "new" : "changed";
    found.add("change.script", `${words}: ${name.join(" ")}: ${text.slice(0, 200)}`, { path });
  }
}

function changedObeyed(before: TreeFacts, after: TreeFacts, found: Findings): void {
  for (const [path, { handoff, digest }] of after.obeyed) {
    const old = before.obeyed.get(path);
    if (old?.digest === digest) continue;
    const rule = handoff.tier === "dangerous" ? "change.obeyed" : "change.look";
    found.add(rule, `${old === undefined ? "new" : "changed"}: ${handoff.reason}`, { path });
  }
}

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

export function changedLocks(
  before: readonly LockEntry[],
  after: readonly LockEntry[],
  found: Findings,
): void {
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

function otherVersion(entry: LockEntry, { was, now, known }: Around, found: Findings): void {
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

import {
  foldName,
  isDependencies,
  isInside,
  namesFrom,
  protectedIn,
  protectedName,
} from "../core/file-names.ts";
import { asFields, isFields, parsedJson } from "../core/raw-data.ts";
import { type GitEntry, type Handoff, type Tier, TIERS } from "../core/run-record.ts";
import { DANGEROUS, LOOK } from "./handoff-names.generated.ts";

/** One changed path and the known facts about it. */
export interface ChangedPath {
  /** Path below the workspace. */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve mode bits now and before; undefined where unknown. */
  readonly mode?: number | undefined;
  readonly oldMode?: number | undefined;
  /** Target of a link as written; null where it was not read. */
  readonly target?: string | null | undefined;
  /** Content of a `package.json`; undefined where unknown. */
  readonly text?: { readonly before: string | undefined; readonly after: string | undefined } | undefined;
}

/** Changed paths that the host would later run or obey, dangerous ones first, then by path. */
export const handoffOf = (changes: Iterable<ChangedPath>, workspace: string): readonly Handoff[] =>
  handoffWithin(changes, workspace, Number.POSITIVE_INFINITY).handoff;

interface BoundedHandoff {
  readonly handoff: readonly Handoff[];
  /** How many further findings were only counted. */
  readonly left: Readonly<Record<Tier, number>>;
}

/** Does the same with a bound in bytes for each tier. */
export function handoffWithin(
  changes: Iterable<ChangedPath>,
  workspace: string,
  bytes: number,
): BoundedHandoff {
  const newRepositories = new Set<string>();
  const bare = new BareRepositories();
  for (const { what, path } of changes) {
    if (what !== "added") continue;
    const [, directory] = GIT.exec(path) ?? [];
    if (directory !== undefined && newRepositories.size < MAX_MADE) newRepositories.add(copied(directory));
    bare.noteHead(path);
  }
  const findings = new BoundedFindings(bytes);
  for (const change of changes) {
    for (const one of pathHandoff(change, newRepositories, workspace)) findings.note(one);
    if (change.what === "added") bare.noteEntry(change.path);
  }
  for (const one of bare.found()) findings.note(one);
  return { handoff: findings.ordered(), left: findings.left };
}

/** How many new git directories are reported as a whole; files of further ones are reported one by one. */
const MAX_MADE = 10_000;

/** Findings by path, each once with its worst tier; those beyond the bound are only counted. */
class BoundedFindings {
  readonly #found = new Map<string, Handoff>();
  readonly #bytesLeft: Record<Tier, number>;
  readonly left: Record<Tier, number> = { dangerous: 0, look: 0 };
  /** Paths of one folder come in sequence, so remembering the last one finds most repetitions. */
  #last = "";

  constructor(bytes: number) {
    this.#bytesLeft = { dangerous: bytes, look: bytes };
  }

  note(one: Handoff): void {
    const known = this.#found.get(one.path);
    if (known !== undefined && rank(known) <= rank(one)) return;
    if (this.#bytesLeft[one.tier] < 0) {
      if (this.#last !== one.path) this.left[one.tier] += 1;
      this.#last = one.path;
      return;
    }
    this.#bytesLeft[one.tier] -= JSON.stringify(one).length + 1;
    this.#found.set(one.path, one);
  }

  ordered(): readonly Handoff[] {
    return [...this.#found.values()].toSorted(
      (a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0),
    );
  }
}

/** A git directory, or its HEAD, without which it is none: folders are not always reported. */
const GIT = /^((?:.*\/)?\.git)(?:\/HEAD)?$/is;

const rank = ({ tier }: Handoff): number => TIERS.indexOf(tier);

function pathHandoff(change: ChangedPath, made: ReadonlySet<string>, workspace: string): readonly Handoff[] {
  const { path, what, kind } = change;
  const names = path.split("/");
  const dangerous = (reason: string): Handoff => ({ path, tier: "dangerous", reason });
  const git = inGit(names);
  if (git !== undefined) return what === "deleted" ? [] : [gitHandoff(path, git, made)];
  const installed = names.findIndex(isDependencies);
  if (what === "deleted") return removedHandoff(path, names);
  const odd = oddReason(change, workspace);
  if (odd !== undefined) return [dangerous(odd)];
  if (installed !== -1) {
    const folder = names.slice(0, installed + 1).join("/");
    return [
      { path: folder, tier: "look", reason: "installed packages: their code runs at the next build or test" },
    ];
  }
  const guarded = protectedIn(names);
  if (guarded !== undefined) return kind === "folder" ? [] : [dangerous(guarded.why)];
  return kind === "folder" ? [] : byName(change, names);
}

/** A removed file is not run, but one that restrained something else may matter by its absence. */
function removedHandoff(path: string, names: readonly string[]): readonly Handoff[] {
  const [first = ""] = names;
  const entry = protectedName(first, true);
  if (entry === undefined || !/^\.harness/i.test(first)) return [];
  return [{ path, tier: "dangerous", reason: `${entry.why}: it was removed` }];
}

const SETUID_OR_SETGID = 0o6000;
const EXECUTABLE = 0o111;

function oddReason({ kind, mode = 0, path, target }: ChangedPath, workspace: string): string | undefined {
  if (kind === "odd")
    return "not a file, folder or link: opening it may block, or connects to the program that created it";
  if (kind === "file" && (mode & SETUID_OR_SETGID) !== 0)
    return "it runs with the rights of its owner or group";
  if (kind !== "link" || target === undefined) return undefined;
  if (target === null) return "a link that was not examined: there are too many";
  const leads = linkedNames(path, target, workspace);
  if (leads === undefined) return "a link that leads out of the workspace";
  return protectedIn(leads) !== undefined ? "a link to something that the host runs or obeys" : undefined;
}

/**
 * Names below the workspace that a link leads to, without following links on the way; undefined when it leads
 * outside.
 */
function linkedNames(path: string, target: string, workspace: string): readonly string[] | undefined {
  if (!target.startsWith("/")) return namesFrom(path.split("/").slice(0, -1), target);
  return isInside(workspace, target) ? namesFrom([], target.slice(workspace.length)) : undefined;
}

function byName(change: ChangedPath, names: readonly string[]): readonly Handoff[] {
  const { path, what, kind, mode, oldMode, text } = change;
  const known = names
    .map(knownName)
    .find((each, at) => each !== undefined && (each.folder || at === names.length - 1));
  if (known !== undefined) return [{ path, tier: known.tier, reason: known.reason }];
  if (names.at(-1)?.toLowerCase() === "package.json") {
    const reason =
      text === undefined
        ? "npm runs its scripts, and what it depends on"
        : packageReason(text.before, text.after);
    if (reason !== undefined) return [{ path, tier: "look", reason }];
  }
  const runs = kind === "file" && mode !== undefined && (mode & EXECUTABLE) !== 0;
  const ran = what === "modified" && (oldMode === undefined || (oldMode & EXECUTABLE) !== 0);
  return runs && !ran ? [{ path, tier: "look", reason: "it is now executable" }] : [];
}

/** Files that a commit writes: git reads them as data and runs none of them. */
const DATA = new Set([
  "objects",
  "refs",
  "logs",
  "index",
  "head",
  "orig_head",
  "fetch_head",
  "merge_head",
  "merge_msg",
  "merge_mode",
  "auto_merge",
  "packed-refs",
  "commit_editmsg",
  "description",
  "shallow",
  "gc.log",
]);

/** Splits a path inside a git directory into the directory and the rest. */
interface InGit {
  readonly directory: string;
  readonly inner: readonly string[];
}

function inGit(names: readonly string[]): InGit | undefined {
  const at = names.findIndex((name) => foldName(name) === ".git");
  return at === -1 ? undefined : { directory: names.slice(0, at + 1).join("/"), inner: names.slice(at + 1) };
}

/** `made`: git directories that did not exist before; each is reported as one. */
function gitHandoff(path: string, { directory, inner }: InGit, made: ReadonlySet<string>): Handoff {
  if (made.has(directory))
    return {
      path: directory,
      tier: "dangerous",
      reason: "a new git repository: git obeys its hooks and settings",
    };
  const [first = ""] = inner;
  if (inner.length > 0 && DATA.has(foldName(first).replace(/\.lock$/, "")))
    return { path: directory, tier: "look", reason: "git: commits, branches or the index were changed" };
  return {
    path,
    tier: "dangerous",
    reason: "git: hooks, filters, fsmonitor and aliases of its configuration",
  };
}

/** Bound on the folders that are examined; the others are reported unexamined. */
const MAX_COUNT = 10_000;

/** Entries that a git directory has beside its HEAD. */
const REPOSITORY_ENTRIES = /(?<=^|\/)(?:config|objects|refs)(?=\/|$)/g;

/**
 * Finds folders with other names that git takes for repositories. All additions go through `noteHead` first, then
 * through `noteEntry`.
 */
class BareRepositories {
  /** Lower-case path → the path as written and its entries. */
  readonly #folders = new Map<string, { readonly folder: string; readonly has: Set<string> }>();
  readonly #others: string[] = [];

  noteHead(added: string): void {
    if (!/(?:^|\/)head$/i.test(added) || inGit(added.split("/")) !== undefined) return;
    const folder = copied(added.slice(0, -"head".length));
    if (this.#folders.size < MAX_COUNT) this.#folders.set(folder.toLowerCase(), { folder, has: new Set() });
    else if (this.#others.length < MAX_COUNT) this.#others.push(folder);
  }

  /** Takes the files below an entry for the entry: folders are not always reported. */
  noteEntry(added: string): void {
    if (this.#folders.size === 0) return;
    const path = added.toLowerCase();
    for (const { 0: name, index } of path.matchAll(REPOSITORY_ENTRIES))
      this.#folders.get(path.slice(0, index))?.has.add(name);
  }

  found(): readonly Handoff[] {
    const sure = [...this.#folders.values()].filter(
      ({ has }) => has.has("config") || (has.has("objects") && has.has("refs")),
    );
    const reason = "a folder that git treats as a repository: git obeys its hooks and settings";
    return [...sure.map(({ folder }) => folder), ...this.#others].map((folder) => ({
      path: folder === "" ? "HEAD" : folder.slice(0, -1),
      tier: "dangerous",
      reason,
    }));
  }
}

/** Copies the text: a slice of a longer one would keep the whole of it in memory. */
const copied = (text: string): string => JSON.parse(JSON.stringify(text)) as string;

/** Paths in a commit or the index that the host would run or obey once git checks them out. */
export function commitHandoff(entries: readonly GitEntry[], workspace: string): readonly Handoff[] {
  const found = handoffOf(entries.flatMap(asChanged), workspace);
  const odd = entries.flatMap(oddIn);
  const oddPaths = new Set(odd.map(({ path }) => path));
  return [...odd, ...found.filter(({ path }) => !oddPaths.has(path))];
}

/** Of several findings about one path the gravest; of equals the first. */
export function mergedHandoff(...lists: readonly (readonly Handoff[])[]): readonly Handoff[] {
  const found = new Map<string, Handoff>();
  for (const one of lists.flat()) {
    const known = found.get(one.path);
    if (known === undefined || rank(one) < rank(known)) found.set(one.path, one);
  }
  return [...found.values()].toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

function asChanged({ kind, path, what, mode, oldMode, target }: GitEntry): readonly ChangedPath[] {
  if (kind === "repository") return [];
  return [{ path, what, kind, mode, oldMode, ...(target === undefined ? {} : { target }) }];
}

/** Entries that are dangerous in a commit, even if they are harmless in a folder. */
function oddIn({ kind, path, what, target }: GitEntry): readonly Handoff[] {
  const dangerous = (reason: string): readonly Handoff[] => [{ path, tier: "dangerous", reason }];
  if (what === "deleted") return [];
  if (path.split("/").some((name) => foldName(name) === ".git"))
    return dangerous(protectedName(".git", true)?.why ?? "git");
  if (kind === "repository")
    return dangerous("a nested repository (a submodule): git obeys its hooks and settings");
  if (kind === "link" && target === undefined) return dangerous("a link whose target was not read");
  return [];
}

interface Known {
  readonly tier: Tier;
  readonly reason: string;
  readonly folder: boolean;
}

interface Pattern {
  readonly head: string;
  readonly tail: string;
  readonly known: Known;
}

const [EXACT, PATTERNS] = tables();

function tables(): readonly [ReadonlyMap<string, Known>, readonly Pattern[]] {
  const exact = new Map<string, Known>();
  const patterns: Pattern[] = [];
  for (const [tier, rows] of [["look", LOOK] as const, ["dangerous", DANGEROUS] as const])
    for (const [reason, names] of Object.entries(rows))
      for (const name of names) {
        const known = { tier, reason, folder: name.endsWith("/") };
        const plain = name.replace(/\/$/, "");
        const star = plain.indexOf("*");
        if (star === -1) exact.set(plain, known);
        else patterns.push({ head: plain.slice(0, star), tail: plain.slice(star + 1), known });
      }
  return [exact, patterns];
}

/** The table row of one name of a path. */
export function knownName(name: string): Known | undefined {
  const folded = foldName(name);
  return (
    EXACT.get(folded) ??
    PATTERNS.find(
      ({ head, tail }) =>
        folded.length >= head.length + tail.length && folded.startsWith(head) && folded.endsWith(tail),
    )?.known
  );
}

/** Keys of a `package.json` that are run, or that decide what is run. */
const PARTS = [
  "scripts",
  "bin",
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "overrides",
  "resolutions",
  "workspaces",
  "packageManager",
  "husky",
  "lint-staged",
  "simple-git-hooks",
  "pre-commit",
  "gypfile",
  "pnpm",
  "allowScripts",
  "trustedDependencies",
];

/** Why a changed `package.json` matters to the host; undefined when none of those keys changed. */
function packageReason(before: string | undefined, after: string | undefined): string | undefined {
  const [old, now] = [before, after].map((text) => asFields(parsedJson(text ?? "{}")));
  if (old === undefined || now === undefined) return "npm runs its scripts, and what it depends on";
  const parts = PARTS.filter((part) => JSON.stringify(old[part]) !== JSON.stringify(now[part]));
  if (parts.length === 0) return undefined;
  const scripts = changedNames(old["scripts"], now["scripts"]);
  const others = parts.filter((part) => part !== "scripts");
  return [
    ...(scripts.length === 0 ? [] : [`npm runs its scripts; changed: ${scripts.join(", ")}`]),
    ...(others.length === 0 ? [] : [`changed: ${others.join(", ")}`]),
  ].join("; ");
}

function changedNames(before: unknown, after: unknown): readonly string[] {
  const [old, now] = [isFields(before) ? before : {}, isFields(after) ? after : {}];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .toSorted();
}

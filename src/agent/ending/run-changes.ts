/**
 * What a run changed in the workspace, for people: paths covered by ignore rules are counted, not listed. Also what the
 * host would later run or obey of it, and what harness itself did there.
 */

import type { EventBody, RunChanges } from "../../core/events.ts";
import { asSeenFrom, isDependencies, isInside } from "../../core/file-names.ts";
import { type Box, type Changes, listed } from "../../core/ports.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import {
  type BoxLog,
  type Handoff,
  type MadeCommit,
  type MovedAway,
  NOT_ALL,
  RETURNS,
} from "../../core/run-record.ts";
import type { Checkpoints } from "../../core/session.ts";
import { type ChangedPath, commitHandoff, handoffWithin, mergedHandoff } from "../../policy/handoff-paths.ts";

export const NO_CHANGES: RunChanges = { added: [], modified: [], deleted: [], ignored: 0 };

const LIMIT_MS = 20_000;
/** Most bytes of paths that are looked up; paths beyond that count as not ignored. */
const MAX_ASKED_BYTES = 48 * 2 ** 20;
const PIECE_BYTES = 64 * 1024;

/**
 * Asks the box's own git about the paths. An empty repository elsewhere reads the workspace's ignore files, whether or
 * not the workspace is a repository, and obeys none of its configuration. The box user's global rules do not count:
 * commands of this run wrote them.
 */
const CHECK_IGNORE_SCRIPT = `d=$(mktemp -d) && git init -q --bare --template= "$d" && \
GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c core.excludesFile=/dev/null --git-dir="$d" --work-tree=. \
check-ignore -z --no-index --stdin; code=$?; rm -rf "$d"; exit $code`;

const CACHES =
  /(?:^|\/)(?:__pycache__|\.(?:pytest|mypy|ruff)_cache|\.cache|\.nyc_output|\.coverage|coverage)(?:\/|$)|\.(?:pyc|tsbuildinfo)$/;

/** Files that programs leave for themselves: nobody's work. */
export const isCache = (path: string): boolean => CACHES.test(path);

export function withoutCaches({ added, modified, deleted, ...others }: RunChanges): RunChanges {
  const [made, changed, gone] = [added, modified, deleted].map((paths) =>
    paths.filter((each) => !isCache(each)),
  );
  return { ...others, added: made ?? [], modified: changed ?? [], deleted: gone ?? [] };
}

/** Whether nothing changed, except caches. */
export function isUntouched({ all, incomplete }: Changes): boolean {
  if (incomplete) return false;
  for (const { path } of all) if (!isCache(path)) return false;
  return true;
}

/** Most paths whose content is compared; paths beyond that count as changed. */
const MAX_COMPARED = 20_000;

/** Leaves out files with the same content as before the run: a `touch`, the same bytes again, a reverted edit. */
export async function byContent(
  seen: Changes,
  { unchanged }: Pick<Checkpoints, "unchanged">,
): Promise<Changes> {
  const touched: string[] = [];
  for (const { what, path } of seen.all) {
    if (what === "modified") touched.push(path);
    if (touched.length === MAX_COMPARED) break;
  }
  const same = touched.length === 0 ? NONE : await unchanged(touched);
  if (same.size === 0) return seen;
  const all = {
    *[Symbol.iterator]() {
      for (const change of seen.all) if (change.what !== "modified" || !same.has(change.path)) yield change;
    },
  };
  return { ...seen, all };
}

const NONE: ReadonlySet<string> = new Set();

export async function changesIn(box: Box, changes: Changes, signal: AbortSignal): Promise<RunChanges> {
  const { all, incomplete } = changes;
  const ignored = await ignoredAmong(box, all, signal);
  if (ignored.size > 0) await changes.dropTracked(ignored);
  const lists = listed(all, (path) => ignored.has(path));
  return { ...lists, ignored: ignored.size, ...(incomplete ? { incomplete } : {}) };
}

/** Empty when git cannot tell: then all paths are listed. */
async function ignoredAmong(box: Box, all: Changes["all"], signal: AbortSignal): Promise<Set<string>> {
  const found = new Set<string>();
  if (!hasAny(all)) return found;
  const names = new NameReader((name) => found.add(name));
  const { exit_code } = await box.exec(
    {
      words: ["bash", "-c", CHECK_IGNORE_SCRIPT],
      timeoutMs: LIMIT_MS,
      // All output is processed as it comes, and none is kept.
      keep: { head: 2 * MAX_ASKED_BYTES, tail: 0 },
      input: pathChunks(all),
      onOutput: (stream, bytes) => (stream === "stdout" ? names.push(bytes) : undefined),
    },
    signal,
  );
  // Exit code 1: no path is ignored.
  return exit_code === 0 ? found : new Set();
}

function hasAny(all: Changes["all"]): boolean {
  for (const _ of all) return true;
  return false;
}

/** Changed ignore rules are always shown, whatever they say; ignore rules do not apply to a repository's own files. */
const isShown = (path: string): boolean => /(?:^|\/)(?:\.gitignore$|\.git(?:\/|$))/i.test(path);

async function* pathChunks(all: Changes["all"]): AsyncGenerator<Uint8Array> {
  let piece: Buffer[] = [];
  let size = 0;
  let room = MAX_ASKED_BYTES;
  for (const { path } of all) {
    if (isShown(path)) continue;
    const name = bytesOfText(`${path}\0`);
    room -= name.length;
    if (room < 0) break;
    piece.push(name);
    size += name.length;
    if (size < PIECE_BYTES) continue;
    yield await Promise.resolve(Buffer.concat(piece));
    [piece, size] = [[], 0];
  }
  if (piece.length > 0) yield Buffer.concat(piece);
}

/** Splits incoming pieces into names that each end with a NUL. */
class NameReader {
  readonly #take: (name: string) => void;
  #begun: Buffer[] = [];

  constructor(take: (name: string) => void) {
    this.#take = take;
  }

  push(bytes: Uint8Array): void {
    let from = 0;
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
      this.#take(textOfBytes(Buffer.concat([...this.#begun, bytes.subarray(from, end)])));
      this.#begun = [];
      from = end + 1;
    }
    if (from < bytes.length) this.#begun.push(Buffer.from(bytes.subarray(from)));
  }
}

const HANDOFF_LIMIT_MS = 20_000;
/** Most links that are examined, and most bytes of their paths; a link beyond that counts as leading outside. */
const MAX_LINKS = 20_000;
const MAX_LINK_BYTES = 4 * 2 ** 20;
/** Most characters of JSON that are reported for each tier. */
const MAX_TIER_JSON = 2 ** 18;

/** Prints, for each incoming path, its link target and the path. */
const LINK_SCRIPT = String.raw`xargs -0 -r sh -c 'exec find "$@" -maxdepth 0 -printf "%l\0%p\0"' find`;

export type HandoffReport = Pick<
  Extract<EventBody, { readonly type: "run.finished" }>,
  "handoff" | "handoff_left_out"
>;

/** What a run changed that the host would later run or obey, if the box can tell. */
export async function handoffIn(box: Box, { all }: Changes, signal: AbortSignal): Promise<HandoffReport> {
  const targets = await linkTargets(box, linksIn(all), signal);
  const changed = {
    *[Symbol.iterator](): Generator<ChangedPath> {
      for (const { what, kind, mode, path } of all) {
        const more = kind === "link" ? { target: targetOf(path, targets) } : { mode };
        // The earlier kind is unknown here: only an added file is reported as new.
        yield { path, what, kind, ...more, ...(what === "added" ? { oldMode: 0 } : {}) };
      }
    },
  };
  const { handoff, left } = handoffWithin(changed, box.workspace, MAX_TIER_JSON);
  return left.dangerous + left.look === 0 ? { handoff } : { handoff, handoff_left_out: left };
}

const isLookedAt = (path: string): boolean => !path.split("/").some(isDependencies);

const targetOf = (path: string, targets: ReadonlyMap<string, string>): string | null | undefined =>
  isLookedAt(path) ? (targets.get(path) ?? null) : undefined;

function linksIn(all: Changes["all"]): readonly string[] {
  const links: string[] = [];
  let room = MAX_LINK_BYTES;
  for (const { what, kind, path } of all) {
    if (kind !== "link" || what === "deleted" || !isLookedAt(path)) continue;
    room -= path.length;
    if (room < 0 || links.length === MAX_LINKS) break;
    links.push(path);
  }
  return links;
}

async function linkTargets(
  box: Box,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (paths.length === 0) return new Map();
  const words = ["sh", "-c", LINK_SCRIPT];
  const keep = { head: 32 * 2 ** 20, tail: 0 };
  const { stdout } = await box.exec(
    { words, timeoutMs: HANDOFF_LIMIT_MS, keep, input: linkPaths(paths) },
    signal,
  );
  const fields = textOfBytes(stdout.head).split("\0");
  const targets = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [target = "", path = ""] = fields.slice(at, at + 2);
    targets.set(path.slice("./".length), target);
  }
  return targets;
}

async function* linkPaths(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytesOfText(paths.map((path) => `./${path}\0`).join("")));
}

type Finished = Extract<EventBody, { readonly type: "run.finished" }>;

interface BoxLogReport extends Required<
  Pick<Finished, "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">
> {
  readonly handoff: readonly Handoff[];
}

/** Most paths of one commit. */
const MAX_PATHS = 100;

/** What harness itself did, as reported in events, JSON and on the screen. */
export function boxLogReport(log: BoxLog, workspace: string): BoxLogReport {
  const commits = log.commits.map((commit) => ({ commit, handoff: handoffOfCommit(commit, workspace) }));
  const staged = stagedHandoff(log, workspace);
  return {
    quarantined: log.quarantined.map(({ from, to, takeBack }) => ({ from, to, take_back: takeBack })),
    quarantined_total: log.quarantined_total,
    commits: commits.map(({ commit: { hash, subject, files }, handoff }) => ({
      hash,
      subject,
      files,
      protected: dangerousIn(handoff),
    })),
    commits_total: log.commits_total,
    staged: dangerousIn(staged),
    handoff: mergedHandoff(
      ...commits.map(({ handoff }) => handoff),
      staged,
      log.quarantined.map((moved) => movedHandoff(moved, workspace)),
    ),
  };
}

const dangerousIn = (handoff: readonly Handoff[]): readonly string[] =>
  handoff
    .filter(({ tier }) => tier === "dangerous")
    .map(({ path }) => path)
    .slice(0, MAX_PATHS);

function handoffOfCommit({ hash, entries, whole }: MadeCommit, workspace: string): readonly Handoff[] {
  const name = hash === "unknown" ? "an interrupted commit" : `commit ${hash.slice(0, 12)}`;
  const found = commitHandoff(entries, workspace).map((one) => ({
    ...one,
    reason: `in ${name}: ${one.reason}; ${RETURNS}`,
  }));
  const unseen = { path: ".git", tier: "dangerous", reason: `${name}: ${NOT_ALL}` };
  return whole ? found : [...found, unseen as Handoff];
}

function stagedHandoff(
  { staged, staged_cut: isCut }: Pick<BoxLog, "staged" | "staged_cut">,
  workspace: string,
): readonly Handoff[] {
  const found = commitHandoff(staged, workspace).map((one) => ({
    ...one,
    reason: `staged: ${one.reason}; ${RETURNS}`,
  }));
  const unseen: Handoff = { path: ".git", tier: "dangerous", reason: `staged: ${NOT_ALL}` };
  return isCut === true ? [...found, unseen] : found;
}

/** The file is no longer where the host would obey it. */
function movedHandoff({ from, to, earlier }: MovedAway, workspace: string): Handoff {
  const made = earlier === true ? "it appeared after the start of a run that was killed" : "made in the box";
  const done =
    to === null
      ? "removed, because it was neither a file, a folder nor a link"
      : `moved out of the workspace: ${to}`;
  return { path: asSeenFrom(workspace, from), tier: "look", reason: `${made}, and ${done}` };
}

interface SeenWorkspace {
  readonly changes: RunChanges | null;
  readonly handoff: readonly Handoff[];
}

/** The workspace as seen before the last search, without what that moved out, plus what is reported about it. */
export function withBoxLog(
  { changes, handoff }: SeenWorkspace,
  log: BoxLog,
  workspace: string,
): SeenWorkspace & BoxLogReport {
  const report = boxLogReport(log, workspace);
  const stays = staysBeside(log, workspace);
  const left = changes && withoutMoved(changes, log, workspace);
  const looks = mergedHandoff(
    handoff.filter(({ path }) => stays(path)),
    report.handoff,
  );
  return { ...report, changes: left, handoff: looks };
}

type Paths = Pick<RunChanges, "added" | "modified" | "deleted">;

/** Leaves out what was moved out of the workspace after it was listed. */
export function withoutMoved<C extends Paths>(changes: C, log: BoxLog, workspace: string): C {
  const stays = staysBeside(log, workspace);
  return { ...changes, added: changes.added.filter(stays), modified: changes.modified.filter(stays) };
}

function staysBeside({ quarantined }: BoxLog, workspace: string): (path: string) => boolean {
  const gone = quarantined.map(({ from }) => asSeenFrom(workspace, from));
  return (path) => !gone.some((moved) => isInside(moved, path));
}

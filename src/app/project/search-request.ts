import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { stderr } from "../../render/tty/output.ts";
import { ProgressLine } from "../../render/tty/live-lines.ts";
import { claimIndex, findMovedIndex, type IndexPlace } from "../../search/index-folders.ts";
import { answersIn, type SearchHit } from "../../search/rank-hits.ts";
import { type IndexOptions, isDamaged, OpenedIndex, withRepair } from "../../search/open-index.ts";
import { vectorShare, type VectorShare, weightIn } from "../../search/index-vectors.ts";
import type { IndexProgress } from "../../search/update-index.ts";
import type { Host } from "../host.ts";
import { indexAccess, indexRoot, SearchVectors } from "./search-access.ts";

export interface SearchRequest {
  readonly host: Host;
  readonly settings: Settings;
  readonly origins: Readonly<Record<string, string>>;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly query: string;
  readonly limit: number;
  /** Search only below this path. */
  readonly below: string | null;
  readonly quiet: boolean;
  /** Shows a message to the person. */
  readonly note: (text: string) => void;
}

export interface SearchAnswer {
  readonly results: readonly SearchHit[];
  readonly store: "embedded" | "qdrant";
  /** The answer may be older than the files, or may not cover all of them. */
  readonly stale: boolean;
  /** The share of the index that can also be searched by meaning. */
  readonly vectors: VectorShare;
}

/** How long a search waits for a process that is writing the index. */
const PATIENCE_MS = 300;

/** Answers from an index that is first brought up to date, if possible. */
export async function ask(asking: SearchRequest, signal: AbortSignal): Promise<SearchAnswer> {
  const access = indexAccess(asking.host, asking.settings, asking.note);
  const place = findMovedIndex(indexRoot(asking.host), asking.workspace);
  using vectors = new SearchVectors(asking);
  return await withRepair(access, place, () => searchIndex({ access, place, vectors }, asking, signal));
}

interface IndexToSearch {
  readonly access: IndexOptions;
  readonly place: IndexPlace | undefined;
  readonly vectors: SearchVectors;
}

async function searchIndex(
  opened: IndexToSearch,
  asking: SearchRequest,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const { access, place, vectors } = opened;
  const found = await readable(access, place, signal);
  let isOldThere = false;
  if (found !== undefined) {
    await using index = found;
    // A user who named a store gets no answer from another store, even if only the other has an old index.
    isOldThere = index.isWhereWanted;
    if (isOldThere && (await isFresh(index, signal)))
      return await answered({ index, vectors, stale: false }, asking, signal);
  }
  const renewed = await renew(opened, asking, isOldThere, signal);
  if (renewed !== undefined) {
    await using index = renewed;
    return await answered({ index, vectors, stale: false }, asking, signal);
  }
  const old = await readable(access, place, signal);
  if (old === undefined) throw noIndex();
  await using index = old;
  return await answered({ index, vectors, stale: true }, asking, signal);
}

/** A store that does not answer is no reason to give up: the index may be rebuilt in another store. */
async function readable(
  access: IndexOptions,
  place: IndexPlace | undefined,
  signal: AbortSignal,
): Promise<OpenedIndex | undefined> {
  if (place === undefined) return undefined;
  try {
    return await OpenedIndex.read(access, place, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError) return undefined;
    throw thrown;
  }
}

/** If the store cannot tell, opening the index for writing examines and repairs it. */
async function isFresh(index: OpenedIndex, signal: AbortSignal): Promise<boolean> {
  try {
    return await index.isFresh(signal);
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError && !isDamaged(thrown)) return false;
    throw thrown;
  }
}

interface Opened {
  readonly index: OpenedIndex;
  readonly vectors: SearchVectors;
  readonly stale: boolean;
}

async function answered(
  { index, vectors, stale }: Opened,
  asking: SearchRequest,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const { query, limit, below } = asking;
  index.warnOfHidden();
  const vector = await vectors.of(index, query, signal);
  const [results, { embedded, chunks }] = await Promise.all([
    answersIn(index.store, { text: query, vector, weight: weightIn(index.facts), limit, below }, signal),
    index.store.counts(signal),
  ]);
  const share = vectorShare(embedded, chunks);
  const { model, awaited } = index.facts;
  if (share.next !== "" && (model !== null || awaited !== null))
    asking.note(
      `${percent(share)} of the index is searched by meaning, the rest by words only; harness index completes it`,
    );
  return { results, store: index.store.name, stale, vectors: share };
}

const percent = ({ share }: VectorShare): string => `${Math.floor(share * 100)} %`;

/** The index, brought up to date; undefined, after a message with the reason, if only the old index can be used. */
async function renew(
  { access, vectors }: IndexToSearch,
  asking: SearchRequest,
  isOldThere: boolean,
  signal: AbortSignal,
): Promise<OpenedIndex | undefined> {
  const { host, settings, workspace, quiet, note } = asking;
  const stack = new AsyncDisposableStack();
  const progress = new ProgressLine(stderr, { what: "indexing", quiet });
  try {
    const index = stack.use(
      await OpenedIndex.write(access, claimIndex(indexRoot(host), workspace), {
        patienceMs: PATIENCE_MS,
        signal,
      }),
    );
    const { readingBox } = await import("../boxes/box-access.ts");
    await using box = await readingBox({ host, settings, workspace, warn: note }, signal);
    const onProgress = (far: IndexProgress): void => progress.take({ ...far, unit: "files" });
    await index.update(box, { onProgress }, signal);
    await vectors.embedSome(index, signal);
    stack.move();
    return index;
  } catch (thrown) {
    await stack.disposeAsync();
    signal.throwIfAborted();
    if (!isOldThere || !(thrown instanceof HarnessError) || isDamaged(thrown)) throw thrown;
    note(`the answer may be older than the files: ${thrown.message}`);
    return undefined;
  } finally {
    progress.end();
  }
}

const noIndex = (): HarnessError =>
  new HarnessError(EXIT.failed, "there is no usable index of this folder", "harness index");

/**
 * The path that a search is narrowed to, in the form of index paths; null for the whole workspace. A name is relative
 * to the workspace; one that begins with a dot is tried from the current folder first.
 */
export async function belowOf(
  typed: string | undefined,
  workspace: string,
  current: string,
): Promise<string | null> {
  if (typed === undefined || typed === "") return null;
  const from = /^\.\.?(?:\/|$)/.test(typed) ? [current, workspace] : [workspace];
  const real = await firstExisting(
    from.map((folder) => path.resolve(folder, typed)),
    workspace,
    typed,
  );
  const below = path.relative(workspace, real);
  return below === "" ? null : below;
}

async function firstExisting(places: readonly string[], workspace: string, typed: string): Promise<string> {
  let failure = usage(`--below ${typed} is outside ${workspace}`);
  for (const place of places)
    try {
      const real = await realpath(place);
      if (isWithin(workspace, real)) return real;
    } catch (thrown) {
      if (!isWithin(workspace, place)) continue;
      const why = errorCode(thrown) === "ENOENT" ? "" : `: ${reasonOf(thrown)}`;
      failure = usage(`there is no ${typed} in ${workspace}${why}`);
    }
  throw failure;
}

const isWithin = (folder: string, place: string): boolean => {
  const rest = path.relative(folder, place);
  return rest !== ".." && !rest.startsWith("../");
};

const usage = (message: string): HarnessError =>
  new HarnessError(EXIT.usage, message, 'harness search --below FOLDER "…", with a folder of the workspace');

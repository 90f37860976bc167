import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import type { Box, IndexAnswer, OwnedBox } from "../../core/ports.ts";
import { claimIndex, type IndexPlace } from "../../search/index-folders.ts";
import { type Cutting, CuttingHere } from "../../search/files/cutting.ts";
import { answersIn } from "../../search/rank-hits.ts";
import { claimLayer, type IndexLayer } from "../../search/prune-indexes.ts";
import { type IndexOptions, isDamaged, OpenedIndex, withRepair } from "../../search/open-index.ts";
import type { Stamps } from "../../search/update-index.ts";
import { weightIn } from "../../search/index-vectors.ts";
import type { Host } from "../host.ts";
import type { RunIndex, RunIndexParts } from "../run/session-state.ts";
import { embeddedOnly, indexAccess, indexRoot, SearchVectors } from "./search-access.ts";

/** How long a call waits for another process that writes the same index. */
const PATIENCE_MS = 2000;
/** The part of a call's time that is reserved for the answer itself. */
const ANSWER_MS = 5000;

interface RunSearch {
  readonly place: IndexPlace;
  readonly access: IndexOptions;
  /** The box through which files are read. */
  readonly box: (signal: AbortSignal) => Promise<Box>;
  /** `times` if the files are copies, because then only their times match. */
  readonly knownBy: Stamps;
  /** Shared by all calls of a run. */
  readonly kept: Cutting;
  readonly vectors: SearchVectors;
}

/**
 * The index of the workspace only takes files read by a box in which nothing but our own programs ever ran, because a
 * program started by the run could give false answers in the run's box. If the run's files differ from the workspace,
 * only the run's box shows them; then it gets an index of its own, which begins as a copy and is removed with the run.
 */
export function runAnswering(parts: RunIndexParts): RunIndex {
  const layers: { own?: IndexLayer } = {};
  const stack = new AsyncDisposableStack();
  const kept = stack.use(new CuttingHere());
  const byMeaning = stack.use(new RunVectors(parts.host, parts.origins));
  const startReader = async (signal: AbortSignal): Promise<OwnedBox> => {
    // Reserves the workspace for the run from then on.
    await parts.box();
    const { host, workspace } = parts;
    const { readingBox } = await import("../boxes/box-access.ts");
    const reading = { host, settings: parts.settings(), workspace, beside: true, warn: () => undefined };
    return readingBox(reading, signal);
  };
  const reader = stack.use(new KeptBox(startReader));
  const searched = (): RunSearch => {
    const settings = parts.settings();
    const access = indexAccess(parts.host, settings, () => undefined);
    const base = claimIndex(indexRoot(parts.host), parts.workspace);
    const shared = { kept, vectors: byMeaning.for(settings) };
    if (isShared(settings))
      return { ...shared, place: base, access, knownBy: "stamps", box: (signal) => reader.box(signal) };
    const { place } = (layers.own ??= stack.use(claimLayer(base, parts.session)));
    return { ...shared, place, access: embeddedOnly(access), knownBy: "times", box: parts.box };
  };
  return {
    search: async (query, limit, signal) => {
      const search = searched();
      const { access, place } = search;
      return withRepair(access, place, () => answerQuery(parts, search, { query, limit }, signal));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const isShared = ({ isolation, mode }: Settings): boolean =>
  isolation === "bind" && mode !== "danger-full-access";

interface RunQuery {
  readonly query: string;
  readonly limit: number;
}

async function answerQuery(
  parts: RunIndexParts,
  search: RunSearch,
  { query, limit }: RunQuery,
  signal: AbortSignal,
): Promise<IndexAnswer> {
  const { vectors } = search;
  const answer = async (index: OpenedIndex, caveat: string): Promise<IndexAnswer> => {
    const vector = await vectors.of(index, query, signal);
    const weight = weightIn(index.facts);
    return { hits: await answersIn(index.store, { text: query, vector, weight, limit }, signal), caveat };
  };
  await using fresh = await freshIndex(search, signal);
  if (fresh !== undefined) return await answer(fresh, "");
  const { index, caveat } = await openIndex(search, signal);
  await using _ = index;
  const late = AbortSignal.timeout(Math.max(parts.settings().timeout - ANSWER_MS, 1000));
  const trouble = caveat === "" ? await updateIndex(index, { ...search, late }, signal) : caveat;
  if (trouble === "") await vectors.embedSome(index, signal);
  return await answer(index, trouble);
}

/** If a look from outside shows that nothing has changed, no box is needed. */
async function freshIndex(
  { access, place, knownBy }: RunSearch,
  signal: AbortSignal,
): Promise<OpenedIndex | undefined> {
  if (knownBy === "times") return undefined;
  await using stack = new AsyncDisposableStack();
  try {
    const index = await OpenedIndex.read(access, place, signal);
    if (index === undefined) return undefined;
    stack.use(index);
    if (!index.isWhereWanted || !(await index.isFresh(signal))) return undefined;
    stack.move();
    return index;
  } catch (thrown) {
    signal.throwIfAborted();
    // Opening the index for writing reports what is wrong with it.
    if (thrown instanceof HarnessError) return undefined;
    throw thrown;
  }
}

/** Opens the index for an update, or as it is while another process updates it. */
async function openIndex(
  { access, place }: RunSearch,
  signal: AbortSignal,
): Promise<{ readonly index: OpenedIndex; readonly caveat: string }> {
  try {
    return { index: await OpenedIndex.write(access, place, { patienceMs: PATIENCE_MS, signal }), caveat: "" };
  } catch (thrown) {
    signal.throwIfAborted();
    const index = await OpenedIndex.read(access, place, signal);
    if (index === undefined || !(thrown instanceof HarnessError)) throw thrown;
    if (!index.isWhereWanted) {
      await index[Symbol.asyncDispose]();
      throw thrown;
    }
    return { index, caveat: `this may be older than the files: ${thrown.message}` };
  }
}

interface Renewing extends Pick<RunSearch, "box" | "knownBy" | "kept"> {
  readonly late: AbortSignal;
}

/** Updates the index. Returns why the answer does not cover all files, or an empty text. Only damage is thrown. */
async function updateIndex(
  index: OpenedIndex,
  { box, knownBy, kept, late }: Renewing,
  signal: AbortSignal,
): Promise<string> {
  const now = { done: 0, total: 0 };
  const onProgress = (progress: typeof now): void => void Object.assign(now, progress);
  try {
    const either = AbortSignal.any([signal, late]);
    await index.update(await box(either), { knownBy, onProgress, kept }, either);
    return "";
  } catch (thrown) {
    signal.throwIfAborted();
    if (late.aborted)
      return `the index is not whole yet: ${now.done} of ${now.total} changed files were read in the time of this call, and the next one goes on`;
    if (isDamaged(thrown)) throw thrown;
    return `this may be older than the files, or not of all of them: ${reasonOf(thrown)}`;
  }
}

/**
 * The vectors of a run's searches. What was learned of a model is shared by all searches, until the settings name
 * another model.
 */
export class RunVectors implements Disposable {
  readonly #host: Host;
  readonly #origins: Readonly<Record<string, string>>;
  #kept: { readonly of: string; readonly vectors: SearchVectors } | undefined;

  constructor(host: Host, origins: Readonly<Record<string, string>>) {
    this.#host = host;
    this.#origins = origins;
  }

  for(settings: Settings): SearchVectors {
    const { provider, base_url, embed_model } = settings;
    const of = JSON.stringify([provider, base_url, embed_model]);
    if (this.#kept?.of === of) return this.#kept.vectors;
    this[Symbol.dispose]();
    const vectors = new SearchVectors({
      host: this.#host,
      settings,
      origins: this.#origins,
      note: () => undefined,
    });
    this.#kept = { of, vectors };
    return vectors;
  }

  [Symbol.dispose](): void {
    this.#kept?.vectors[Symbol.dispose]();
    this.#kept = undefined;
  }
}

/** One box for all searches of a run: started by the first search that has to read, and again after a loss. */
export class KeptBox implements AsyncDisposable {
  readonly #start: (signal: AbortSignal) => Promise<OwnedBox>;
  #kept: Promise<OwnedBox> | undefined;

  constructor(start: (signal: AbortSignal) => Promise<OwnedBox>) {
    this.#start = start;
  }

  async box(signal: AbortSignal): Promise<Box> {
    const starting = (this.#kept ??= this.#start(signal));
    const forget = (): void => void (this.#kept = this.#kept === starting ? undefined : this.#kept);
    try {
      const box = await starting;
      void box.gone.then(forget);
      return box;
    } catch (thrown) {
      forget();
      throw thrown;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const box = await this.#kept?.catch(() => undefined);
    await box?.[Symbol.asyncDispose]();
  }
}

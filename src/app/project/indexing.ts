import { existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError } from "../../core/errors.ts";
import { stderr } from "../../render/tty/output.ts";
import type { IndexStatus } from "../../render/search-lines.ts";
import { ProgressLine } from "../../render/tty/live-lines.ts";
import {
  type EmbedOutcome,
  isDue,
  vectorShare,
  type VectorShare,
  worthIn,
} from "../../search/index-vectors.ts";
import type { CatalogFacts } from "../../search/catalog.ts";
import { claimIndex, findIndex } from "../../search/index-folders.ts";
import type { IndexProgress, Updated } from "../../search/update-index.ts";
import { OpenedIndex, withRepair } from "../../search/open-index.ts";
import type { CommitQuestion } from "../../search/measure-worth.ts";
import type { Host } from "../host.ts";
import type { EmbedderPatience } from "./embedder-access.ts";
import {
  embedIn,
  identityOf,
  indexAccess,
  indexRoot,
  noVectors,
  type Vectors,
  vectorsFor,
} from "./search-access.ts";

export interface Indexing {
  readonly host: Host;
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly quiet: boolean;
  readonly note: (text: string) => void;
  readonly origins: Readonly<Record<string, string>>;
  /** Whether chunks get vectors. */
  readonly embeds: boolean;
}

export interface Indexed extends Updated {
  readonly vectors: Pick<EmbedOutcome, "kind" | "embedded" | "reused" | "asked" | "reason" | "remedy"> &
    Pick<VectorShare, "share" | "next">;
  readonly workspace: string;
  readonly index: string;
  readonly store: "embedded" | "qdrant";
  readonly seconds: number;
}

/** How long to wait for another process that writes the same index. */
const PATIENCE_MS = 5000;

/** An embedding model that must be loaded, or is busy, is waited for as long as a chat model. */
const patienceOf = ({ connect_timeout, first_token_timeout }: Settings): EmbedderPatience => ({
  listMs: connect_timeout,
  vectorMs: first_token_timeout,
  requestMs: first_token_timeout,
});

/** How long to wait without a message. */
const SILENT_MS = 3000;

/** The embedder; a message tells the person what is being waited for. */
async function awaitedVectors(
  indexing: Indexing,
  signal: AbortSignal,
  patience: EmbedderPatience | undefined,
): Promise<Vectors> {
  const { settings, embeds, note } = indexing;
  if (!embeds) return noVectors("--no-embed", "harness index");
  const { embed_model: name } = settings;
  const telling = setTimeout(
    () => note(`waiting for ${name}, which may be loading or busy; --no-embed builds an index of words only`),
    SILENT_MS,
  );
  try {
    return await vectorsFor({ ...indexing, ...(patience === undefined ? {} : { patience }) }, signal);
  } finally {
    clearTimeout(telling);
  }
}

/** Makes or renews the index of a folder, and its vectors if there is an embedder. */
export async function indexFolder(
  indexing: Indexing,
  signal: AbortSignal,
  patience: EmbedderPatience | undefined = patienceOf(indexing.settings),
): Promise<Indexed> {
  const { host, settings, workspace, note } = indexing;
  const began = performance.now();
  const access = indexAccess(host, settings, note);
  const place = claimIndex(indexRoot(host), workspace);
  if (place.movedFrom !== null) note(`this folder was indexed as ${place.movedFrom}, and has moved`);
  using vectors = await awaitedVectors(indexing, signal, patience);
  const identity = identityOf(vectors);
  const opening = { patienceMs: PATIENCE_MS, signal, ...(identity === null ? {} : { vectors: identity }) };
  const made = await withRepair(access, place, async () => {
    await using index = await OpenedIndex.write(access, place, opening);
    const { questions, ...updated } = await updateIndex(index, vectors, indexing, signal);
    index.warnOfHidden();
    await tidyStore(index, note, signal);
    await noteWordSearch(index, vectors, note, signal);
    const { chunks, ...rest } = await embedChunks(index, vectors, indexing, signal);
    if (rest.kind === "whole") await measureWorth(index, vectors, questions, signal);
    const awaited = vectors.kind === "none" ? (vectors.awaited ?? null) : null;
    if (index.facts.awaited !== awaited) index.catalog.note({ awaited });
    const { share, next } = vectorShare(rest.embedded, chunks);
    return { ...updated, store: index.store.name, vectors: { ...rest, share, next } };
  });
  const seconds = Math.round((performance.now() - began) / 10) / 100;
  return { workspace, index: place.id, ...made, seconds };
}

/** The number of questions, taken from the history, that measure the benefit of vectors. */
const QUESTION_COUNT = 100;

async function updateIndex(
  index: OpenedIndex,
  vectors: Vectors,
  { host, settings, workspace, quiet, note }: Indexing,
  signal: AbortSignal,
): Promise<Updated & { readonly questions: readonly CommitQuestion[] }> {
  const { readingBox } = await import("../boxes/box-access.ts");
  await using box = await readingBox({ host, settings, workspace, warn: note }, signal);
  const progress = new ProgressLine(stderr, { what: "indexing", quiet });
  try {
    const onProgress = (far: IndexProgress): void => progress.take({ ...far, unit: "files" });
    const updated = await index.update(box, { onProgress }, signal);
    const { worth } = index.facts;
    if (vectors.kind === "none" || !isDue({ model: vectors.model.id, worth }, updated.chunks))
      return { ...updated, questions: [] };
    const { historyIn } = await import("../../search/measure-worth.ts");
    const files = new Set(index.catalog.files().keys());
    const questions = await historyIn(box, files, QUESTION_COUNT, signal).catch(() => []);
    signal.throwIfAborted();
    return { ...updated, questions };
  } finally {
    progress.end();
  }
}

/** Says before the long part that words can already be searched. */
async function noteWordSearch(
  { store }: OpenedIndex,
  vectors: Vectors,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (vectors.kind === "none") return;
  const { embedded, chunks } = await store.counts(signal);
  if (embedded < chunks)
    note(`searchable by words now; ${chunks - embedded} of ${chunks} chunks are still getting their vectors`);
}

/** Weights the vectors by their benefit on the repository's own history. */
async function measureWorth(
  { store, catalog }: OpenedIndex,
  vectors: Vectors,
  questions: readonly CommitQuestion[],
  signal: AbortSignal,
): Promise<void> {
  if (vectors.kind === "none" || questions.length === 0) return;
  const [{ measuredWorth }, { queryVector }] = await Promise.all([
    import("../../search/measure-worth.ts"),
    import("../../search/embed-model.ts"),
  ]);
  const { model, dimension } = vectors;
  let silent = false;
  const vectorOf = async (text: string): Promise<Float32Array | null> => {
    const answer = silent ? null : await queryVector(model, text, { dimension, signal });
    // After one failure the model is not asked again: there may be a hundred questions.
    silent ||= answer?.kind !== "vector";
    return answer?.kind === "vector" ? answer.vector : null;
  };
  const worth = await measuredWorth(store, questions, { model: model.id, vectorOf, signal });
  if (worth !== null) catalog.note({ worth });
}

/** A failure to remove old data on the server only wastes room there. */
async function tidyStore(
  index: OpenedIndex,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    await index.store.tidy(signal);
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof HarnessError)) throw thrown;
    note(`another model's data was not removed from this index: ${thrown.message}`);
  }
}

async function embedChunks(
  index: OpenedIndex,
  vectors: Vectors,
  { quiet }: Indexing,
  signal: AbortSignal,
): Promise<EmbedOutcome> {
  using progress = new ProgressLine(stderr, { what: "embedding", quiet });
  const onProgress = ({ done, total }: IndexProgress): void => progress.take({ done, total, unit: "chunks" });
  const outcome = await embedIn(index, vectors, onProgress, signal);
  signal.throwIfAborted();
  return outcome;
}

/**
 * Time between two looks. A slow look is followed by a longer rest, so that looking takes at most a tenth of the time.
 */
const STEP_MS = 1000;
const REST_FACTOR = 10;
/** With a busy model, words are still kept fresh; the vectors come with a later change. */
const BRIEFLY: EmbedderPatience = { listMs: STEP_MS, vectorMs: 5 * STEP_MS };
/** The pause after trouble, such as a run that has the workspace to itself. */
const TROUBLE_MS = 15_000;

/** Keeps an index fresh until it is told to stop: looks at names and times, and reads what has changed. */
export async function watch(
  indexing: Indexing,
  onIndexed: (indexed: Indexed) => void,
  signal: AbortSignal,
): Promise<never> {
  // The folder it was started in may be removed and recreated meanwhile, and no thread can start in a removed folder.
  process.chdir("/");
  onIndexed(await indexFolder(indexing, signal));
  let warned = "";
  for (;;) {
    const began = performance.now();
    try {
      const fresh = await isFresh(indexing, signal);
      await sleep(Math.max(STEP_MS, (performance.now() - began) * REST_FACTOR), undefined, { signal });
      if (fresh) continue;
      onIndexed(await indexFolder({ ...indexing, quiet: true }, signal, BRIEFLY));
      warned = "";
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof HarnessError)) throw thrown;
      if (warned !== thrown.message)
        indexing.note(`could not be brought up to date, trying again: ${thrown.message}`);
      warned = thrown.message;
      await sleep(TROUBLE_MS, undefined, { signal });
    }
  }
}

async function isFresh({ host, settings, workspace, note }: Indexing, signal: AbortSignal): Promise<boolean> {
  const place = findIndex(indexRoot(host), workspace);
  const found =
    place === undefined
      ? undefined
      : await OpenedIndex.read(indexAccess(host, settings, note), place, signal);
  if (found === undefined) return false;
  await using index = found;
  return await index.isFresh(signal);
}

const NONE = {
  index: null,
  folder: null,
  store: null,
  files: 0,
  chunks: 0,
  skipped: {},
  whole: false,
  fresh: false,
  updated: null,
  vectors: { model: null, embedded: 0, awaited: null, worth: null, share: 0, next: "harness index" },
} as const;

/** The state of a folder's index; reads no files of the folder, and changes nothing. */
export async function indexStatus(
  { host, settings, workspace, note }: Pick<Indexing, "host" | "settings" | "workspace" | "note">,
  signal: AbortSignal,
): Promise<IndexStatus> {
  const place = findIndex(indexRoot(host), workspace);
  const found =
    place === undefined
      ? undefined
      : await OpenedIndex.read(indexAccess(host, settings, note), place, signal);
  if (place === undefined || found === undefined) return { workspace, ...NONE };
  await using index = found;
  index.warnOfHidden();
  const { whole, updated, model, awaited, store } = index.facts;
  const { summaryOf } = await import("../../search/catalog.ts");
  const { embedded, chunks } = await index.store.counts(signal);
  const { share, next } = vectorShare(embedded, chunks);
  return {
    workspace,
    index: place.id,
    folder: existsSync(path.join(place.folder, "catalog.db")) ? place.folder : null,
    store,
    ...summaryOf(index.catalog),
    whole,
    fresh: await index.isFresh(signal),
    updated: updated === 0 ? null : new Date(updated).toISOString(),
    vectors: { model, embedded, awaited, worth: worthOf(index.facts), share, next },
  };
}

/** The benefit for the current model. */
function worthOf(facts: CatalogFacts): IndexStatus["vectors"]["worth"] {
  const worth = worthIn(facts);
  if (worth === null) return null;
  const { weight, questions, words, vectors } = worth;
  return { weight, questions, words, vectors };
}

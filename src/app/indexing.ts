import type { Settings } from "../config/settings-schema.ts";
import { HarnessError } from "../core/errors.ts";
import { stderr } from "../render/tty/output.ts";
import { claimIndex } from "../search/embedded/catalog-workspace.ts";
import type { EmbedOutcome } from "../search/embed-outcome.ts";
import { mending } from "../search/index/mending.ts";
import { HeldIndex } from "../search/index/open-index.ts";
import type { Updated } from "../search/index/update-index.ts";
import { readingBox } from "./reading-box.ts";
import { indexMeans, indexRoot } from "./search-access.ts";
import { IndexProgress } from "./search-progress.ts";
import { embedIn, identityOf, noVectors, type Vectors, vectorsFor } from "./search-vectors.ts";

export interface Indexing {
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
  readonly vectors: Pick<EmbedOutcome, "kind" | "embedded" | "reused" | "asked" | "reason" | "remedy">;
  readonly workspace: string;
  readonly index: string;
  readonly store: "embedded" | "qdrant";
  readonly seconds: number;
}

/** How long it waits for another that writes the same index. */
const PATIENCE_MS = 5000;

/** Makes or renews the index of a folder, and its vectors where something makes them. */
export async function indexFolder(indexing: Indexing, signal: AbortSignal): Promise<Indexed> {
  const { settings, workspace, note, embeds } = indexing;
  const began = performance.now();
  const means = indexMeans(settings, note);
  const place = claimIndex(indexRoot(), workspace);
  if (place.movedFrom !== null) note(`this folder was indexed as ${place.movedFrom}, and has moved`);
  using vectors = embeds ? await vectorsFor(indexing, signal) : noVectors("--no-embed", "harness index");
  const identity = identityOf(vectors);
  const opening = { patienceMs: PATIENCE_MS, signal, ...(identity === null ? {} : { vectors: identity }) };
  const made = await mending(means, place, async () => {
    await using index = await HeldIndex.write(means, place, opening);
    const updated = await brought(index, indexing, signal);
    index.warnOfHidden();
    await tidied(index, note, signal);
    const { chunks: _, ...rest } = await embedded(index, vectors, indexing, signal);
    return { ...updated, store: index.store.name, vectors: rest };
  });
  const seconds = Math.round((performance.now() - began) / 10) / 100;
  return { workspace, index: place.id, ...made, seconds };
}

async function brought(
  index: HeldIndex,
  { settings, workspace, quiet, note }: Indexing,
  signal: AbortSignal,
): Promise<Updated> {
  await using box = await readingBox({ settings, workspace, warn: note }, signal);
  const progress = new IndexProgress(stderr, quiet, "indexing", "files");
  try {
    return await index.update(box, { onProgress: progress.take }, signal);
  } finally {
    progress.end();
  }
}

/** What a server does not let go of costs its room there and nothing else. */
async function tidied(index: HeldIndex, note: (text: string) => void, signal: AbortSignal): Promise<void> {
  try {
    await index.store.tidy(signal);
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof HarnessError)) throw thrown;
    note(`what another model had of this index is not removed: ${thrown.message}`);
  }
}

async function embedded(
  index: HeldIndex,
  vectors: Vectors,
  { quiet }: Indexing,
  signal: AbortSignal,
): Promise<EmbedOutcome> {
  const progress = new IndexProgress(stderr, quiet, "embedding", "chunks");
  try {
    const outcome = await embedIn(index, vectors, progress.take, signal);
    signal.throwIfAborted();
    return outcome;
  } finally {
    progress.end();
  }
}

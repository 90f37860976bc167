import type { Settings } from "../../config/schema.ts";
import { claimIndex } from "../../search/catalog/workspace.ts";
import { HeldIndex } from "../../search/index/held.ts";
import type { Updated } from "../../search/index/update.ts";
import { indexMeans, indexRoot } from "../search-seat.ts";
import { IndexProgress } from "./progress.ts";
import { readingBox } from "./reading-box.ts";

export interface Indexing {
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly quiet: boolean;
  readonly note: (text: string) => void;
}

export interface Indexed extends Updated {
  readonly workspace: string;
  readonly index: string;
  readonly store: "embedded" | "qdrant";
  readonly embedded: number;
  readonly seconds: number;
}

/** How long it waits for another that writes the same index. */
const PATIENCE_MS = 5000;

/** Makes or renews the index of a folder. */
export async function indexFolder(
  { settings, workspace, quiet, note }: Indexing,
  signal: AbortSignal,
): Promise<Indexed> {
  const began = performance.now();
  const means = indexMeans(settings, note);
  const place = claimIndex(indexRoot(), workspace);
  if (place.movedFrom !== null) note(`this folder was indexed as ${place.movedFrom}, and has moved`);
  await using index = await HeldIndex.write(means, place, { patienceMs: PATIENCE_MS, signal });
  await using box = await readingBox(settings, workspace, note, signal);
  const progress = new IndexProgress(process.stderr, quiet, "indexing");
  try {
    const updated = await index.update(box, { onProgress: progress.take }, signal);
    const { embedded } = await index.store.counts(signal);
    const seconds = Math.round((performance.now() - began) / 10) / 100;
    return { workspace, index: place.id, ...updated, store: index.store.name, embedded, seconds };
  } finally {
    progress.end();
  }
}

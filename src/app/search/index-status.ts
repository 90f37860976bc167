import { existsSync } from "node:fs";
import path from "node:path";
import { findIndex } from "../../search/embedded/catalog-workspace.ts";
import type { Skip } from "../../search/index-words.ts";
import { HeldIndex } from "../../search/index/open-index.ts";
import type { Indexing } from "./indexing.ts";
import { indexMeans, indexRoot } from "./search-access.ts";

export interface IndexStatus {
  readonly workspace: string;
  /** Null: there is none yet. */
  readonly index: string | null;
  readonly folder: string | null;
  readonly store: "embedded" | "qdrant" | null;
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Partial<Record<Skip, number>>>;
  /** The last update ran to its end. */
  readonly whole: boolean;
  /** And nothing has changed since. */
  readonly fresh: boolean;
  /** When an update ended last, as an ISO time. */
  readonly updated: string | null;
  readonly vectors: { readonly model: string | null; readonly embedded: number };
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
  vectors: { model: null, embedded: 0 },
} as const;

/** What there is of the index of a folder; nothing is read of the files, and nothing is changed. */
export async function indexStatus(
  { settings, workspace, note }: Pick<Indexing, "settings" | "workspace" | "note">,
  signal: AbortSignal,
): Promise<IndexStatus> {
  const place = findIndex(indexRoot(), workspace);
  const held =
    place === undefined ? undefined : await HeldIndex.read(indexMeans(settings, note), place, signal);
  if (place === undefined || held === undefined) return { workspace, ...NONE };
  await using index = held;
  index.warnOfHidden();
  const { whole, updated, model, store } = index.facts;
  const { summaryOf } = await import("../../search/index/index-summary.ts");
  const { embedded } = await index.store.counts(signal);
  return {
    workspace,
    index: place.id,
    folder: existsSync(path.join(place.folder, "catalog.db")) ? place.folder : null,
    store,
    ...summaryOf(index.catalog),
    whole,
    fresh: await index.isFresh(signal),
    updated: updated === 0 ? null : new Date(updated).toISOString(),
    vectors: { model, embedded },
  };
}

import type { Catalog } from "../embedded/catalog.ts";
import type { Skip } from "../index-words.ts";

export interface Summary {
  /** Files in the index. */
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Partial<Record<Skip, number>>>;
}

export function summaryOf(catalog: Catalog): Summary {
  const rows = catalog.tally();
  const skipped: Partial<Record<Skip, number>> = {};
  for (const { skip, files } of rows) if (skip !== null) skipped[skip] = files;
  const { nameless } = catalog.facts();
  if (nameless > 0) skipped.unreadable = (skipped.unreadable ?? 0) + nameless;
  const there = rows.find(({ skip }) => skip === null);
  return { files: there?.files ?? 0, chunks: there?.chunks ?? 0, skipped };
}

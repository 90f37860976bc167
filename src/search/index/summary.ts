import type { Catalog } from "../catalog/catalog.ts";
import type { Skip } from "../words.ts";

export interface Summary {
  /** Files in the index. */
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Partial<Record<Skip, number>>>;
}

export function summaryOf(catalog: Catalog): Summary {
  const rows = [...catalog.files().values()];
  const skipped: Partial<Record<Skip, number>> = {};
  for (const { skip } of rows) if (skip !== null) skipped[skip] = (skipped[skip] ?? 0) + 1;
  const { nameless } = catalog.facts();
  if (nameless > 0) skipped.unreadable = (skipped.unreadable ?? 0) + nameless;
  return {
    files: rows.filter(({ chunks }) => chunks > 0).length,
    chunks: rows.reduce((sum, { chunks }) => sum + chunks, 0),
    skipped,
  };
}

import { formatDuration } from "../../core/bounds.ts";
import { visibleLine } from "../../core/visible.ts";

interface Indexed {
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly changed: number;
  readonly removed: number;
  readonly store: string;
  readonly vectors: { readonly embedded: number; readonly reason: string; readonly remedy: string };
  readonly seconds: number;
}

/** What is in an index now. */
export function indexedLines(done: Indexed): string {
  const { files, chunks, changed, removed, store, vectors, seconds } = done;
  const what = `${files} files in ${chunks} chunks (${store} store), ${formatDuration(seconds * 1000)}`;
  const news = `${changed} read anew, ${removed} removed`;
  return [what, news, skippedLine(done.skipped), vectorLine(chunks, vectors)]
    .filter((line) => line !== "")
    .join("\n");
}

function skippedLine(skipped: Readonly<Record<string, number>>): string {
  const parts = Object.entries(skipped).toSorted(([, a], [, b]) => b - a);
  return parts.length === 0 ? "" : `left out: ${parts.map(([why, count]) => `${count} ${why}`).join(", ")}`;
}

function vectorLine(chunks: number, { embedded, reason, remedy }: Indexed["vectors"]): string {
  const why =
    reason === "" ? "" : `: ${visibleLine(reason)}${remedy === "" ? "" : ` (next: ${visibleLine(remedy)})`}`;
  return `${embedded} of ${chunks} chunks have vectors${why}`;
}

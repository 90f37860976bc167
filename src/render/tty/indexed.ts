import { formatDuration } from "../../core/bounds.ts";

interface Indexed {
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly changed: number;
  readonly removed: number;
  readonly store: string;
  readonly embedded: number;
  readonly seconds: number;
}

/** What is in an index now. */
export function indexedLines(done: Indexed): string {
  const { files, chunks, changed, removed, store, embedded, seconds } = done;
  const what = `${files} files in ${chunks} chunks (${store} store), ${formatDuration(seconds * 1000)}`;
  const news = `${changed} read anew, ${removed} removed`;
  return [what, news, skippedLine(done.skipped), `${embedded} of ${chunks} chunks have a vector`]
    .filter((line) => line !== "")
    .join("\n");
}

function skippedLine(skipped: Readonly<Record<string, number>>): string {
  const parts = Object.entries(skipped).toSorted(([, a], [, b]) => b - a);
  return parts.length === 0 ? "" : `left out: ${parts.map(([why, count]) => `${count} ${why}`).join(", ")}`;
}

import { formatDuration, formatSize } from "../../core/bounds.ts";
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
  if (chunks === 0) return "";
  const why =
    reason === "" ? "" : `: ${visibleLine(reason)}${remedy === "" ? "" : ` (next: ${visibleLine(remedy)})`}`;
  return `${embedded} of ${chunks} chunks have vectors${why}`;
}

interface Status {
  readonly workspace: string;
  readonly index: string | null;
  readonly folder: string | null;
  readonly store: string | null;
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly whole: boolean;
  readonly fresh: boolean;
  readonly updated: string | null;
  readonly vectors: { readonly model: string | null; readonly embedded: number };
}

/** What there is of an index, and how far it can be believed. */
export function statusLines(status: Status): string {
  const { workspace, index, folder, store, files, chunks, whole, fresh, updated, vectors } = status;
  if (index === null) return `no index of ${visibleLine(workspace)} yet: harness index`;
  const state = !whole
    ? "partial: the last update did not end; harness index goes on with it"
    : fresh
      ? "fresh"
      : "files have changed since; the next search brings it up to date";
  const model = vectors.model === null ? "" : ` of ${visibleLine(vectors.model)}`;
  return [
    `${visibleLine(workspace)}: ${state}`,
    `${files} files in ${chunks} chunks, ${vectors.embedded} with vectors${model}`,
    skippedLine(status.skipped),
    `${store ?? "no"} store, ${visibleLine(folder ?? "")}, updated ${updated ?? "never"}`,
  ]
    .filter((line) => line !== "")
    .join("\n");
}

interface Pruned {
  readonly removed: readonly { readonly workspace: string }[];
  readonly layers: number;
  readonly damaged: number;
  readonly left: readonly { readonly workspace: string; readonly reason: string }[];
  readonly freedBytes: number;
}

/** What was removed, and what had to stay. */
export function prunedLines({ removed, layers, damaged, left, freedBytes }: Pruned): string {
  return [
    ...removed.map(({ workspace }) => `removed the index of ${visibleLine(workspace)}, which is no more`),
    ...(layers === 0 ? [] : [`removed what ${layers} ended runs had left`]),
    ...(damaged === 0 ? [] : [`removed ${damaged} damaged files that were set aside`]),
    ...left.map(({ workspace, reason }) => `left ${visibleLine(workspace)} as it is: ${visibleLine(reason)}`),
    `${formatSize(freedBytes)} freed`,
  ].join("\n");
}

/** What became of one path. Paths are byte texts. */
export interface FileDiff {
  readonly path: string;
  readonly change: "added" | "deleted" | "modified" | "renamed";
  /** Where a renamed one was. */
  readonly was: string | null;
  readonly before: FileSide | null;
  readonly after: FileSide | null;
  /** null: the contents are others, and not to be told in lines. */
  readonly lines: LineDiff | null;
}

export interface FileSide {
  readonly kind: "file" | "link" | "folder" | "fifo" | "socket" | "device" | "unkept";
  /** The lower twelve bits; null for a link. */
  readonly mode: number | null;
  readonly size: number;
}

export interface LineDiff {
  readonly added: number;
  readonly removed: number;
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  /** As in the head of a hunk: the first line, from 1 on, and how many. */
  readonly from: readonly [first: number, count: number];
  readonly to: readonly [first: number, count: number];
  /** Each with " ", "-" or "+" before it, without its end. A line without an end is followed by one of "\\". */
  readonly lines: readonly string[];
}

/**
 * A tree of files that is examined and never run: a folder, an archive, a commit. Types only.
 *
 * Names are arbitrary bytes: bytes that are not UTF-8 appear as lone surrogates (byte 0x80 + n as U+DC80 + n), so that
 * every path is a text that leads back to its file. `/` separates names; a path has no `.` or `..`, and no slash at
 * either end.
 */
export interface TreeEntry {
  /** Relative to the top of the tree. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
  /** In bytes; only for files. */
  readonly size: number;
  /** For a link: its target, as written. For an odd entry: `pipe`, `socket`, `device`. */
  readonly target?: string;
  /** How many names the file has, here or elsewhere; one when left out. */
  readonly names?: number;
  /** A folder whose content is unknown: it may not be read, or lies too deep. */
  readonly closed?: boolean;
}

export interface LookedAtTree {
  /** Folders before their content, each entry once; links are not followed. */
  entries(signal: AbortSignal): AsyncIterable<TreeEntry>;
  /** Bytes of a regular file from an offset, at most `limit`; undefined when it is missing or was replaced. */
  read(path: string, limit: number, from?: number): Promise<Uint8Array | undefined>;
}

/**
 * A tree of files that is looked at and never run: a folder, an archive, a commit. Pure words.
 *
 * Names are any bytes: what is no UTF-8 stands as lone surrogates (byte 0x80 + n as U+DC80 + n), so that every path is
 * one text and leads back to its file. `/` parts names; there is neither `.` nor `..`, nor a slash at an end.
 */
export interface TreeEntry {
  /** From the tree's top. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
  /** In bytes; of a file. */
  readonly size: number;
  /** Of a link: where it leads, as it is written. Of an odd one: `pipe`, `socket`, `device`. */
  readonly target?: string;
  /** How many names the file has, here or elsewhere; left out: one. */
  readonly names?: number;
  /** A folder that was not looked into: it may not be read, or lies too deep. */
  readonly closed?: boolean;
}

export interface LookedAtTree {
  /** Folders before what is in them, each entry once; links are not followed. */
  entries(signal: AbortSignal): AsyncIterable<TreeEntry>;
  /** Bytes of a regular file from an offset, at most `limit`; undefined where there is none, or another by now. */
  read(path: string, limit: number, from?: number): Promise<Uint8Array | undefined>;
}

import { closeSync, fstatSync, readSync, type Stats } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";
import { errorCode } from "../../core/errors.ts";
import { openRegularSync } from "../../platform/safe-files.ts";
import { type FileEntry, isReallyAt } from "./entry.ts";
import type { Packs } from "./packs.ts";

/** Files are stored in pieces of this size, so that a large growing file is not stored again as a whole. */
const PIECE = 4 * 2 ** 20;
const TRIES = 3;
/** Contents of larger files are not kept. */
export const MAX_BYTES = 2 ** 30;

interface Read {
  readonly stats: Stats;
  readonly pieces: readonly string[];
  /** The file was not written to while it was read. */
  readonly stable: boolean;
}

export class ContentReader {
  readonly #packs: Packs;
  readonly #buffer = Buffer.allocUnsafeSlow(PIECE);

  constructor(packs: Packs) {
    this.#packs = packs;
  }

  /** undefined if there is no readable file any more. Throws only if the packs cannot store the content. */
  read(whole: string | Buffer): Read | undefined {
    const descriptor = opened(whole);
    if (descriptor === undefined) return undefined;
    try {
      if (!isReallyAt(descriptor, whole)) return undefined;
      for (let tried = 1; ; tried += 1) {
        const before = fstatSync(descriptor);
        if (!before.isFile()) return undefined;
        const pieces = this.#pieces(descriptor);
        if (pieces === undefined) return undefined;
        const stats = fstatSync(descriptor);
        const stable = sameTimes(before, stats);
        if (stable || tried === TRIES) return { stats, pieces, stable };
      }
    } finally {
      closeSync(descriptor);
    }
  }

  #pieces(descriptor: number): readonly string[] | undefined {
    const pieces: string[] = [];
    for (let at = 0; ;) {
      const length = this.#fill(descriptor, at);
      if (length === undefined) return undefined;
      if (length > 0) pieces.push(this.#packs.put(this.#buffer.subarray(0, length)));
      at += length;
      if (length < PIECE) return pieces;
      // A file that grows while it is read might never end.
      if (at > MAX_BYTES) return undefined;
    }
  }

  /** undefined if the disk cannot read its own data: that is not a failure here. */
  #fill(descriptor: number, at: number): number | undefined {
    let filled = 0;
    try {
      while (filled < PIECE) {
        const read = readSync(descriptor, this.#buffer, filled, PIECE - filled, at + filled);
        if (read === 0) break;
        filled += read;
      }
      return filled;
    } catch {
      return undefined;
    }
  }
}

function opened(whole: string | Buffer): number | undefined {
  try {
    return openRegularSync(whole, "refuse").descriptor;
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "EMFILE" || code === "ENFILE" || code === "ENOMEM") throw thrown;
    return undefined;
  }
}

type Times = Pick<Stats, "dev" | "ino" | "size" | "mtimeMs" | "ctimeMs">;

export const sameTimes = (a: Times, b: Times): boolean =>
  a.size === b.size &&
  a.mtimeMs === b.mtimeMs &&
  a.ctimeMs === b.ctimeMs &&
  a.ino === b.ino &&
  a.dev === b.dev;

/** Larger texts are neither merged nor shown line by line. */
const MAX_TEXT = 4 * 2 ** 20;

/** undefined if a piece is missing or damaged. */
export function contentOf(packs: Packs, { pieces }: FileEntry): Buffer | undefined {
  const all: Buffer[] = [];
  for (const piece of pieces) {
    const content = packs.get(piece);
    if (content === undefined) return undefined;
    all.push(content);
  }
  return Buffer.concat(all);
}

/** The content as a byte text; undefined if it is not text, too large, or missing. */
export function textOf(packs: Packs, entry: FileEntry): string | undefined {
  if (entry.size > MAX_TEXT) return undefined;
  const content = contentOf(packs, entry);
  return content === undefined || content.includes(0) ? undefined : textOfBytes(content);
}

/** Durable after the next flush. */
export function putText(packs: Packs, text: string): Pick<FileEntry, "size" | "pieces"> {
  const content = bytesOfText(text);
  return { size: content.length, pieces: content.length === 0 ? [] : [packs.put(content)] };
}

import { closeSync, fstatSync, readSync, type Stats } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";
import { errorCode } from "../../core/errors.ts";
import { openRegularSync } from "../../platform/safe-files.ts";
import { type FileEntry, liesAt } from "./entry.ts";
import type { Packs } from "./packs.ts";

/** A file in pieces of this size, so that a large one that grows is not kept again as a whole. */
const PIECE = 4 * 2 ** 20;
const TRIES = 3;
/** Of one file; what is larger is not kept. */
export const MAX_BYTES = 2 ** 30;

interface Read {
  readonly stats: Stats;
  readonly pieces: readonly string[];
  /** It was not written to while it was read. */
  readonly stable: boolean;
}

/** Reads files into packs. */
export class ContentReader {
  readonly #packs: Packs;
  readonly #buffer = Buffer.allocUnsafeSlow(PIECE);

  constructor(packs: Packs) {
    this.#packs = packs;
  }

  /** undefined when there is no file any more that may be read. Rejects only when the packs take nothing. */
  read(whole: string | Buffer): Read | undefined {
    const descriptor = opened(whole);
    if (descriptor === undefined) return undefined;
    try {
      if (!liesAt(descriptor, whole)) return undefined;
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
      // One that grows as it is read has no end.
      if (at > MAX_BYTES) return undefined;
    }
  }

  /** A disk that does not give back what it holds is no failure of ours. */
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

/** undefined where a piece is gone or damaged. */
export function contentOf(packs: Packs, { pieces }: FileEntry): Buffer | undefined {
  const all: Buffer[] = [];
  for (const piece of pieces) {
    const content = packs.get(piece);
    if (content === undefined) return undefined;
    all.push(content);
  }
  return Buffer.concat(all);
}

/** As a byte text; undefined for what is no text, is too large to be read as one, or is gone. */
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

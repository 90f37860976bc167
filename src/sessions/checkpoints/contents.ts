import { bytesOfText, textOfBytes } from "../../core/byte-text.ts";
import type { FileEntry } from "./entry.ts";
import type { Packs } from "./packs.ts";

/** Larger texts are neither merged nor shown line by line. */
const MOST_TEXT = 4 * 2 ** 20;

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
  if (entry.size > MOST_TEXT) return undefined;
  const content = contentOf(packs, entry);
  return content === undefined || content.includes(0) ? undefined : textOfBytes(content);
}

/** Durable after the next flush. */
export function putText(packs: Packs, text: string): Pick<FileEntry, "size" | "pieces"> {
  const content = bytesOfText(text);
  return { size: content.length, pieces: content.length === 0 ? [] : [packs.put(content)] };
}

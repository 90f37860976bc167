import type { Buffer } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const PIECE = 256 * 1024;
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Whether both are regular files of the same bytes. Neither a link nor a pipe is entered. */
export async function sameContent(one: Buffer, other: Buffer): Promise<boolean> {
  await using a = await open(one, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  await using b = await open(other, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const [left, right] = await Promise.all([a.stat(), b.stat()]);
  if (!left.isFile() || !right.isFile() || left.size !== right.size) return false;
  for (let at = 0; at < left.size; at += PIECE) {
    const length = Math.min(PIECE, left.size - at);
    const [mine, theirs] = await Promise.all([piece(a, at, length), piece(b, at, length)]);
    if (!mine.equals(theirs)) return false;
  }
  return true;
}

async function piece(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = globalThis.Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return bytes.subarray(0, bytesRead);
}

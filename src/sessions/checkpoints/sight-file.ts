import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Seen, Sight } from "./seen.ts";

/**
 * What was last seen of a workspace, so that the next run reads only what has changed since. It may be lost at any time:
 * then all is read again. Contents that the packs no longer have make an entry worthless.
 */
export function readSight(file: string, has: (piece: string) => boolean): Sight {
  try {
    const pairs = JSON.parse(zstdDecompressSync(readFileSync(file)).toString()) as readonly [string, Seen][];
    return new Map(pairs.filter(([, { entry }]) => entry.kind !== "file" || entry.pieces.every(has)));
  } catch {
    return new Map();
  }
}

export function writeSight(file: string, sight: Sight): void {
  const aside = `${file}.${process.pid}`;
  try {
    writeFileSync(aside, zstdCompressSync(JSON.stringify([...sight])), { mode: 0o600 });
    renameSync(aside, file);
  } catch {
    rmSync(aside, { force: true });
  }
}

import type { Connection } from "../../sqlite/connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { NumberReader } from "./varint.ts";

/** One segment's chunks and files are a run of places in the whole. */
export interface Segment {
  readonly number: number;
  readonly firstChunk: number;
  readonly firstFile: number;
  readonly chunks: number;
  readonly files: number;
  /** How many of its chunks are of files that are gone. */
  readonly deadChunks: number;
}

/** What is known of all chunks and files without looking at words. Places count from 0, over all segments. */
export interface Layout {
  readonly segments: readonly Segment[];
  /** By the chunk's place. */
  readonly chunkNumber: Uint32Array;
  readonly chunkLength: Uint32Array;
  readonly chunkFile: Uint32Array;
  /** By the file's place. */
  readonly fileNumber: Uint32Array;
  readonly fileRole: Uint8Array;
  readonly fileLength: Uint32Array;
  /** How many words its own name has. */
  readonly fileNames: Uint8Array;
  /** The place of its first chunk; one more at the end. */
  readonly fileStart: Uint32Array;
  /** 1: it is no longer in the index. */
  readonly fileDead: Uint8Array;
  readonly liveChunks: number;
  readonly liveFiles: number;
  /** Of live chunks, in words. */
  readonly liveLength: number;
}

export function readLayout(database: Connection): Layout {
  const dead = new Set(database.all("SELECT file FROM dead").map(({ file }) => Number(file)));
  const growing = new Growing(dead);
  const segments = database
    .all("SELECT number, layout FROM segments ORDER BY number")
    .map(({ number, layout }) => growing.add(Number(number), new NumberReader(layout)));
  return growing.whole(segments);
}

class Growing {
  readonly #dead: ReadonlySet<number>;
  readonly #chunkNumber: number[] = [];
  readonly #chunkLength: number[] = [];
  readonly #chunkFile: number[] = [];
  readonly #fileNumber: number[] = [];
  readonly #fileRole: number[] = [];
  readonly #fileLength: number[] = [];
  readonly #fileStart: number[] = [];
  readonly #fileNames: number[] = [];
  readonly #fileDead: number[] = [];
  #liveChunks = 0;
  #liveFiles = 0;
  #liveLength = 0;

  constructor(dead: ReadonlySet<number>) {
    this.#dead = dead;
  }

  add(number: number, reader: NumberReader): Segment {
    const firstChunk = this.#chunkNumber.length;
    const firstFile = this.#fileNumber.length;
    let deadChunks = 0;
    while (reader.more) deadChunks += this.#file(reader);
    const chunks = this.#chunkNumber.length - firstChunk;
    return { number, firstChunk, firstFile, chunks, files: this.#fileNumber.length - firstFile, deadChunks };
  }

  whole(segments: readonly Segment[]): Layout {
    this.#fileStart.push(this.#chunkNumber.length);
    return {
      segments,
      chunkNumber: Uint32Array.from(this.#chunkNumber),
      chunkLength: Uint32Array.from(this.#chunkLength),
      chunkFile: Uint32Array.from(this.#chunkFile),
      fileNumber: Uint32Array.from(this.#fileNumber),
      fileRole: Uint8Array.from(this.#fileRole),
      fileLength: Uint32Array.from(this.#fileLength),
      fileStart: Uint32Array.from(this.#fileStart),
      fileNames: Uint8Array.from(this.#fileNames),
      fileDead: Uint8Array.from(this.#fileDead),
      liveChunks: this.#liveChunks,
      liveFiles: this.#liveFiles,
      liveLength: this.#liveLength,
    };
  }

  /** How many of the file's chunks are dead. */
  #file(reader: NumberReader): number {
    const number = reader.next();
    const place = this.#fileNumber.length;
    const dead = this.#dead.has(number);
    this.#fileNumber.push(number);
    this.#fileRole.push(reader.next());
    this.#fileNames.push(reader.next());
    this.#fileStart.push(this.#chunkNumber.length);
    this.#fileDead.push(dead ? 1 : 0);
    const chunks = reader.next();
    let length = 0;
    for (let at = 0; at < chunks; at += 1) {
      this.#chunkNumber.push(reader.next());
      const words = reader.next();
      this.#chunkLength.push(words);
      this.#chunkFile.push(place);
      length += words;
    }
    this.#fileLength.push(length);
    if (dead) return chunks;
    this.#liveFiles += 1;
    this.#liveChunks += chunks;
    this.#liveLength += length;
    return 0;
  }
}

/** At an index that must be there. */
export function at(numbers: Uint32Array | Uint8Array | Float64Array, index: number): number {
  const number = numbers[index];
  if (number === undefined) throw new DamagedIndex(`no place ${index}`);
  return number;
}

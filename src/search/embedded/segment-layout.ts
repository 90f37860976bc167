import type { Connection } from "../../platform/sqlite-connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { NumberReader } from "./segment.ts";

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
  const rows = database.all("SELECT number, layout FROM segments ORDER BY number");
  const bytes = rows.reduce((sum, { layout }) => sum + (layout instanceof Uint8Array ? layout.length : 0), 0);
  const growing = new Growing(dead, bytes);
  const segments = rows.map(({ number, layout }) => growing.add(Number(number), new NumberReader(layout)));
  return growing.whole(segments);
}

/** Numbers that are said of a file before its chunks, and of a chunk; each takes a byte at least. */
const OF_FILE = 4;
const OF_CHUNK = 2;

class Growing {
  readonly #dead: ReadonlySet<number>;
  readonly #chunkNumber: Uint32Array;
  readonly #chunkLength: Uint32Array;
  readonly #chunkFile: Uint32Array;
  readonly #fileNumber: Uint32Array;
  readonly #fileRole: Uint8Array;
  readonly #fileLength: Uint32Array;
  readonly #fileStart: Uint32Array;
  readonly #fileNames: Uint8Array;
  readonly #fileDead: Uint8Array;
  #files = 0;
  #chunks = 0;
  #liveChunks = 0;
  #liveFiles = 0;
  #liveLength = 0;

  /** `bytes`: of all that comes, so that there is room for it. */
  constructor(dead: ReadonlySet<number>, bytes: number) {
    this.#dead = dead;
    const [chunks, files] = [Math.floor(bytes / OF_CHUNK), Math.floor(bytes / OF_FILE)];
    this.#chunkNumber = new Uint32Array(chunks);
    this.#chunkLength = new Uint32Array(chunks);
    this.#chunkFile = new Uint32Array(chunks);
    this.#fileNumber = new Uint32Array(files);
    this.#fileRole = new Uint8Array(files);
    this.#fileLength = new Uint32Array(files);
    this.#fileStart = new Uint32Array(files + 1);
    this.#fileNames = new Uint8Array(files);
    this.#fileDead = new Uint8Array(files);
  }

  add(number: number, reader: NumberReader): Segment {
    const [firstChunk, firstFile] = [this.#chunks, this.#files];
    let deadChunks = 0;
    while (reader.more) deadChunks += this.#file(reader);
    const [chunks, files] = [this.#chunks - firstChunk, this.#files - firstFile];
    return { number, firstChunk, firstFile, chunks, files, deadChunks };
  }

  whole(segments: readonly Segment[]): Layout {
    this.#fileStart[this.#files] = this.#chunks;
    const [chunks, files] = [this.#chunks, this.#files];
    return {
      segments,
      chunkNumber: this.#chunkNumber.slice(0, chunks),
      chunkLength: this.#chunkLength.slice(0, chunks),
      chunkFile: this.#chunkFile.slice(0, chunks),
      fileNumber: this.#fileNumber.slice(0, files),
      fileRole: this.#fileRole.slice(0, files),
      fileLength: this.#fileLength.slice(0, files),
      fileStart: this.#fileStart.slice(0, files + 1),
      fileNames: this.#fileNames.slice(0, files),
      fileDead: this.#fileDead.slice(0, files),
      liveChunks: this.#liveChunks,
      liveFiles: this.#liveFiles,
      liveLength: this.#liveLength,
    };
  }

  /** How many of the file's chunks are dead. */
  #file(reader: NumberReader): number {
    const number = reader.next();
    const place = this.#files++;
    const dead = this.#dead.has(number);
    this.#fileNumber[place] = number;
    this.#fileRole[place] = reader.next();
    this.#fileNames[place] = reader.next();
    this.#fileStart[place] = this.#chunks;
    this.#fileDead[place] = dead ? 1 : 0;
    const chunks = reader.next();
    const length = this.#chunksOf(place, chunks, reader);
    this.#fileLength[place] = length;
    if (dead) return chunks;
    this.#liveFiles += 1;
    this.#liveChunks += chunks;
    this.#liveLength += length;
    return 0;
  }

  /** Words of all of them. */
  #chunksOf(file: number, count: number, reader: NumberReader): number {
    const [numbers, lengths, files] = [this.#chunkNumber, this.#chunkLength, this.#chunkFile];
    const end = this.#chunks + count;
    let length = 0;
    for (let at = this.#chunks; at < end; at += 1) {
      numbers[at] = reader.next();
      const words = reader.next();
      lengths[at] = words;
      files[at] = file;
      length += words;
    }
    this.#chunks = end;
    return length;
  }
}

/** At an index that must be there. */
export function at(numbers: Uint32Array | Uint8Array | Float64Array, index: number): number {
  const number = numbers[index];
  if (number === undefined) throw new DamagedIndex(`no place ${index}`);
  return number;
}

import type { Connection } from "../../platform/sqlite-connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { NumberReader } from "./segment.ts";

/** One segment; its chunks and files have consecutive places. */
export interface Segment {
  readonly number: number;
  readonly firstChunk: number;
  readonly firstFile: number;
  readonly chunks: number;
  readonly files: number;
  /** How many of the segment's chunks belong to removed files. */
  readonly deadChunks: number;
}

/** Facts about all chunks and files that do not depend on words. Places count from 0, over all segments. */
export interface Layout {
  readonly segments: readonly Segment[];
  /** Indexed by the place of a chunk. */
  readonly chunkNumber: Uint32Array;
  readonly chunkLength: Uint32Array;
  readonly chunkFile: Uint32Array;
  /** Indexed by the place of a file. */
  readonly fileNumber: Uint32Array;
  readonly fileRole: Uint8Array;
  readonly fileLength: Uint32Array;
  /** Number of words in the file's own name. */
  readonly fileNames: Uint8Array;
  /** The place of the file's first chunk; one more entry at the end. */
  readonly fileStart: Uint32Array;
  /** 1 if the file is no longer in the index. */
  readonly fileDead: Uint8Array;
  readonly liveChunks: number;
  readonly liveFiles: number;
  /** Total length of live chunks, in words. */
  readonly liveLength: number;
}

export function readLayout(database: Connection): Layout {
  const dead = new Set(database.all("SELECT file FROM dead").map(({ file }) => Number(file)));
  const rows = database.all("SELECT number, layout FROM segments ORDER BY number");
  const bytes = rows.reduce((sum, { layout }) => sum + (layout instanceof Uint8Array ? layout.length : 0), 0);
  const growing = new LayoutBuilder(dead, bytes);
  const segments = rows.map(({ number, layout }) => growing.add(Number(number), new NumberReader(layout)));
  return growing.whole(segments);
}

/** Numbers stored per file before its chunks, and per chunk; each takes at least a byte. */
const OF_FILE = 4;
const OF_CHUNK = 2;

class LayoutBuilder {
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

  /** `bytes`: size of all layouts together, an upper bound for the arrays. */
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

  /** Returns the number of the file's dead chunks. */
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

  /** Returns the number of words in all chunks of the file. */
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

/** The number at an index that must exist. */
export function at(numbers: Uint32Array | Uint8Array | Float64Array, index: number): number {
  const number = numbers[index];
  if (number === undefined) throw new DamagedIndex(`there is no entry ${index}`);
  return number;
}

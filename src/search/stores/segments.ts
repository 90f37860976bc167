import type { SqliteConnection } from "../../platform/sqlite.ts";
import { DamagedIndex } from "../index-folders.ts";
import type { Role } from "../search-store.ts";

/**
 * Segments of the index by words. Each batch of files becomes a segment, written once and never changed; segments of
 * one size are merged into a larger one.
 */

/** In the order of their stored numbers; a new role goes last. */
export const ROLES: readonly Role[] = ["source", "test", "example", "docs", "vendored", "config"];

/** Maximum counts of a word: beyond them scores hardly change, and both counts fit into one byte. */
const MAX_IN_TEXT = 31;
const MAX_IN_SYMBOL = 3;

/** Where in a path a word occurs; both bits may be set. */
export const IN_FOLDER = 1;
export const IN_NAME = 2;

interface ChunkWords {
  readonly number: number;
  readonly text: ReadonlyMap<string, number>;
  readonly symbol: ReadonlyMap<string, number>;
}

export interface FileWords {
  readonly number: number;
  readonly role: Role;
  /** For each word of the path, where in the path it occurs. */
  readonly path: ReadonlyMap<string, number>;
  /** Number of words in the file's own name. */
  readonly names: number;
  readonly chunks: readonly ChunkWords[];
}

/** Writes the places of one word in ascending order, each with a count. */
class ListWriter {
  readonly #writer = new NumberWriter();
  #last = 0;

  add(place: number, count: number): void {
    this.#writer.write(place - this.#last);
    this.#writer.write(count);
    this.#last = place;
  }

  get bytes(): Uint8Array {
    return this.#writer.bytes;
  }
}

interface Lists {
  readonly chunks: ListWriter;
  readonly files: ListWriter;
}

/** The chunks with one word, and the files with it in their paths. */
interface WordRow {
  readonly word: string;
  readonly chunks: Uint8Array;
  readonly files: Uint8Array;
}

/**
 * Writes a segment of the index: its chunks and files in order, and where each word occurs. Chunks and files are given
 * by their place in the segment, so that lists are short.
 */
export class SegmentWriter {
  readonly #layout = new NumberWriter();
  readonly #lists = new Map<string, Lists>();
  #files = 0;
  #chunks = 0;

  add(file: FileWords): void {
    this.#layout.write(file.number);
    this.#layout.write(ROLES.indexOf(file.role));
    this.#layout.write(file.names);
    this.#layout.write(file.chunks.length);
    for (const [word, where] of file.path) this.#listsOf(word).files.add(this.#files, where);
    for (const chunk of file.chunks) this.#add(chunk);
    this.#files += 1;
  }

  get chunks(): number {
    return this.#chunks;
  }

  get layout(): Uint8Array {
    return this.#layout.bytes;
  }

  /** Rows in the order in which SQLite keeps them. */
  get rows(): readonly WordRow[] {
    return [...this.#lists]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([word, { chunks, files }]) => ({ word, chunks: chunks.bytes, files: files.bytes }));
  }

  #listsOf(word: string): Lists {
    const known = this.#lists.get(word);
    if (known !== undefined) return known;
    const made = { chunks: new ListWriter(), files: new ListWriter() };
    this.#lists.set(word, made);
    return made;
  }

  #add({ number, text, symbol }: ChunkWords): void {
    let length = 0;
    for (const [word, often] of text) {
      length += often;
      this.#listsOf(word).chunks.add(this.#chunks, packCounts(often, symbol.get(word) ?? 0));
    }
    for (const [word, often] of symbol)
      if (!text.has(word)) this.#listsOf(word).chunks.add(this.#chunks, packCounts(0, often));
    this.#layout.write(number);
    this.#layout.write(length);
    this.#chunks += 1;
  }
}

const packCounts = (inText: number, inSymbol: number): number =>
  Math.min(inText, MAX_IN_TEXT) | (Math.min(inSymbol, MAX_IN_SYMBOL) << 5);
export const textCount = (count: number): number => count & 31;
export const symbolCount = (count: number): number => count >> 5;

/** Most words are in no path, so their file lists stay empty. */
const NO_BYTES = new Uint8Array();

/** Writes whole numbers from 0 in as few bytes as possible: seven bits per byte, the lowest first. */
class NumberWriter {
  #bytes = NO_BYTES;
  #length = 0;

  write(value: number): void {
    if (this.#length + 5 > this.#bytes.length) this.#grow();
    let left = value;
    while (left > 0x7f) {
      this.#bytes[this.#length++] = (left & 0x7f) | 0x80;
      left >>>= 7;
    }
    this.#bytes[this.#length++] = left;
  }

  get bytes(): Uint8Array {
    return this.#length === 0 ? NO_BYTES : this.#bytes.subarray(0, this.#length);
  }

  #grow(): void {
    const more = new Uint8Array(Math.max(16, this.#bytes.length * 2));
    more.set(this.#bytes);
    this.#bytes = more;
  }
}

export class NumberReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: unknown) {
    if (!(bytes instanceof Uint8Array)) throw new DamagedIndex("numbers are missing");
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  next(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++];
    if (byte === undefined) throw new DamagedIndex("numbers end early");
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = bytes[this.#at++];
      if (byte === undefined || shift > 28) throw new DamagedIndex("numbers end early");
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  }
}

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

export function readLayout(database: SqliteConnection): Layout {
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

/** This many segments of one size are merged; each is then read and written log₄ n times. */
const SEGMENTS_PER_MERGE = 4;
const MIN_SIZE = 64;

/** The segments to merge: all of the smallest size that has enough of them, or one that is half dead. */
export function dueForMerge(layout: Layout): readonly Segment[] {
  const sized = Map.groupBy(layout.segments, sizeOf);
  const sizes = [...sized.keys()].toSorted((a, b) => a - b);
  for (const size of sizes) {
    const alike = sized.get(size) ?? [];
    if (alike.length >= SEGMENTS_PER_MERGE) return alike;
  }
  const half = layout.segments.find(({ chunks, deadChunks }) => deadChunks * 2 > chunks);
  return half === undefined ? [] : [half];
}

const sizeOf = ({ chunks, deadChunks }: Segment): number =>
  Math.floor(Math.log(Math.max(chunks - deadChunks, MIN_SIZE) / MIN_SIZE) / Math.log(SEGMENTS_PER_MERGE));

/** Merges segments, without dead files. Within a transaction. */
export function merge(database: SqliteConnection, layout: Layout, segments: readonly Segment[]): void {
  const moves = segments.map((segment) => segment.number);
  const { chunkMoves, fileMoves, bytes } = placesOf(layout, segments);
  const { rowid } = database.run("INSERT INTO segments (layout) VALUES (?)", bytes);
  const heads = segments.map((segment) => new Head(database, segment));
  for (let word = smallest(heads); word !== undefined; word = smallest(heads)) {
    const chunks = new ListWriter();
    const files = new ListWriter();
    for (const head of heads) {
      if (head.word !== word) continue;
      move(head.chunks, { table: chunkMoves, from: head.segment.firstChunk, into: chunks });
      move(head.files, { table: fileMoves, from: head.segment.firstFile, into: files });
      head.advance();
    }
    if (chunks.bytes.length + files.bytes.length > 0)
      database.run("INSERT INTO postings VALUES (?, ?, ?, ?)", rowid, word, chunks.bytes, files.bytes);
  }
  for (const number of moves) {
    database.run("DELETE FROM postings WHERE segment = ?", number);
    database.run("DELETE FROM segments WHERE number = ?", number);
  }
  for (const file of deadFiles(layout, segments)) database.run("DELETE FROM dead WHERE file = ?", file);
}

const DELETED = 0xffff_ffff;

interface Move {
  readonly table: Uint32Array;
  /** The first place of the segment being read. */
  readonly from: number;
  readonly into: ListWriter;
}

function move(bytes: unknown, { table, from, into }: Move): void {
  const reader = new NumberReader(bytes);
  for (let place = from; reader.more;) {
    place += reader.next();
    const count = reader.next();
    const moved = at(table, place);
    if (moved !== DELETED) into.add(moved, count);
  }
}

interface Places {
  /** Maps a place in the whole index to the place in the new segment. */
  readonly chunkMoves: Uint32Array;
  readonly fileMoves: Uint32Array;
  readonly bytes: Uint8Array;
}

function placesOf(layout: Layout, segments: readonly Segment[]): Places {
  const chunkMoves = new Uint32Array(layout.chunkNumber.length).fill(DELETED);
  const fileMoves = new Uint32Array(layout.fileNumber.length).fill(DELETED);
  const writer = new NumberWriter();
  let files = 0;
  let chunks = 0;
  for (const { firstFile, files: count } of segments)
    for (let file = firstFile; file < firstFile + count; file += 1) {
      if (at(layout.fileDead, file) === 1) continue;
      fileMoves[file] = files++;
      const [start, end] = [at(layout.fileStart, file), at(layout.fileStart, file + 1)];
      writer.write(at(layout.fileNumber, file));
      writer.write(at(layout.fileRole, file));
      writer.write(at(layout.fileNames, file));
      writer.write(end - start);
      for (let chunk = start; chunk < end; chunk += 1) {
        chunkMoves[chunk] = chunks++;
        writer.write(at(layout.chunkNumber, chunk));
        writer.write(at(layout.chunkLength, chunk));
      }
    }
  return { chunkMoves, fileMoves, bytes: writer.bytes };
}

function* deadFiles(layout: Layout, segments: readonly Segment[]): Generator<number> {
  for (const { firstFile, files } of segments)
    for (let file = firstFile; file < firstFile + files; file += 1)
      if (at(layout.fileDead, file) === 1) yield at(layout.fileNumber, file);
}

/** The current position in the words of one segment. */
class Head {
  readonly segment: Segment;
  readonly #rows: Iterator<readonly unknown[]>;
  word: string | undefined;
  chunks: unknown;
  files: unknown;

  constructor(database: SqliteConnection, segment: Segment) {
    this.segment = segment;
    this.#rows = database.eachList(
      "SELECT word, chunks, files FROM postings WHERE segment = ? ORDER BY word",
      segment.number,
    );
    this.advance();
  }

  advance(): void {
    const next = this.#rows.next();
    const [word, chunks, files] = next.done === true ? [] : next.value;
    this.word = typeof word === "string" ? word : undefined;
    this.chunks = chunks;
    this.files = files;
  }
}

/** Words contain no characters beyond 16 bits, so JavaScript orders them as SQLite does. */
function smallest(heads: readonly Head[]): string | undefined {
  let word: string | undefined;
  for (const head of heads)
    if (head.word !== undefined && (word === undefined || head.word < word)) word = head.word;
  return word;
}

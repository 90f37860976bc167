import { DamagedIndex } from "../index-failure.ts";
import type { Role } from "../index-words.ts";

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
export class ListWriter {
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
      this.#listsOf(word).chunks.add(this.#chunks, packed(often, symbol.get(word) ?? 0));
    }
    for (const [word, often] of symbol)
      if (!text.has(word)) this.#listsOf(word).chunks.add(this.#chunks, packed(0, often));
    this.#layout.write(number);
    this.#layout.write(length);
    this.#chunks += 1;
  }
}

const packed = (inText: number, inSymbol: number): number =>
  Math.min(inText, MAX_IN_TEXT) | (Math.min(inSymbol, MAX_IN_SYMBOL) << 5);
export const textCount = (count: number): number => count & 31;
export const symbolCount = (count: number): number => count >> 5;

/** Most words are in no path, so their file lists stay empty. */
const NO_BYTES = new Uint8Array();

/** Writes whole numbers from 0 in as few bytes as possible: seven bits per byte, the lowest first. */
export class NumberWriter {
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

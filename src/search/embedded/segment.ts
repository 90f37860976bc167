import { NumberWriter } from "./varint.ts";
import type { Role } from "../words.ts";

/** In the order of their numbers; a new one goes last. */
export const ROLES: readonly Role[] = ["source", "test", "example", "docs", "vendored", "config"];

/** How often a word counts at most: beyond it scores hardly change, and it fits one byte with the symbol's count. */
export const MOST_IN_TEXT = 31;
export const MOST_IN_SYMBOL = 3;

/** What stands before a word that is in a path. No word of a text begins so. */
export const IN_PATH = "/";

/** Where in a path it is; both may be. */
export const IN_FOLDER = 1;
export const IN_NAME = 2;

export interface ChunkWords {
  readonly number: number;
  readonly text: ReadonlyMap<string, number>;
  readonly symbol: ReadonlyMap<string, number>;
}

export interface FileWords {
  readonly number: number;
  readonly role: Role;
  /** A number for its folder: files of one have the same. */
  readonly folder: number;
  /** Where in the path each of its words is. */
  readonly path: ReadonlyMap<string, number>;
  /** Words of its own name. */
  readonly names: number;
  readonly chunks: readonly ChunkWords[];
}

interface List {
  readonly writer: NumberWriter;
  last: number;
}

/**
 * Writes a part of the index: which chunks and files it has, in their order, and where each word is. Chunks and files
 * are known by their place in the segment, so that lists are short.
 */
export class SegmentWriter {
  readonly #layout = new NumberWriter();
  readonly #lists = new Map<string, List>();
  #files = 0;
  #chunks = 0;

  add(file: FileWords): void {
    this.#layout.write(file.number);
    this.#layout.write(ROLES.indexOf(file.role));
    this.#layout.write(file.folder);
    this.#layout.write(file.names);
    this.#layout.write(file.chunks.length);
    for (const [word, where] of file.path) this.post(IN_PATH + word, this.#files, where);
    for (const chunk of file.chunks) this.#add(chunk);
    this.#files += 1;
  }

  /** Places of one word are posted in their order. */
  post(word: string, place: number, count: number): void {
    let list = this.#lists.get(word);
    if (list === undefined) {
      list = { writer: new NumberWriter(), last: 0 };
      this.#lists.set(word, list);
    }
    list.writer.write(place - list.last);
    list.writer.write(count);
    list.last = place;
  }

  get chunks(): number {
    return this.#chunks;
  }

  get layout(): Uint8Array {
    return this.#layout.bytes;
  }

  /** In the order in which SQLite keeps them. */
  get lists(): readonly (readonly [word: string, data: Uint8Array])[] {
    return [...this.#lists]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([word, { writer }]) => [word, writer.bytes]);
  }

  #add({ number, text, symbol }: ChunkWords): void {
    let length = 0;
    for (const [word, often] of text) {
      length += often;
      this.post(word, this.#chunks, packed(often, symbol.get(word) ?? 0));
    }
    for (const [word, often] of symbol) if (!text.has(word)) this.post(word, this.#chunks, packed(0, often));
    this.#layout.write(number);
    this.#layout.write(length);
    this.#chunks += 1;
  }
}

const packed = (inText: number, inSymbol: number): number =>
  Math.min(inText, MOST_IN_TEXT) | (Math.min(inSymbol, MOST_IN_SYMBOL) << 5);
export const textCount = (count: number): number => count & 31;
export const symbolCount = (count: number): number => count >> 5;

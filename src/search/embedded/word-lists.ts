import type { Connection } from "../../sqlite/connection.ts";
import { DamagedIndex } from "../index-failure.ts";
import { type Layout, type Segment, at } from "./layout.ts";
import { NumberReader } from "./varint.ts";

/** Room for the places of one word, used again for the next. */
export class List {
  readonly places: Uint32Array;
  readonly counts: Uint8Array;
  length = 0;

  constructor(most: number) {
    this.places = new Uint32Array(most);
    this.counts = new Uint8Array(most);
  }

  add(place: number, count: number): void {
    this.places[this.length] = place;
    this.counts[this.length] = count;
    this.length += 1;
  }
}

/** What is kept of one word in one segment. */
export interface Kept {
  readonly segment: Segment;
  readonly chunks: unknown;
  readonly files: unknown;
}

/** Where words are, over one state of the index: the lists of those that are asked for are read, and no others. */
export class WordLists {
  readonly #database: Connection;
  readonly #layout: Layout;
  readonly #segments: ReadonlyMap<number, Segment>;
  readonly #inText: List;
  readonly #inPath: List;

  constructor(database: Connection, layout: Layout) {
    this.#database = database;
    this.#layout = layout;
    this.#segments = new Map(layout.segments.map((segment) => [segment.number, segment]));
    this.#inText = new List(layout.chunkNumber.length);
    this.#inPath = new List(layout.fileNumber.length);
  }

  /** All of a query's words at once: most of the time would go into asking one by one. */
  read(words: readonly string[]): ReadonlyMap<string, readonly Kept[]> {
    const rows = this.#database.all(
      `SELECT p.word AS word, p.segment AS segment, p.chunks AS chunks, p.files AS files
       FROM segments s CROSS JOIN json_each(?) w
       CROSS JOIN postings p ON p.segment = s.number AND p.word = w.value`,
      JSON.stringify(words),
    );
    const kept = new Map<string, Kept[]>();
    for (const { word, segment, chunks, files } of rows) {
      const known = this.#segments.get(Number(segment));
      if (known === undefined) throw new DamagedIndex("words of a part that is not there");
      const one = { segment: known, chunks, files };
      const others = kept.get(String(word));
      if (others === undefined) kept.set(String(word), [one]);
      else others.push(one);
    }
    return kept;
  }

  /** In which live chunks' texts and which live files' paths one word is, over all segments; until the next is unpacked. */
  unpacked(kept: readonly Kept[]): { readonly inText: List; readonly inPath: List } {
    const { fileDead, chunkFile } = this.#layout;
    const [inText, inPath] = [this.#inText, this.#inPath];
    inText.length = 0;
    inPath.length = 0;
    for (const { segment, chunks, files } of kept) {
      const ofChunks = new NumberReader(chunks);
      for (let place = segment.firstChunk; ofChunks.more;) {
        place += ofChunks.next();
        const count = ofChunks.next();
        if (at(fileDead, at(chunkFile, place)) === 0) inText.add(place, count);
      }
      const ofFiles = new NumberReader(files);
      for (let file = segment.firstFile; ofFiles.more;) {
        file += ofFiles.next();
        const count = ofFiles.next();
        if (at(fileDead, file) === 0) inPath.add(file, count);
      }
    }
    return { inText, inPath };
  }
}

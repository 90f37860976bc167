import type { Query, QueryWord } from "../rank/query.ts";
import type { Weights } from "../rank/weights.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { best, type Evidence, type Scored } from "./best.ts";
import { type Layout, type Segment, at } from "./layout.ts";
import { IN_FOLDER, IN_NAME, symbolCount, textCount } from "./segment.ts";
import { DamagedIndex } from "../index-failure.ts";
import { NumberReader } from "./varint.ts";

/** Room for the places of one word, used again for the next. */
class List {
  readonly places: Uint32Array;
  readonly counts: Uint8Array;
  length = 0;

  constructor(most: number) {
    this.places = new Uint32Array(most);
    this.counts = new Uint8Array(most);
  }
}

/** What is kept of one word in one segment. */
interface Kept {
  readonly segment: Segment;
  readonly chunks: unknown;
  readonly files: unknown;
}

/** Scores by words, over one state of the index. It reads the lists of the query's words, and no others. */
export class Lexical {
  readonly #layout: Layout;
  readonly #database: Connection;
  readonly #weights: Weights;
  readonly #evidence: Evidence;
  /** Of one word: how often it is in a file, and which word's turn that was. */
  readonly #often: Float64Array;
  readonly #turn: Uint32Array;
  #turns = 0;
  readonly #inText: List;
  readonly #inPath: List;
  readonly #segments: ReadonlyMap<number, Segment>;

  constructor(database: Connection, layout: Layout, weights: Weights) {
    this.#database = database;
    this.#layout = layout;
    this.#weights = weights;
    const files = layout.fileNumber.length;
    this.#evidence = {
      chunks: new Float64Array(layout.chunkNumber.length),
      files: new Float64Array(files),
      covered: new Float64Array(files),
      nameWords: new Uint8Array(files),
      possible: 0,
    };
    this.#often = new Float64Array(files);
    this.#turn = new Uint32Array(files);
    this.#inText = new List(layout.chunkNumber.length);
    this.#inPath = new List(files);
    this.#segments = new Map(layout.segments.map((segment) => [segment.number, segment]));
  }

  best(query: Query, limit: number): readonly Scored[] {
    const { chunks, files, covered, nameWords } = this.#evidence;
    for (const numbers of [chunks, files, covered, nameWords]) numbers.fill(0);
    this.#evidence.possible = 0;
    const kept = this.#read(query.words);
    for (const word of query.words) this.#add(word, kept.get(word.word) ?? []);
    return best(this.#layout, this.#evidence, { query, weights: this.#weights, limit });
  }

  #add({ weight }: QueryWord, kept: readonly Kept[]): void {
    const layout = this.#layout;
    const [inText, inPath] = [this.#inText, this.#inPath];
    this.#unpack(kept);
    const files = this.#filesOf(inText, inPath);
    const rarity = weight * idf(files.length, layout.liveFiles);
    this.#evidence.possible += rarity;
    this.#addChunks(inText, weight * idf(inText.length, layout.liveChunks));
    this.#addFiles(files, rarity);
    this.#addPaths(inPath, rarity);
  }

  #addChunks({ places, counts, length }: List, rarity: number): void {
    const { chunkLength, liveLength, liveChunks } = this.#layout;
    const { chunkK, chunkB, symbol } = this.#weights;
    const { chunks } = this.#evidence;
    const plain = chunkK * (1 - chunkB);
    const byLength = (chunkK * chunkB * liveChunks) / Math.max(1, liveLength);
    for (let index = 0; index < length; index += 1) {
      const [place = 0, count = 0] = [places[index], counts[index]];
      const often = textCount(count) + symbol * symbolCount(count);
      const norm = plain + byLength * at(chunkLength, place);
      chunks[place] = at(chunks, place) + (rarity * often) / (often + norm);
    }
  }

  #addFiles(found: readonly number[], rarity: number): void {
    const { fileLength, liveLength, liveFiles } = this.#layout;
    const { fileK, fileB, file: share } = this.#weights;
    const { files, covered } = this.#evidence;
    const mean = liveLength / Math.max(1, liveFiles);
    for (const file of found) {
      const often = at(this.#often, file);
      const norm = fileK * (1 - fileB + (fileB * at(fileLength, file)) / Math.max(1, mean));
      files[file] = at(files, file) + (share * rarity * often) / (often + norm);
      covered[file] = at(covered, file) + rarity;
    }
  }

  #addPaths({ places, counts, length }: List, rarity: number): void {
    const { files, nameWords } = this.#evidence;
    for (let index = 0; index < length; index += 1) {
      const [file = 0, count = 0] = [places[index], counts[index]];
      const times = ((count & IN_FOLDER) === 0 ? 0 : 1) + ((count & IN_NAME) === 0 ? 0 : 1);
      files[file] = at(files, file) + this.#weights.path * rarity * times;
      if ((count & IN_NAME) !== 0) nameWords[file] = at(nameWords, file) + 1;
    }
  }

  /** Which files have the word at all; how often their texts do is then in `#often`. */
  #filesOf({ places, counts, length }: List, inPath: List): readonly number[] {
    const { chunkFile } = this.#layout;
    const { symbol } = this.#weights;
    const turn = (this.#turns += 1);
    const files: number[] = [];
    const meet = (file: number): void => {
      if (this.#turn[file] === turn) return;
      this.#turn[file] = turn;
      this.#often[file] = 0;
      files.push(file);
    };
    for (let index = 0; index < length; index += 1) {
      const [place = 0, count = 0] = [places[index], counts[index]];
      const file = at(chunkFile, place);
      meet(file);
      this.#often[file] = at(this.#often, file) + textCount(count) + symbol * symbolCount(count);
    }
    for (let index = 0; index < inPath.length; index += 1) meet(inPath.places[index] ?? 0);
    return files;
  }

  /** All of the query's words at once: most of the time would go into asking one by one. */
  #read(words: readonly QueryWord[]): ReadonlyMap<string, readonly Kept[]> {
    const rows = this.#database.all(
      `SELECT p.word AS word, p.segment AS segment, p.chunks AS chunks, p.files AS files
       FROM segments s CROSS JOIN json_each(?) w
       CROSS JOIN postings p ON p.segment = s.number AND p.word = w.value`,
      JSON.stringify(words.map(({ word }) => word)),
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

  /** Where a word is in live chunks and files, over all segments. */
  #unpack(kept: readonly Kept[]): void {
    const { fileDead, chunkFile } = this.#layout;
    const [inText, inPath] = [this.#inText, this.#inPath];
    inText.length = 0;
    inPath.length = 0;
    for (const { segment, chunks, files } of kept) {
      const ofChunks = new NumberReader(chunks);
      for (let place = segment.firstChunk; ofChunks.more;) {
        place += ofChunks.next();
        const count = ofChunks.next();
        if (at(fileDead, at(chunkFile, place)) === 0) append(inText, place, count);
      }
      const ofFiles = new NumberReader(files);
      for (let file = segment.firstFile; ofFiles.more;) {
        file += ofFiles.next();
        const count = ofFiles.next();
        if (at(fileDead, file) === 0) append(inPath, file, count);
      }
    }
  }
}

function append(list: List, place: number, count: number): void {
  list.places[list.length] = place;
  list.counts[list.length] = count;
  list.length += 1;
}

const idf = (having: number, all: number): number => Math.log(1 + (all - having + 0.5) / (having + 0.5));

import type { Query, QueryWord } from "../rank/query.ts";
import type { Weights } from "../rank/weights.ts";
import type { Database } from "./database.ts";
import { best, type Evidence, type Scored } from "./best.ts";
import { type Layout, at } from "./layout.ts";
import { IN_FOLDER, IN_NAME, IN_PATH, symbolCount, textCount } from "./segment.ts";
import { NumberReader } from "./varint.ts";

interface List {
  readonly places: number[];
  readonly counts: number[];
}

/** Scores by words, over one state of the index. It reads the lists of the query's words, and no others. */
export class Lexical {
  readonly #layout: Layout;
  readonly #database: Database;
  readonly #weights: Weights;
  readonly #evidence: Evidence;
  /** Of one word: how often it is in a file, and which word's turn that was. */
  readonly #often: Float64Array;
  readonly #turn: Uint32Array;
  #turns = 0;

  constructor(database: Database, layout: Layout, weights: Weights) {
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
  }

  best(query: Query, limit: number): readonly Scored[] {
    const { chunks, files, covered, nameWords } = this.#evidence;
    for (const numbers of [chunks, files, covered, nameWords]) numbers.fill(0);
    this.#evidence.possible = 0;
    for (const word of query.words) this.#add(word);
    return best(this.#layout, this.#evidence, { query, weights: this.#weights, limit });
  }

  #add({ word, weight }: QueryWord): void {
    const layout = this.#layout;
    const inText = this.#read(word, layout.chunkFile, "firstChunk");
    const inPath = this.#read(IN_PATH + word, null, "firstFile");
    const files = this.#filesOf(inText, inPath);
    const rarity = weight * idf(files.length, layout.liveFiles);
    this.#evidence.possible += rarity;
    this.#addChunks(inText, weight * idf(inText.places.length, layout.liveChunks));
    this.#addFiles(files, rarity);
    this.#addPaths(inPath, rarity);
  }

  #addChunks({ places, counts }: List, rarity: number): void {
    const { chunkLength, liveLength, liveChunks } = this.#layout;
    const { chunkK, chunkB, symbol } = this.#weights;
    const { chunks } = this.#evidence;
    const plain = chunkK * (1 - chunkB);
    const byLength = (chunkK * chunkB * liveChunks) / Math.max(1, liveLength);
    for (let index = 0; index < places.length; index += 1) {
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

  #addPaths({ places, counts }: List, rarity: number): void {
    const { files, nameWords } = this.#evidence;
    for (const [index, file] of places.entries()) {
      const count = counts[index] ?? 0;
      const times = ((count & IN_FOLDER) === 0 ? 0 : 1) + ((count & IN_NAME) === 0 ? 0 : 1);
      files[file] = at(files, file) + this.#weights.path * rarity * times;
      if ((count & IN_NAME) !== 0) nameWords[file] = at(nameWords, file) + 1;
    }
  }

  /** Which files have the word at all; how often their texts do is then in `#often`. */
  #filesOf({ places, counts }: List, inPath: List): readonly number[] {
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
    for (let index = 0; index < places.length; index += 1) {
      const [place = 0, count = 0] = [places[index], counts[index]];
      const file = at(chunkFile, place);
      meet(file);
      this.#often[file] = at(this.#often, file) + textCount(count) + symbol * symbolCount(count);
    }
    for (const file of inPath.places) meet(file);
    return files;
  }

  /** Of live chunks, or files, over all segments. */
  #read(word: string, fileOf: Uint32Array | null, first: "firstChunk" | "firstFile"): List {
    const list: List = { places: [], counts: [] };
    const { fileDead } = this.#layout;
    for (const segment of this.#layout.segments) {
      const row = this.#database.get(
        "SELECT data FROM postings WHERE segment = ? AND word = ?",
        segment.number,
        word,
      );
      if (row === undefined) continue;
      const reader = new NumberReader(row["data"]);
      for (let place = segment[first]; reader.more;) {
        place += reader.next();
        const count = reader.next();
        if (at(fileDead, fileOf === null ? place : at(fileOf, place)) === 1) continue;
        list.places.push(place);
        list.counts.push(count);
      }
    }
    return list;
  }
}

const idf = (having: number, all: number): number => Math.log(1 + (all - having + 0.5) / (having + 0.5));

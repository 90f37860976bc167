import type { Query, QueryWord } from "../rank/query.ts";
import type { Weights } from "../rank/weights.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { best, type Evidence, type Scored } from "./best.ts";
import { type Layout, at } from "./layout.ts";
import { IN_FOLDER, IN_NAME, symbolCount, textCount } from "./segment.ts";
import { type Kept, type List, WordLists } from "./word-lists.ts";

/** Scores by words, over one state of the index. It reads the lists of the query's words, and no others. */
export class Lexical {
  readonly #layout: Layout;
  readonly #weights: Weights;
  readonly #evidence: Evidence;
  /** Of one word: how often it is in a file, and which word's turn that was. */
  readonly #often: Float64Array;
  readonly #turn: Uint32Array;
  #turns = 0;
  readonly #lists: WordLists;

  constructor(database: Connection, layout: Layout, weights: Weights) {
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
    this.#lists = new WordLists(database, layout);
  }

  best(query: Query, limit: number): readonly Scored[] {
    const { chunks, files, covered, nameWords } = this.#evidence;
    for (const numbers of [chunks, files, covered, nameWords]) numbers.fill(0);
    this.#evidence.possible = 0;
    const kept = this.#lists.read(query.words.map(({ word }) => word));
    for (const word of query.words) this.#add(word, kept.get(word.word) ?? []);
    return best(this.#layout, this.#evidence, { query, weights: this.#weights, limit });
  }

  #add({ weight }: QueryWord, kept: readonly Kept[]): void {
    const layout = this.#layout;
    const { inText, inPath } = this.#lists.unpacked(kept);
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
}

const idf = (having: number, all: number): number => Math.log(1 + (all - having + 0.5) / (having + 0.5));

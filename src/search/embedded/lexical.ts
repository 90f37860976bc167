import type { Query } from "../rank/query.ts";
import type { Weights } from "../rank/weights.ts";
import type { Database } from "./database.ts";
import { type Layout, at } from "./layout.ts";
import { IN_PATH, ROLES, symbolCount, textCount } from "./segment.ts";
import { NumberReader } from "./varint.ts";

export interface Scored {
  /** The chunk's number. */
  readonly chunk: number;
  readonly score: number;
  /** What orders it: the score with what its file's role makes of it. */
  readonly order: number;
}

interface List {
  readonly places: number[];
  readonly counts: number[];
}

/** Scores by words, over one state of the index. */
export class Lexical {
  readonly #layout: Layout;
  readonly #database: Database;
  readonly #weights: Weights;
  readonly #chunks: Float64Array;
  readonly #files: Float64Array;

  constructor(database: Database, layout: Layout, weights: Weights) {
    this.#database = database;
    this.#layout = layout;
    this.#weights = weights;
    this.#chunks = new Float64Array(layout.chunkNumber.length);
    this.#files = new Float64Array(layout.fileNumber.length);
  }

  best(query: Query, limit: number): readonly Scored[] {
    this.#chunks.fill(0);
    this.#files.fill(0);
    for (const { word, weight } of query.words) this.#add(word, weight);
    return this.#collected(query, limit);
  }

  #add(word: string, weight: number): void {
    const layout = this.#layout;
    const inText = this.#read(word, layout.chunkFile, "firstChunk");
    const inPath = this.#read(IN_PATH + word, null, "firstFile");
    const { chunkK, chunkB, fileK, fileB, symbol, path } = this.#weights;
    const files = filesOf(inText, layout, symbol);
    for (const file of inPath.places) files.set(file, (files.get(file) ?? 0) + path);
    const chunkIdf = weight * idf(inText.places.length, layout.liveChunks);
    const fileIdf = weight * idf(files.size, layout.liveFiles);
    const chunkMean = layout.liveLength / Math.max(1, layout.liveChunks);
    const fileMean = layout.liveLength / Math.max(1, layout.liveFiles);
    for (const [index, chunk] of inText.places.entries()) {
      const count = inText.counts[index] ?? 0;
      const often = textCount(count) + symbol * symbolCount(count);
      const long = chunkK * (1 - chunkB + (chunkB * at(layout.chunkLength, chunk)) / chunkMean);
      this.#chunks[chunk] = at(this.#chunks, chunk) + (chunkIdf * often) / (often + long);
    }
    for (const [file, often] of files) {
      const long = fileK * (1 - fileB + (fileB * at(layout.fileLength, file)) / fileMean);
      this.#files[file] = at(this.#files, file) + (fileIdf * often) / (often + long);
    }
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

  #collected(query: Query, limit: number): readonly Scored[] {
    const layout = this.#layout;
    const found: Scored[] = [];
    for (let file = 0; file < layout.fileNumber.length; file += 1) {
      if (at(this.#files, file) === 0) continue;
      const role = ROLES[at(layout.fileRole, file)] ?? "source";
      const prior = query.asked.has(role) ? 1 : this.#weights.role[role];
      found.push(...this.#chunksOf(file, prior));
    }
    return found.toSorted((a, b) => b.order - a.order || a.chunk - b.chunk).slice(0, limit);
  }

  /** The best chunk has its file's score; the others so much of it as they have of the best one's own. */
  #chunksOf(file: number, prior: number): readonly Scored[] {
    const layout = this.#layout;
    const [start, end] = [at(layout.fileStart, file), at(layout.fileStart, file + 1)];
    const own = Array.from(this.#chunks.subarray(start, end));
    const sorted = own.toSorted((a, b) => b - a);
    let score = this.#weights.file * at(this.#files, file);
    for (const [place, value] of sorted.slice(0, 4).entries()) score += value * this.#weights.next ** place;
    const best = sorted[0] ?? 0;
    return own.flatMap((value, place) => {
      if (value === 0 && (best > 0 || place > 0)) return [];
      const share = best === 0 ? score : score * (value / best);
      return [{ chunk: at(layout.chunkNumber, start + place), score: share, order: share * prior }];
    });
  }
}

const idf = (having: number, all: number): number => Math.log(1 + (all - having + 0.5) / (having + 0.5));

function filesOf({ places, counts }: List, layout: Layout, symbol: number): Map<number, number> {
  const files = new Map<number, number>();
  for (const [index, place] of places.entries()) {
    const count = counts[index] ?? 0;
    const file = at(layout.chunkFile, place);
    files.set(file, (files.get(file) ?? 0) + textCount(count) + symbol * symbolCount(count));
  }
  return files;
}

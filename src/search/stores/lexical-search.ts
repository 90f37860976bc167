import type { SqliteConnection } from "../../platform/sqlite.ts";
import { DamagedIndex } from "../index-folders.ts";
import type { Query, QueryWord } from "../ranked-query.ts";
import type { Weights } from "../weights.ts";
import {
  at,
  IN_FOLDER,
  IN_NAME,
  type Layout,
  NumberReader,
  ROLES,
  type Segment,
  symbolCount,
  textCount,
} from "./segments.ts";

/** Scores chunks by words, over one state of the index. Reads only the lists of the query's words. */
export class Lexical {
  readonly #layout: Layout;
  readonly #weights: Weights;
  readonly #evidence: Evidence;
  /** For the current word: how often it occurs in a file, and the turn in which that was counted. */
  readonly #often: Float64Array;
  readonly #turn: Uint32Array;
  #turns = 0;
  readonly #lists: WordLists;

  constructor(database: SqliteConnection, layout: Layout, weights: Weights) {
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

  #add({ weight }: QueryWord, kept: readonly StoredLists[]): void {
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

  /** The files that have the word at all; `#often` then says how often their texts have it. */
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

/** Buffer for the places of one word, reused for the next word. */
class List {
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

/** The stored lists of one word in one segment. */
interface StoredLists {
  readonly segment: Segment;
  readonly chunks: unknown;
  readonly files: unknown;
}

/** Reads where words occur, over one state of the index; only the lists of requested words are read. */
class WordLists {
  readonly #database: SqliteConnection;
  readonly #layout: Layout;
  readonly #segments: ReadonlyMap<number, Segment>;
  readonly #inText: List;
  readonly #inPath: List;

  constructor(database: SqliteConnection, layout: Layout) {
    this.#database = database;
    this.#layout = layout;
    this.#segments = new Map(layout.segments.map((segment) => [segment.number, segment]));
    this.#inText = new List(layout.chunkNumber.length);
    this.#inPath = new List(layout.fileNumber.length);
  }

  /** Reads all words of a query at once: separate queries would take most of the time. */
  read(words: readonly string[]): ReadonlyMap<string, readonly StoredLists[]> {
    const rows = this.#database.all(
      `SELECT p.word AS word, p.segment AS segment, p.chunks AS chunks, p.files AS files
       FROM segments s CROSS JOIN json_each(?) w
       CROSS JOIN postings p ON p.segment = s.number AND p.word = w.value`,
      JSON.stringify(words),
    );
    const kept = new Map<string, StoredLists[]>();
    for (const { word, segment, chunks, files } of rows) {
      const known = this.#segments.get(Number(segment));
      if (known === undefined) throw new DamagedIndex("words refer to a missing segment");
      const one = { segment: known, chunks, files };
      const others = kept.get(String(word));
      if (others === undefined) kept.set(String(word), [one]);
      else others.push(one);
    }
    return kept;
  }

  /** The live chunks and the live files' paths that contain a word, over all segments. Valid until the next call. */
  unpacked(kept: readonly StoredLists[]): { readonly inText: List; readonly inPath: List } {
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

/** What the words of a query have found, by place. */
interface Evidence {
  readonly chunks: Float64Array;
  /** Scores of the whole file and of its path. */
  readonly files: Float64Array;
  /** The summed rarity of the words that a file has, and of all words. */
  readonly covered: Float64Array;
  possible: number;
  /** How many words of the file's own name are in the query. */
  readonly nameWords: Uint8Array;
}

interface Scored {
  /** The chunk's number. */
  readonly chunk: number;
  /** Score without the factor for the file's role. */
  readonly score: number;
  /** Score with that factor, used for sorting. */
  readonly order: number;
}

interface RankingRequest {
  readonly query: Query;
  readonly weights: Weights;
  readonly limit: number;
}

interface FileScore {
  readonly file: number;
  readonly prior: number;
  readonly score: number;
}

/** Chunks by the scores of their files and their own, best first. */
function best(layout: Layout, evidence: Evidence, wanted: RankingRequest): readonly Scored[] {
  return fileScores(layout, evidence, wanted)
    .toSorted((a, b) => b.score - a.score || a.file - b.file)
    .slice(0, wanted.limit)
    .flatMap((one) => chunksOf(one, layout, evidence, wanted.weights.sameFile))
    .toSorted((a, b) => b.order - a.order || a.chunk - b.chunk)
    .slice(0, wanted.limit);
}

function fileScores(
  layout: Layout,
  evidence: Evidence,
  { query, weights }: RankingRequest,
): readonly FileScore[] {
  const found: FileScore[] = [];
  const priors = ROLES.map((role) => query.prior[role]);
  for (let file = 0; file < layout.fileNumber.length; file += 1) {
    if (at(evidence.covered, file) === 0) continue;
    const prior = priors[at(layout.fileRole, file)] ?? 1;
    const names = at(layout.fileNames, file);
    const named = names > 0 && at(evidence.nameWords, file) >= names ? weights.named * evidence.possible : 0;
    const covered = (at(evidence.covered, file) / evidence.possible) ** weights.cover;
    const own = at(evidence.files, file) + bestChunks(layout, evidence, file, weights) + named;
    found.push({ file, prior, score: own * covered * prior });
  }
  return found;
}

function bestChunks(layout: Layout, { chunks }: Evidence, file: number, weights: Weights): number {
  const most: number[] = [];
  const end = at(layout.fileStart, file + 1);
  for (let chunk = at(layout.fileStart, file); chunk < end; chunk += 1) {
    const score = at(chunks, chunk);
    if (score === 0 || (most.length === weights.nextMost && score <= (most.at(-1) ?? 0))) continue;
    const place = most.findIndex((other) => other < score);
    most.splice(place === -1 ? most.length : place, 0, score);
    if (most.length > weights.nextMost) most.pop();
  }
  return most.reduce((sum, score, place) => sum + score * weights.next ** place, 0);
}

/** The best chunk gets the score of its file; others get it in proportion to their own score. */
function chunksOf(
  { file, prior, score }: FileScore,
  layout: Layout,
  { chunks }: Evidence,
  sameFile: number,
): readonly Scored[] {
  const start = at(layout.fileStart, file);
  const own = [...chunks.subarray(start, at(layout.fileStart, file + 1)).entries()]
    .filter(([place, value]) => value > 0 || place === 0)
    .toSorted(([a, one], [b, other]) => other - one || a - b);
  const top = own[0]?.[1] ?? 0;
  return own.flatMap(([place, value], rank) => {
    if (value === 0 && rank > 0) return [];
    const order = score * (top === 0 ? 1 : value / top) * sameFile ** rank;
    return [{ chunk: at(layout.chunkNumber, start + place), score: order / prior, order }];
  });
}

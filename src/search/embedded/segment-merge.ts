import type { Connection } from "../../platform/sqlite-connection.ts";
import { at, type Layout, type Segment } from "./segment-layout.ts";
import { ListWriter, NumberReader, NumberWriter } from "./segment.ts";

/** This many segments of one size are merged; each is then read and written log₄ n times. */
const FAN = 4;
const MIN_SIZE = 64;

/** The segments to merge: all of the smallest size that has enough of them, or one that is half dead. */
export function dueForMerge(layout: Layout): readonly Segment[] {
  const sized = Map.groupBy(layout.segments, sizeOf);
  const sizes = [...sized.keys()].toSorted((a, b) => a - b);
  for (const size of sizes) {
    const alike = sized.get(size) ?? [];
    if (alike.length >= FAN) return alike;
  }
  const half = layout.segments.find(({ chunks, deadChunks }) => deadChunks * 2 > chunks);
  return half === undefined ? [] : [half];
}

const sizeOf = ({ chunks, deadChunks }: Segment): number =>
  Math.floor(Math.log(Math.max(chunks - deadChunks, MIN_SIZE) / MIN_SIZE) / Math.log(FAN));

/** Merges segments, without dead files. Within a transaction. */
export function merge(database: Connection, layout: Layout, segments: readonly Segment[]): void {
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

const GONE = 0xffff_ffff;

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
    if (moved !== GONE) into.add(moved, count);
  }
}

interface Places {
  /** Maps a place in the whole index to the place in the new segment. */
  readonly chunkMoves: Uint32Array;
  readonly fileMoves: Uint32Array;
  readonly bytes: Uint8Array;
}

function placesOf(layout: Layout, segments: readonly Segment[]): Places {
  const chunkMoves = new Uint32Array(layout.chunkNumber.length).fill(GONE);
  const fileMoves = new Uint32Array(layout.fileNumber.length).fill(GONE);
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

  constructor(database: Connection, segment: Segment) {
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

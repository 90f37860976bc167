import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Stats } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { type Entry, type FileEntry, keyOf, pathOf, type Tree, type UnkeptEntry } from "./entry.ts";

/**
 * Entries by path, sorted and compressed: a tree of hundreds of thousands of paths takes some tens of megabytes,
 * whereas objects would take hundreds. A path's key is its bytes with 0 in place of each slash, so that in byte order a
 * folder precedes its content, and everything below a folder is contiguous.
 *
 * A record consists of: the number of key bytes shared with the previous key, the number of its own key bytes, the
 * length of its body, kind, flags, mode, detail; then its own key bytes; then its body. A block's first record depends
 * on no other.
 */
const HEADER = 14;
const BLOCK = 64 * 1024;
/** The system accepts no longer paths. */
const MAX_KEY = 8192;

const KINDS = ["gone", "file", "link", "folder", "odd", "unkept"] as const;
const DETAILS = ["", "fifo", "socket", "device", "large", "unreadable", "deep"] as const;
const SEEN = 1;
const SETTLED = 2;
const OWNED = 4;
const UNKEPT_FOLDER = 8;
const STATS_BYTES = 40;
const HASH_BYTES = 32;

/** What was found at a path, and the stats that identify it without reading it again. */
export interface SeenEntry {
  readonly entry: Entry;
  readonly stats: Pick<Stats, "dev" | "ino" | "size" | "mtimeMs" | "ctimeMs">;
  /** Any later change must have changed the times. */
  readonly settled: boolean;
}

/** Undefined if the path no longer exists; occurs only in the changes of a tree. */
export type EntryRecord = readonly [path: string, entry: Entry | undefined];

interface Block {
  readonly first: Buffer;
  readonly count: number;
  readonly length: number;
  readonly data: Buffer;
}

const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const KEPT_BLOCKS = 16;

export class EntryList implements Tree {
  readonly size: number;
  readonly #blocks: readonly Block[];
  /** Decoded blocks: a caller that requests one path usually requests its neighbours too. */
  readonly #decoded = new Map<number, ReadonlyMap<string, SeenEntry | Entry | undefined>>();

  constructor(blocks: readonly Block[]) {
    this.#blocks = blocks;
    this.size = blocks.reduce((sum, { count }) => sum + count, 0);
  }

  get(path: string): Entry | undefined {
    const found = this.#found(path);
    return found !== undefined && "entry" in found ? found.entry : found;
  }

  has(path: string): boolean {
    return this.get(path) !== undefined;
  }

  seen(path: string): SeenEntry | undefined {
    const found = this.#found(path);
    return found !== undefined && "entry" in found ? found : undefined;
  }

  *keys(): Generator<string> {
    for (const cursor = this.cursor(); cursor.next();) yield cursor.path;
  }

  *records(): Generator<EntryRecord> {
    for (const cursor = this.cursor(); cursor.next();) yield [cursor.path, cursor.entry];
  }

  *[Symbol.iterator](): Generator<readonly [string, Entry]> {
    for (const [path, entry] of this.records()) if (entry !== undefined) yield [path, entry];
  }

  cursor(): EntryCursor {
    return new EntryCursor(this.#blocks);
  }

  /** The content of a file, piece by piece. */
  *bytes(): Generator<Buffer> {
    yield numbers(this.#blocks.length);
    for (const { first, count, length, data } of this.#blocks) {
      yield numbers(first.length, count, length, data.length);
      yield first;
      yield data;
    }
  }

  #found(path: string): SeenEntry | Entry | undefined {
    const key = keyOf(path);
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Buffer.compare(this.#blocks[middle]?.first ?? key, key) <= 0) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? undefined : this.#block(low - 1).get(path);
  }

  #block(at: number): ReadonlyMap<string, SeenEntry | Entry | undefined> {
    const known = this.#decoded.get(at);
    if (known !== undefined) return known;
    const made = new Map<string, SeenEntry | Entry | undefined>();
    const block = this.#blocks[at];
    const cursor = new EntryCursor(block === undefined ? [] : [block]);
    while (cursor.next()) made.set(cursor.path, cursor.seen ?? cursor.entry);
    for (const oldest of this.#decoded.keys())
      if (this.#decoded.size >= KEPT_BLOCKS) this.#decoded.delete(oldest);
    this.#decoded.set(at, made);
    return made;
  }
}

function numbers(...all: readonly number[]): Buffer {
  const bytes = Buffer.alloc(all.length * 4);
  for (const [at, each] of all.entries()) bytes.writeUInt32LE(each, at * 4);
  return bytes;
}

/** Reads the output of `bytes`. The list keeps using the buffer. */
export function listIn(bytes: Buffer): EntryList {
  const blocks: Block[] = [];
  let at = 4;
  for (let left = bytes.readUInt32LE(0); left > 0; left -= 1) {
    const [key, count, length, data] = [0, 4, 8, 12].map((each) => bytes.readUInt32LE(at + each)) as [
      number,
      number,
      number,
      number,
    ];
    at += 16;
    blocks.push({
      first: bytes.subarray(at, at + key),
      count,
      length,
      data: bytes.subarray(at + key, at + key + data),
    });
    at += key + data;
  }
  return new EntryList(blocks);
}

/** Moves from record to record; its properties describe the current one. */
export class EntryCursor {
  /** Only the first `keyLength` bytes are valid. */
  readonly key = Buffer.allocUnsafeSlow(MAX_KEY);
  keyLength = 0;
  ended = false;
  readonly #blocks: readonly Block[];
  #block = 0;
  #left = 0;
  #raw: Buffer = Buffer.alloc(0);
  #record = 0;
  #next = 0;

  constructor(blocks: readonly Block[]) {
    this.#blocks = blocks;
  }

  next(): boolean {
    if (this.#left === 0 && !this.#open()) return false;
    this.#left -= 1;
    const [raw, at] = [this.#raw, this.#next];
    const [shared, own] = [raw.readUInt16LE(at), raw.readUInt16LE(at + 2)];
    raw.copy(this.key, shared, at + HEADER, at + HEADER + own);
    this.keyLength = shared + own;
    this.#record = at;
    this.#next = at + HEADER + own + raw.readUInt32LE(at + 4);
    return true;
  }

  /** The block of the current record; `isFirst` says whether the record is its first. */
  get block(): Block | undefined {
    return this.#blocks[this.#block - 1];
  }

  get isFirst(): boolean {
    return this.#record === 0;
  }

  get path(): string {
    return pathOf(this.key.subarray(0, this.keyLength));
  }

  get isGone(): boolean {
    return this.#raw[this.#record + 8] === 0;
  }

  /** Below 0: the cursor is before this key. */
  compareTo(key: Buffer): number {
    return this.ended ? 1 : this.key.compare(key, 0, key.length, 0, this.keyLength);
  }

  isBelow(folder: Buffer): boolean {
    const { length } = folder;
    if (this.ended || this.keyLength <= length) return false;
    if (length === 0) return true;
    return this.key[length] === 0 && this.key.compare(folder, 0, length, 0, length) === 0;
  }

  get seen(): SeenEntry | undefined {
    const { entry } = this;
    const raw = this.#raw;
    const flags = raw[this.#record + 9] ?? 0;
    if (entry === undefined || (flags & SEEN) === 0) return undefined;
    const at = this.#body;
    const [dev, ino, size, mtimeMs, ctimeMs] = [0, 8, 16, 24, 32].map((each) =>
      raw.readDoubleLE(at + each),
    ) as [number, number, number, number, number];
    return { entry, stats: { dev, ino, size, mtimeMs, ctimeMs }, settled: (flags & SETTLED) !== 0 };
  }

  /** Whether the entry still has these stats, so that what is known about it remains valid. */
  isSettledAs(stats: Stats): boolean {
    const [raw, record, at] = [this.#raw, this.#record, this.#body];
    const sure = SEEN | SETTLED;
    return (
      ((raw[record + 9] ?? 0) & sure) === sure &&
      raw.readDoubleLE(at + 32) === stats.ctimeMs &&
      raw.readDoubleLE(at + 24) === stats.mtimeMs &&
      raw.readDoubleLE(at + 16) === stats.size &&
      raw.readDoubleLE(at + 8) === stats.ino &&
      raw.readDoubleLE(at) === stats.dev
    );
  }

  get kind(): Entry["kind"] | "gone" {
    return KINDS[this.#raw[this.#record + 8] ?? 0] ?? "gone";
  }

  get mode(): number {
    return this.#raw.readUInt16LE(this.#record + 10);
  }

  /** For a file: the hashes of its content, as bytes. */
  get pieces(): readonly Buffer[] {
    const pieces: Buffer[] = [];
    for (let from = this.#inner + 8; from < this.#next; from += HASH_BYTES)
      pieces.push(this.#raw.subarray(from, from + HASH_BYTES));
    return pieces;
  }

  get entry(): Entry | undefined {
    const [raw, record] = [this.#raw, this.#record];
    const kind = KINDS[raw[record + 8] ?? 0];
    const flags = raw[record + 9] ?? 0;
    const mode = raw.readUInt16LE(record + 10);
    const detail = DETAILS[raw[record + 12] ?? 0];
    const at = this.#inner;
    const owner = (flags & OWNED) === 0 ? {} : { owner: raw.toString("latin1", this.#content + 1, at) };
    switch (kind) {
      case "file": {
        const pieces: string[] = [];
        for (let from = at + 8; from < this.#next; from += HASH_BYTES)
          pieces.push(raw.toString("base64url", from, from + HASH_BYTES));
        return { kind, mode, ...owner, size: raw.readDoubleLE(at), pieces };
      }
      case "link":
        return { kind, target: textOfBytes(raw.subarray(at, this.#next)), ...owner };
      case "folder":
        return { kind, mode, ...owner };
      case "odd":
        return { kind, what: detail as "fifo", mode, ...owner };
      case "unkept": {
        const stamp = raw.toString("latin1", at + 8, this.#next);
        const folder = (flags & UNKEPT_FOLDER) !== 0;
        const why = detail as UnkeptEntry["why"];
        return { kind, why, folder, size: raw.readDoubleLE(at), stamp, mode, ...owner };
      }
      default:
        return undefined;
    }
  }

  /** Copies the record's own bytes: a header with another shared count, and the body. */
  copyTo(target: Buffer, at: number, shared: number): number {
    const own = this.keyLength - shared;
    this.#raw.copy(target, at, this.#record, this.#record + HEADER);
    target.writeUInt16LE(shared, at);
    target.writeUInt16LE(own, at + 2);
    this.key.copy(target, at + HEADER, shared, this.keyLength);
    return at + HEADER + own + this.#raw.copy(target, at + HEADER + own, this.#body, this.#next);
  }

  get bodyLength(): number {
    return this.#next - this.#body;
  }

  /** Whether both entries have the same bytes; entries with different bytes may still be equal. */
  isAlike(other: EntryCursor): boolean {
    const [a, b] = [this.#raw, other.#raw];
    const differs = FLAGLESS.some((each) => a[this.#record + each] !== b[other.#record + each]);
    const owned = ((a[this.#record + 9] ?? 0) ^ (b[other.#record + 9] ?? 0)) & (OWNED | UNKEPT_FOLDER);
    if (differs || owned !== 0) return false;
    return a.compare(b, other.#content, other.#next, this.#content, this.#next) === 0;
  }

  get #body(): number {
    return this.#record + HEADER + this.#raw.readUInt16LE(this.#record + 2);
  }

  /** The position after the owner. */
  get #inner(): number {
    const owned = ((this.#raw[this.#record + 9] ?? 0) & OWNED) !== 0;
    return this.#content + (owned ? 1 + (this.#raw[this.#content] ?? 0) : 0);
  }

  /** The position after the stats. */
  get #content(): number {
    return this.#body + (((this.#raw[this.#record + 9] ?? 0) & SEEN) === 0 ? 0 : STATS_BYTES);
  }

  #open(): boolean {
    const block = this.#blocks[this.#block];
    if (block === undefined) {
      this.ended = true;
      return false;
    }
    this.#block += 1;
    this.#raw = zstdDecompressSync(block.data, { chunkSize: Math.max(block.length, 64) });
    this.#left = block.count;
    this.#next = 0;
    return true;
  }
}

/** Offsets of kind, mode and detail in a header. */
const FLAGLESS = [8, 10, 11, 12];

/** Accepts entries in the order of their keys. */
export class EntryWriter {
  size = 0;
  readonly #blocks: Block[] = [];
  #raw = Buffer.allocUnsafeSlow(BLOCK);
  #at = 0;
  #count = 0;
  #first: Buffer = Buffer.alloc(0);
  /**
   * The block from whose beginning everything in this block was copied; if it was copied whole, it is reused unchanged.
   */
  #copied: Block | undefined;
  readonly #last = Buffer.allocUnsafeSlow(MAX_KEY);
  #lastLength = 0;

  add(key: Buffer, entry: Entry | undefined, seen?: SeenEntry): void {
    this.#copied = undefined;
    const length = bodyLength(entry, seen);
    const shared = this.#begin(key, key.length, length);
    const [raw, at] = [this.#raw, this.#at];
    raw.writeUInt16LE(shared, at);
    raw.writeUInt16LE(key.length - shared, at + 2);
    raw.writeUInt32LE(length, at + 4);
    raw[at + 8] = KINDS.indexOf(entry?.kind ?? "gone");
    raw[at + 9] = flagsOf(entry, seen);
    raw.writeUInt16LE(entry === undefined || entry.kind === "link" ? 0 : entry.mode, at + 10);
    raw[at + 12] = DETAILS.indexOf(detailOf(entry));
    raw[at + 13] = 0;
    this.#at = writeBody(raw, at + HEADER + key.copy(raw, at + HEADER, shared), entry, seen);
  }

  copy(cursor: EntryCursor): void {
    if (cursor.isFirst) {
      if (this.#at > BLOCK / 2) this.#seal();
      this.#copied = this.#count === 0 ? cursor.block : undefined;
    } else if (this.#copied !== cursor.block) this.#copied = undefined;
    const shared = this.#begin(cursor.key, cursor.keyLength, cursor.bodyLength);
    this.#at = cursor.copyTo(this.#raw, this.#at, shared);
  }

  finish(): EntryList {
    this.#seal();
    return new EntryList(this.#blocks);
  }

  /** Returns the number of key bytes shared with the previous key, and makes room for the record. */
  #begin(key: Buffer, length: number, body: number): number {
    if (length > MAX_KEY) throw new Error("a path is too long");
    let shared = this.#count === 0 ? 0 : this.#sharedWith(key, length);
    if (this.#at + HEADER + length - shared + body > this.#raw.length) {
      this.#seal();
      shared = 0;
    }
    const wanted = HEADER + length + body;
    if (this.#count === 0) {
      if (wanted > this.#raw.length) this.#raw = Buffer.allocUnsafeSlow(wanted);
      this.#first = Buffer.from(key.subarray(0, length));
    }
    key.copy(this.#last, shared, shared, length);
    this.#lastLength = length;
    this.#count += 1;
    this.size += 1;
    return shared;
  }

  #sharedWith(key: Buffer, length: number): number {
    const most = Math.min(length, this.#lastLength);
    let shared = 0;
    while (shared < most && key[shared] === this.#last[shared]) shared += 1;
    if (shared === length || (shared < most && (key[shared] ?? 0) < (this.#last[shared] ?? 0)))
      throw new Error(`${pathOf(key.subarray(0, length))} is out of order`);
    return shared;
  }

  #seal(): void {
    if (this.#count === 0) return;
    const copied = this.#copied;
    if (copied?.count === this.#count) this.#blocks.push(copied);
    else this.#blocks.push(this.#compressed());
    this.#copied = undefined;
    this.#at = 0;
    this.#count = 0;
  }

  #compressed(): Block {
    const packed = zstdCompressSync(this.#raw.subarray(0, this.#at), FAST);
    // The compressor may return part of a larger buffer.
    const data = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(data);
    return { first: this.#first, count: this.#count, length: this.#at, data };
  }
}

function flagsOf(entry: Entry | undefined, seen: SeenEntry | undefined): number {
  const folder = entry?.kind === "unkept" && entry.folder ? UNKEPT_FOLDER : 0;
  const owned = entry?.owner === undefined ? 0 : OWNED;
  return folder | owned | (seen === undefined ? 0 : SEEN) | (seen?.settled === true ? SETTLED : 0);
}

const detailOf = (entry: Entry | undefined): (typeof DETAILS)[number] =>
  entry?.kind === "odd" ? entry.what : entry?.kind === "unkept" ? entry.why : "";

/** A link's target, or the stamp of an entry that is not kept. */
function textIn(entry: Entry | undefined): Buffer | undefined {
  if (entry?.kind === "link") return bytesOfText(entry.target);
  return entry?.kind === "unkept" ? Buffer.from(entry.stamp, "latin1") : undefined;
}

const isSized = (entry: Entry | undefined): entry is FileEntry | UnkeptEntry =>
  entry?.kind === "file" || entry?.kind === "unkept";

function bodyLength(entry: Entry | undefined, seen: SeenEntry | undefined): number {
  const owner = entry?.owner === undefined ? 0 : 1 + entry.owner.length;
  const pieces = entry?.kind === "file" ? entry.pieces.length * HASH_BYTES : 0;
  const own = (isSized(entry) ? 8 : 0) + pieces + (textIn(entry)?.length ?? 0);
  return (seen === undefined ? 0 : STATS_BYTES) + owner + own;
}

/** Returns the position after the body. */
function writeBody(raw: Buffer, from: number, entry: Entry | undefined, seen: SeenEntry | undefined): number {
  let at = from;
  if (seen !== undefined) {
    const { dev, ino, size, mtimeMs, ctimeMs } = seen.stats;
    for (const each of [dev, ino, size, mtimeMs, ctimeMs]) at = raw.writeDoubleLE(each, at);
  }
  if (entry?.owner !== undefined) {
    at = raw.writeUInt8(entry.owner.length, at);
    at += raw.write(entry.owner, at, "latin1");
  }
  if (isSized(entry)) at = raw.writeDoubleLE(entry.size, at);
  if (entry?.kind === "file")
    for (const piece of entry.pieces) at += raw.write(piece, at, HASH_BYTES, "base64url");
  return at + (textIn(entry)?.copy(raw, at) ?? 0);
}

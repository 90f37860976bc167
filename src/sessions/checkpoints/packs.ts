import { hash, randomBytes, randomUUID } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { formatSize } from "../../core/wording.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { makeFolder } from "../../platform/folders.ts";
import { writeWhole } from "../../platform/safe-files.ts";

interface Writing {
  readonly pack: string;
  readonly number: number;
  readonly data: number;
  readonly index: number;
  /** Bytes in the file, including those that the index does not know yet. */
  size: number;
  /** Bytes that the index knows. */
  known: number;
}

const MAX_BUFFERED = 8 * 2 ** 20;
const BUFFERED_FIRST = 64 * 1024;

/**
 * Contents by their SHA-256, in append-only files. Each process writes its own pack, and its index only after the data
 * is on the disk: a kill leaves only bytes that nothing names. Several processes need no lock, except against
 * `keepOnly`.
 */
export class Packs implements Disposable {
  readonly folder: string;
  readonly #limit: number;
  #places = new Places();
  /** Which of the places were read and undamaged: many files may hold the same piece. */
  #whole = new Set<number>();
  /** This many of the places are durable; the rest were added since the last flush. */
  #durable = 0;
  #packs: string[] = [];
  #writing: Writing | undefined;
  #pending = Buffer.alloc(0);
  #pendingBytes = 0;

  /** `limit`: the most bytes that this instance may write. */
  constructor(folder: string, limit = Number.POSITIVE_INFINITY) {
    this.folder = folder;
    this.#limit = limit;
    makeFolder(folder);
    this.reload();
  }

  /** Rereads the folder from scratch. */
  reload(): void {
    this.#places = new Places();
    this.#whole = new Set();
    this.#packs = [...this.#names()];
    for (const [at, pack] of this.#packs.entries())
      this.#places.addAll(recordsIn(this.#file(pack, "idx")), at);
    this.#durable = this.#places.count;
  }

  /** Durable after the next `flush`. */
  put(content: Uint8Array): string {
    const id = hash("sha256", content, "buffer");
    const name = id.toString("base64url");
    if (this.#places.find(id) !== undefined) return name;
    const writing = (this.#writing ??= this.#begin());
    if (writing.size + this.#pendingBytes + content.length > this.#limit)
      throw new HarnessError(
        EXIT.failed,
        `the files of the workspace are larger than ${formatSize(this.#limit)} in total`,
      );
    const offset = writing.size + this.#pendingBytes;
    this.#places.add({ id, pack: writing.number, offset, length: content.length });
    this.#append(writing, content);
    return name;
  }

  has(id: string): boolean {
    return this.holds(bytesOf(id));
  }

  /** Like `has`, but takes the hash as bytes. */
  holds(id: Buffer): boolean {
    return this.#places.find(id) !== undefined;
  }

  /**
   * Whether the content is there and undamaged, which means reading it once. Content put since the last flush counts if
   * it is there.
   */
  isWhole(id: string): boolean {
    const at = this.#places.find(bytesOf(id));
    if (at === undefined || at >= this.#durable || this.#whole.has(at)) return at !== undefined;
    if (this.get(id) === undefined) return false;
    this.#whole.add(at);
    return true;
  }

  /** undefined if the content is missing or damaged. Content that was put is readable only after `flush`. */
  get(id: string): Buffer | undefined {
    const at = this.#places.find(bytesOf(id));
    if (at === undefined || at >= this.#durable) return undefined;
    const { pack, offset, length } = this.#places.at(at);
    const content = Buffer.allocUnsafe(length);
    const descriptor = openSync(this.#file(this.#packs[pack] ?? "", "pack"), "r");
    try {
      const read = readSync(descriptor, content, 0, length, offset);
      return read === length && hash("sha256", content, "base64url") === id ? content : undefined;
    } finally {
      closeSync(descriptor);
    }
  }

  /** If anything fails, everything put since the last flush is discarded, and a later flush may succeed. */
  flush(): void {
    const writing = this.#writing;
    if (writing === undefined || this.#places.count === this.#durable) return;
    try {
      this.#write(writing);
      fdatasyncSync(writing.data);
      writeWhole(writing.index, this.#places.recordsFrom(this.#durable));
      fdatasyncSync(writing.index);
    } catch (thrown) {
      this.discard();
      throw thrown;
    }
    this.#durable = this.#places.count;
    writing.known = writing.size;
  }

  /** Discards everything put since the last flush. */
  discard(): void {
    const writing = this.#writing;
    this.#places.cutTo(this.#durable);
    this.#pendingBytes = 0;
    if (writing === undefined) return;
    // A pack is not continued after its index failed midway.
    this.#close();
    try {
      if (writing.known === 0) this.#remove(writing.pack);
    } catch {
      // The bytes are named by nothing; the next collection removes them.
    }
  }

  /** Removes all other contents. Nobody else may have the folder open. */
  keepOnly(live: ReadonlySet<string>): void {
    this.#close();
    for (const pack of this.#names()) {
      const places = new Places();
      places.addAll(recordsIn(this.#file(pack, "idx")), 0);
      const all = Array.from({ length: places.count }, (_, at) => places.at(at));
      const kept = all.filter(({ id }) => live.has(id.toString("base64url")));
      const bytes = kept.reduce((sum, { length }) => sum + length, 0);
      if (kept.length > 0 && bytes * 2 >= statSync(this.#file(pack, "pack")).size) continue;
      this.#moveOut(kept);
      this.#remove(pack);
    }
    this.reload();
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  /** Copies contents into the pack being written. Damaged contents are dropped. */
  #moveOut(contents: readonly Place[]): void {
    for (const { id, length } of contents) {
      const content = this.get(id.toString("base64url"));
      if (content === undefined) continue;
      const writing = (this.#writing ??= this.#begin());
      const offset = writing.size + this.#pendingBytes;
      this.#places.add({ id, pack: writing.number, offset, length });
      this.#append(writing, content);
    }
    this.flush();
  }

  #begin(): Writing {
    const pack = randomUUID();
    const data = openSync(this.#file(pack, "pack"), "wx", 0o600);
    const index = openSync(this.#file(pack, "idx"), "wx", 0o600);
    const number = this.#packs.push(pack) - 1;
    return { pack, number, data, index, size: 0, known: 0 };
  }

  #append(writing: Writing, content: Uint8Array): void {
    if (this.#pendingBytes + content.length > MAX_BUFFERED) this.#write(writing);
    if (content.length > MAX_BUFFERED) return this.#writeOut(writing, content);
    const wanted = this.#pendingBytes + content.length;
    if (wanted > this.#pending.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(MAX_BUFFERED, Math.max(BUFFERED_FIRST, wanted * 2)));
      this.#pending.copy(larger, 0, 0, this.#pendingBytes);
      this.#pending = larger;
    }
    this.#pending.set(content, this.#pendingBytes);
    this.#pendingBytes = wanted;
  }

  #write(writing: Writing): void {
    this.#writeOut(writing, this.#pending.subarray(0, this.#pendingBytes));
    this.#pendingBytes = 0;
  }

  #writeOut(writing: Writing, bytes: Uint8Array): void {
    try {
      writeWhole(writing.data, bytes);
    } catch (thrown) {
      ftruncateSync(writing.data, writing.known);
      throw thrown;
    }
    writing.size += bytes.length;
  }

  #close(): void {
    if (this.#writing === undefined) return;
    closeSync(this.#writing.data);
    closeSync(this.#writing.index);
    this.#writing = undefined;
  }

  /** Removes the index first: data without an index counts as nothing. */
  #remove(pack: string): void {
    rmSync(this.#file(pack, "idx"), { force: true });
    rmSync(this.#file(pack, "pack"), { force: true });
  }

  readonly #names = (): readonly string[] =>
    readdirSync(this.folder)
      .filter((name) => name.endsWith(".pack"))
      .map((name) => name.slice(0, -".pack".length));

  readonly #file = (pack: string, kind: "pack" | "idx"): string => path.join(this.folder, `${pack}.${kind}`);
}

const bytesOf = (id: string): Buffer => Buffer.from(id, "base64url");

/** The index record of one content: 32 bytes of SHA-256, 8 of offset, 8 of length. */
const RECORD = 48;
const HASH = 32;

interface Place {
  readonly id: Buffer;
  readonly pack: number;
  readonly offset: number;
  readonly length: number;
}

/** The places of contents by their hashes: a byte table, since there may be hundreds of thousands. */
class Places {
  count = 0;
  #records = Buffer.alloc(0);
  #packs = new Uint32Array(0);
  /** The number of a record plus one; 0: empty. */
  #slots = new Uint32Array(1024);
  /** Prevents anyone from choosing contents whose hashes all collide in one slot. */
  readonly #salt = randomBytes(8);

  find(id: Buffer): number | undefined {
    const found = this.#slots[this.#slotOf(id)] ?? 0;
    return found === 0 ? undefined : found - 1;
  }

  at(index: number): Place {
    const from = index * RECORD;
    return {
      id: this.#records.subarray(from, from + HASH),
      pack: this.#packs[index] ?? 0,
      offset: Number(this.#records.readBigUInt64BE(from + HASH)),
      length: Number(this.#records.readBigUInt64BE(from + HASH + 8)),
    };
  }

  /** The records in the format of an index. */
  recordsFrom(index: number): Buffer {
    return this.#records.subarray(index * RECORD, this.count * RECORD);
  }

  /** If the hash is already known, the new place wins. */
  add({ id, pack, offset, length }: Place): void {
    const record = Buffer.allocUnsafe(RECORD);
    id.copy(record);
    record.writeBigUInt64BE(BigInt(offset), HASH);
    record.writeBigUInt64BE(BigInt(length), HASH + 8);
    this.addAll(record, pack);
  }

  addAll(records: Buffer, pack: number): void {
    const all = records.length / RECORD;
    this.#makeRoom(this.count + all);
    records.copy(this.#records, this.count * RECORD);
    this.#packs.fill(pack, this.count, this.count + all);
    for (let left = all; left > 0; left -= 1) this.#index(this.count++);
  }

  cutTo(count: number): void {
    if (count === this.count) return;
    this.count = count;
    this.#indexAll();
  }

  #makeRoom(count: number): void {
    if (count * RECORD > this.#records.length) {
      const most = Math.max(64, count + (count >> 1));
      const records = Buffer.allocUnsafeSlow(most * RECORD);
      this.#records.copy(records, 0, 0, this.count * RECORD);
      const packs = new Uint32Array(most);
      packs.set(this.#packs.subarray(0, this.count));
      [this.#records, this.#packs] = [records, packs];
    }
    if (count * 2 <= this.#slots.length) return;
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(count * 3)));
    this.#indexAll();
  }

  #indexAll(): void {
    this.#slots.fill(0);
    for (let at = 0; at < this.count; at += 1) this.#index(at);
  }

  #index(index: number): void {
    this.#slots[this.#slotOf(this.#records.subarray(index * RECORD, index * RECORD + HASH))] = index + 1;
  }

  /** The slot of this hash, or the free slot where it belongs. */
  #slotOf(id: Buffer): number {
    const [one, other] = [this.#salt.readUInt32LE(0) | 1, this.#salt.readUInt32LE(4) | 1];
    const mixed = Math.imul(id.readUInt32LE(0), one) ^ Math.imul(id.readUInt32LE(4), other);
    const mask = this.#slots.length - 1;
    for (let slot = (mixed ^ (mixed >>> 15)) & mask; ; slot = (slot + 1) & mask) {
      const known = (this.#slots[slot] ?? 0) - 1;
      if (known < 0) return slot;
      const from = known * RECORD;
      if (this.#records.compare(id, 0, HASH, from, from + HASH) === 0) return slot;
    }
  }
}

/** An incomplete record at the end was being written when the writer was killed. */
function recordsIn(file: string): Buffer {
  const bytes = contentOf(file);
  return bytes.subarray(0, bytes.length - (bytes.length % RECORD));
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
    throw thrown;
  }
}

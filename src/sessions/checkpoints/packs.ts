import { hash, randomUUID } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writevSync,
} from "node:fs";
import path from "node:path";
import { formatSize } from "../../core/bounds.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";

interface Place {
  readonly pack: string;
  readonly offset: number;
  readonly length: number;
}

interface Writing {
  readonly pack: string;
  readonly data: number;
  readonly index: number;
  /** Bytes that are in the file, whether the index knows them yet or not. */
  size: number;
  /** As far as the index knows. */
  known: number;
}

const BUFFERED = 8 * 2 ** 20;

/**
 * Contents by their SHA-256, in append-only files. Each process writes a pack of its own, and its index only when the
 * data is on the disk: a kill leaves bytes that nothing names. Use by several processes needs no lock but against
 * `keepOnly`.
 */
export class Packs implements Disposable {
  readonly folder: string;
  readonly #limit: number;
  #places = new Map<string, Place>();
  #writing: Writing | undefined;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  /** Since the last flush. */
  #fresh = new Map<string, Place>();

  /** `limit`: bytes that may be written by this one. */
  constructor(folder: string, limit = Number.POSITIVE_INFINITY) {
    this.folder = folder;
    this.#limit = limit;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.reload();
  }

  /** Forgets what was read of the folder, and reads it again. */
  reload(): void {
    this.#places = new Map();
    for (const pack of this.#names())
      for (const { id, offset, length } of readIndex(this.#file(pack, "idx")))
        this.#places.set(id, { pack, offset, length });
  }

  /** Durable after the next `flush`. */
  put(content: Uint8Array): string {
    const id = hash("sha256", content, "base64url");
    if (this.#places.has(id) || this.#fresh.has(id)) return id;
    const writing = (this.#writing ??= this.#begin());
    if (writing.size + this.#pendingBytes + content.length > this.#limit)
      throw new HarnessError(
        EXIT.failed,
        `the files of the workspace hold more than ${formatSize(this.#limit)}`,
      );
    const offset = writing.size + this.#pendingBytes;
    this.#fresh.set(id, { pack: writing.pack, offset, length: content.length });
    this.#pending.push(Buffer.from(content));
    this.#pendingBytes += content.length;
    if (this.#pendingBytes >= BUFFERED) this.#write(writing);
    return id;
  }

  has(id: string): boolean {
    return this.#places.has(id) || this.#fresh.has(id);
  }

  /** Whether it is there and what it was; reads it. Of what was put since the last flush, that it is there. */
  isWhole(id: string): boolean {
    return this.#fresh.has(id) || this.get(id) !== undefined;
  }

  /** undefined when it is not there, or is not what it was. Of what was put, after `flush` only. */
  get(id: string): Buffer | undefined {
    const place = this.#places.get(id);
    if (place === undefined) return undefined;
    const content = Buffer.allocUnsafe(place.length);
    const descriptor = openSync(this.#file(place.pack, "pack"), "r");
    try {
      const read = readSync(descriptor, content, 0, place.length, place.offset);
      return read === place.length && hash("sha256", content, "base64url") === id ? content : undefined;
    } finally {
      closeSync(descriptor);
    }
  }

  /** Whatever fails: what was put since the last flush is not there, and the next one may try again. */
  flush(): void {
    const writing = this.#writing;
    if (writing === undefined || this.#fresh.size === 0) return;
    try {
      this.#write(writing);
      fdatasyncSync(writing.data);
      const records = [...this.#fresh].map(([id, { offset, length }]) => writeRecord(id, offset, length));
      writeAll(writing.index, [Buffer.concat(records, records.length * RECORD)]);
      fdatasyncSync(writing.index);
    } catch (thrown) {
      this.discard();
      throw thrown;
    }
    for (const [id, place] of this.#fresh) this.#places.set(id, place);
    this.#fresh = new Map();
    writing.known = writing.size;
  }

  /** Takes back what was put since the last flush. */
  discard(): void {
    const writing = this.#writing;
    this.#fresh = new Map();
    this.#pending = [];
    this.#pendingBytes = 0;
    if (writing === undefined) return;
    // A pack whose index failed half-way is not gone on with.
    this.#close();
    try {
      if (writing.known === 0) this.#remove(writing.pack);
    } catch {
      // Bytes that nothing names; the next collection has them.
    }
  }

  /** Removes all other contents. Nobody else may have the folder open. */
  keepOnly(live: ReadonlySet<string>): void {
    this.#close();
    for (const pack of this.#names()) {
      const all = readIndex(this.#file(pack, "idx"));
      const kept = all.filter(({ id }) => live.has(id));
      const bytes = kept.reduce((sum, { length }) => sum + length, 0);
      if (kept.length > 0 && bytes * 2 >= statSync(this.#file(pack, "pack")).size) continue;
      const contents = kept.map(({ id }) => this.get(id));
      for (const { id } of all) this.#places.delete(id);
      for (const content of contents) if (content !== undefined) this.put(content);
      this.flush();
      this.#remove(pack);
    }
    this.reload();
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #begin(): Writing {
    const pack = randomUUID();
    const data = openSync(this.#file(pack, "pack"), "wx", 0o600);
    const index = openSync(this.#file(pack, "idx"), "wx", 0o600);
    return { pack, data, index, size: 0, known: 0 };
  }

  #write(writing: Writing): void {
    try {
      writeAll(writing.data, this.#pending);
    } catch (thrown) {
      ftruncateSync(writing.data, writing.known);
      throw thrown;
    }
    writing.size += this.#pendingBytes;
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  #close(): void {
    if (this.#writing === undefined) return;
    closeSync(this.#writing.data);
    closeSync(this.#writing.index);
    this.#writing = undefined;
  }

  /** The index first: data without an index is nothing. */
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

function writeAll(descriptor: number, buffers: readonly Buffer[]): void {
  let left = buffers.filter(({ length }) => length > 0);
  while (left.length > 0) {
    const some = left.slice(0, 1000);
    let written = writevSync(descriptor, some);
    const rest: Buffer[] = [];
    for (const buffer of some) {
      if (written >= buffer.length) written -= buffer.length;
      else {
        rest.push(buffer.subarray(written));
        written = 0;
      }
    }
    left = [...rest, ...left.slice(1000)];
  }
}

/** One content of a pack: 32 bytes of its SHA-256, 8 of its offset, 8 of its length. */
const RECORD = 48;

interface Known {
  readonly id: string;
  readonly offset: number;
  readonly length: number;
}

function writeRecord(id: string, offset: number, length: number): Buffer {
  const record = Buffer.alloc(RECORD);
  record.write(id, 0, 32, "base64url");
  record.writeBigUInt64BE(BigInt(offset), 32);
  record.writeBigUInt64BE(BigInt(length), 40);
  return record;
}

/** What is not a whole record at its end was being written when the writer was killed. */
function readIndex(file: string): readonly Known[] {
  const bytes = contentOf(file);
  const known: Known[] = [];
  for (let at = 0; at + RECORD <= bytes.length; at += RECORD)
    known.push({
      id: bytes.toString("base64url", at, at + 32),
      offset: Number(bytes.readBigUInt64BE(at + 32)),
      length: Number(bytes.readBigUInt64BE(at + 40)),
    });
  return known;
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
    throw thrown;
  }
}

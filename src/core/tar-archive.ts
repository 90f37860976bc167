/** Tar archives: a reader for all forms that engines and programs write, and what writers need. */

/** One entry of a tar stream. The name is in bytes; a file's content follows it. */
export interface TarEntry {
  readonly name: Buffer;
  readonly type: "file" | "folder" | "link" | "same" | "odd";
  readonly mode: number;
  /** Seconds since 1970. */
  readonly modified: number;
  readonly size: number;
  /** For a link: its target. For a file that is the same as an earlier one: the earlier one's name. */
  readonly target: Buffer;
}

/** Headers and contents fill whole blocks of this size. */
export const TAR_BLOCK = 512;
/** Limit for a long name or a set of PAX records: the stream may be hostile. */
const MAX_EXTENSION_LENGTH = 2 ** 20;
const TYPES: Readonly<Record<string, TarEntry["type"]>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "same",
  "2": "link",
  "5": "folder",
};

/** Compares the header's checksum with the sum of its bytes; the checksum's own bytes count as blanks. */
function isHeader(header: Buffer): boolean {
  let sum = 8 * 0x20;
  for (let at = 0; at < TAR_BLOCK; at += 1) if (at < 148 || at >= 156) sum += header[at] ?? 0;
  return sum === tarNumber(header.subarray(148, 156));
}

/** Writes the checksum, for which its own field counts as blanks. */
export function withChecksum(header: Buffer): Buffer {
  header.write(" ".repeat(8), 148, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** Octal digits, or big-endian with the first bit set if the digits do not fit. */
export function writeTarNumber(header: Buffer, at: number, length: number, value: number): void {
  const digits = value.toString(8);
  if (digits.length < length) {
    header.write(`${digits.padStart(length - 1, "0")}\0`, at, "latin1");
    return;
  }
  header.writeBigUInt64BE(BigInt(value), at + length - 8);
  header[at] = 0x80;
}

const paddingAfter = (size: number): number => (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;

/** Fills the last block of a content of this size. */
export const tarPadding = (size: number): Buffer => Buffer.alloc(paddingAfter(size));

/** Ends an archive. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * TAR_BLOCK);

/** The content of a tar stream: each entry, then the pieces of its content. Supports PAX and GNU's long names. */
export async function* untar(stream: AsyncIterable<Buffer>): AsyncGenerator<TarEntry | Buffer, void> {
  const source = new Bytes(stream);
  let more: Readonly<Record<string, Buffer>> = {};
  for (;;) {
    const header = await source.take(TAR_BLOCK);
    if (header === undefined || header.every((byte) => byte === 0)) return;
    if (!isHeader(header)) throw new Error("the archive is damaged: a header does not fit its sum");
    const size = tarNumber(header.subarray(124, 136));
    const type = String.fromCharCode(header[156] ?? 0);
    if ("xgLK".includes(type)) {
      more = { ...more, ...(await extension(source, type, size)) };
      continue;
    }
    const entry = entryOf(header, type, { size, more });
    more = {};
    yield entry;
    for (let left = entry.size; left > 0;) {
      const piece = await source.atMost(left);
      if (piece === undefined) throw new Error("the archive ends in the middle of a file");
      left -= piece.length;
      yield piece;
    }
    await source.take(paddingAfter(entry.size));
  }
}

/** Extension records that apply to the next entry. */
async function extension(
  source: Bytes,
  type: string,
  size: number,
): Promise<Readonly<Record<string, Buffer>>> {
  if (size > MAX_EXTENSION_LENGTH) throw new Error("the archive holds a name that is too long");
  const content = (await source.take(size)) ?? Buffer.alloc(0);
  await source.take(paddingAfter(size));
  if (type === "g") return {};
  return type === "x" ? records(content) : { [type === "L" ? "path" : "linkpath"]: textIn(content) };
}

interface Extra {
  readonly size: number;
  readonly more: Readonly<Record<string, Buffer>>;
}

function entryOf(header: Buffer, type: string, { size, more }: Extra): TarEntry {
  const prefix = header.toString("latin1", 257, 262) === "ustar" ? textIn(header.subarray(345, 500)) : EMPTY;
  const short = textIn(header.subarray(0, 100));
  const name = prefix.length === 0 ? short : Buffer.concat([prefix, Buffer.from("/"), short]);
  const kind = TYPES[type] ?? "odd";
  return {
    name: more["path"] ?? name,
    type: kind,
    mode: tarNumber(header.subarray(100, 108)) & 0o7777,
    modified: Number(more["mtime"]?.toString() ?? tarNumber(header.subarray(136, 148))),
    size: kind === "file" ? Number(more["size"]?.toString() ?? size) : 0,
    target: more["linkpath"] ?? textIn(header.subarray(157, 257)),
  };
}

const EMPTY = Buffer.alloc(0);

function textIn(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end === -1 ? field : field.subarray(0, end);
}

/** Octal text, or a base-256 number if octal is too short. */
export function tarNumber(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) !== 0)
    return field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f);
  return Number.parseInt(textIn(field).toString("latin1").trim() || "0", 8);
}

/** Digits of a record's length, with the blank after them. */
const MAX_NUMBER_LENGTH = 20;
/** The records that are supported; others are dropped, so that many of them cost no memory. */
const KEYS = ["path", "linkpath", "size", "mtime"];

/** `<length> <key>=<value>\n`; the length counts all of it, and values are arbitrary bytes. */
function records(content: Buffer): Readonly<Record<string, Buffer>> {
  const found: Record<string, Buffer> = {};
  for (let at = 0; at < content.length;) {
    const blank = content.subarray(at, at + MAX_NUMBER_LENGTH).indexOf(0x20);
    const length = Number.parseInt(content.toString("latin1", at, at + Math.max(blank, 0)), 10);
    if (blank === -1 || !(length > 0)) break;
    const record = content.subarray(at + blank + 1, at + length - 1);
    const key = KEYS.find((each) => record.subarray(0, each.length + 1).equals(Buffer.from(`${each}=`)));
    if (key !== undefined) found[key] = record.subarray(key.length + 1);
    at += length;
  }
  return found;
}

/** Reads a stream in pieces of a given size. */
class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = EMPTY;

  constructor(stream: AsyncIterable<Buffer>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Exactly `length` bytes; undefined when the stream ends before that. */
  async take(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for (let left = length; left > 0;) {
      const piece = await this.atMost(left);
      if (piece === undefined) return undefined;
      parts.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(parts);
  }

  /** At least one byte and at most `most`; undefined at the end. */
  async atMost(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return undefined;
      this.#rest = next.value;
    }
    const piece = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}

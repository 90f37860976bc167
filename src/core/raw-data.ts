/** Data from outside: texts as bytes, JSON of unknown shape, tar archives. */

/** Whether a text fits into this many bytes of UTF-8. No character is ever split, here and below. */
export function fits(text: string, bytes: number): boolean {
  if (text.length > bytes) return false;
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}

/** The longest prefix that fits into this many bytes. */
export function headWithin(text: string, bytes: number): string {
  let end = 0;
  for (let left = bytes; end < text.length;) {
    const { size, units } = character(text.codePointAt(end));
    left -= size;
    if (left < 0) break;
    end += units;
  }
  return text.slice(0, end);
}

/** The longest suffix that fits into this many bytes. */
export function tailWithin(text: string, bytes: number): string {
  let start = text.length;
  for (let left = bytes; start > 0;) {
    const { size, units } = character(pointBefore(text, start));
    left -= size;
    if (left < 0) break;
    start -= units;
  }
  return text.slice(start);
}

function pointBefore(text: string, end: number): number | undefined {
  const point = end > 1 ? text.codePointAt(end - 2) : undefined;
  return point !== undefined && point > 0xffff ? point : text.codePointAt(end - 1);
}

/** A lone surrogate counts as the replacement character. */
function character(point = 0): { readonly size: number; readonly units: number } {
  if (point < 0x80) return { size: 1, units: 1 };
  if (point < 0x800) return { size: 2, units: 1 };
  return point < 0x1_0000 ? { size: 3, units: 1 } : { size: 4, units: 2 };
}

/**
 * File names and file contents are bytes. As text they are UTF-8, and each byte that is not part of a valid sequence
 * becomes a lone surrogate from U+DC80 to U+DCFF, so that every byte survives the round trip, through JSON too.
 */
const PIECES = /[\uDC80-\uDCFF]+|[^\uDC80-\uDCFF]+/gu;
const ESCAPE_BASE = 0xdc00;

export function textOfBytes(bytes: Uint8Array): string {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = all.toString("utf8");
  if (!text.includes("\uFFFD") || Buffer.from(text, "utf8").equals(all)) return text;
  const out: string[] = [];
  let from = 0;
  for (let at = 0; at < all.length;) {
    const length = sequenceLength(all, at);
    if (length === 0) {
      if (at > from) out.push(all.toString("utf8", from, at));
      out.push(String.fromCharCode(ESCAPE_BASE + (all[at] ?? 0)));
      from = at + 1;
    }
    at += Math.max(length, 1);
  }
  out.push(all.toString("utf8", from));
  return out.join("");
}

export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  const pieces = text.match(PIECES) ?? [];
  return Buffer.concat(
    pieces.map((piece) => (isEscape(piece) ? escaped(piece) : Buffer.from(piece, "utf8"))),
  );
}

function isEscape(piece: string): boolean {
  const code = piece.codePointAt(0) ?? 0;
  return code >= 0xdc80 && code <= 0xdcff;
}

const escaped = (piece: string): Buffer =>
  Buffer.from(Array.from(piece, (character) => character.charCodeAt(0) - ESCAPE_BASE));

/** Length in bytes of the valid sequence that starts here; 0 if none does. */
function sequenceLength(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = lengthBy(first);
  if (length < 2) return length;
  const [low, high] = SECOND[first] ?? [0x80, 0xbf];
  const second = bytes[at + 1] ?? 0;
  if (second < low || second > high) return 0;
  for (let next = 2; next < length; next += 1) if ((bytes[at + next] ?? 0) >> 6 !== 0b10) return 0;
  return length;
}

/** Sequence length by its first byte; 0 when no sequence begins with it. */
function lengthBy(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/** Allowed second bytes after these first bytes: no overlong form, no surrogate, nothing above U+10FFFF. */
const SECOND: Readonly<Record<number, readonly [number, number]>> = {
  0xe0: [0xa0, 0xbf],
  0xed: [0x80, 0x9f],
  0xf0: [0x90, 0xbf],
  0xf4: [0x80, 0x8f],
};

/** Values of untrusted JSON: a value of the wrong kind counts as absent. */

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asFields = (value: unknown): Fields | undefined => (isFields(value) ? value : undefined);

/** Empty for a value that is not an object. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A text that is not empty. */
export const asText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** The value of a JSON text; undefined, which JSON cannot express, when the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The object in a JSON text, with or without a byte order mark; an empty one when it has none. */
export const fieldsIn = (text: string): Fields => fieldsOf(parsedJson(text.replace(/^\uFEFF/, "")));

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

const TAR_BLOCK = 512;
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
  return sum === numberIn(header.subarray(148, 156));
}

/** The content of a tar stream: each entry, then the pieces of its content. Supports PAX and GNU's long names. */
export async function* untar(stream: AsyncIterable<Buffer>): AsyncGenerator<TarEntry | Buffer, void> {
  const source = new Bytes(stream);
  let more: Readonly<Record<string, Buffer>> = {};
  for (;;) {
    const header = await source.take(TAR_BLOCK);
    if (header === undefined || header.every((byte) => byte === 0)) return;
    if (!isHeader(header)) throw new Error("the archive is damaged: a header does not fit its sum");
    const size = numberIn(header.subarray(124, 136));
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
    await source.take(padded(entry.size));
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
  await source.take(padded(size));
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
    mode: numberIn(header.subarray(100, 108)) & 0o7777,
    modified: Number(more["mtime"]?.toString() ?? numberIn(header.subarray(136, 148))),
    size: kind === "file" ? Number(more["size"]?.toString() ?? size) : 0,
    target: more["linkpath"] ?? textIn(header.subarray(157, 257)),
  };
}

const EMPTY = Buffer.alloc(0);
const padded = (size: number): number => (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;

function textIn(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end === -1 ? field : field.subarray(0, end);
}

/** Octal text, or a base-256 number if octal is too short. */
function numberIn(field: Buffer): number {
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

/** A text file without the byte order mark that some editors write first. */
export const withoutMark = (text: string): string => (text.startsWith("\uFEFF") ? text.slice(1) : text);

/** Whether a value has more than so many levels; code that walks or writes out deeper ones may run out of stack. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

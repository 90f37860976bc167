/** Data from outside: texts as bytes, JSON of unknown shape. */

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

/** Undefined when the bytes are not UTF-8. A byte order mark is kept. */
export function utf8In(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The encoding that a byte order mark of two bytes states. */
export function utf16Encoding(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : undefined;
}

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

/** Undefined when the percent signs of the text do not encode UTF-8. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A text file without the byte order mark that some editors write first. */
export const withoutMark = (text: string): string => (text.startsWith("\uFEFF") ? text.slice(1) : text);

/** Whether a value has more than so many levels; code that walks or writes out deeper ones may run out of stack. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/**
 * File names are bytes. As text they are UTF-8, and a byte that is not part of any valid sequence stands as the lone
 * surrogate U+DC80 to U+DCFF, so that every name survives the way there and back, through JSON too.
 */
const ESCAPED = /[\uDC80-\uDCFF]/;

export function textOfPath(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  if (!text.includes("\uFFFD") || Buffer.from(text, "utf8").equals(bytes)) return text;
  let out = "";
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    out +=
      length === 0 ? String.fromCharCode(0xdc00 + (bytes[at] ?? 0)) : bytes.toString("utf8", at, at + length);
    at += Math.max(length, 1);
  }
  return out;
}

export function bytesOfPath(text: string): Buffer {
  if (!ESCAPED.test(text)) return Buffer.from(text, "utf8");
  const parts: Buffer[] = [];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    parts.push(
      code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(character, "utf8"),
    );
  }
  return Buffer.concat(parts);
}

/** Bytes of the valid sequence that starts here, or 0. */
function sequenceLength(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const part = bytes.subarray(at, at + length);
  const text = part.toString("utf8");
  return part.length === length && !text.includes("\uFFFD") && Buffer.byteLength(text) === length
    ? length
    : 0;
}

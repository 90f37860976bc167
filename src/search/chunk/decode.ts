import { isUtf8 } from "node:buffer";

/** One replaced character in so many makes a file binary rather than a text with damage. */
const DAMAGE = 10;

/**
 * The text of a file, without a mark of the byte order; undefined for what is no text: a NUL, or much that is no UTF-8.
 * A few bytes that are none become U+FFFD. UTF-16 is read when it begins with its mark.
 */
export function decoded(bytes: Uint8Array): string | undefined {
  const wide = wideEncoding(bytes);
  if (wide !== undefined) return textual(new TextDecoder(wide).decode(bytes), true);
  if (bytes.includes(0)) return undefined;
  return textual(new TextDecoder().decode(bytes), !isUtf8(bytes));
}

function wideEncoding(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : undefined;
}

function textual(text: string, doubtful: boolean): string | undefined {
  if (!doubtful) return text;
  if (text.includes("\0")) return undefined;
  let damage = 0;
  for (let at = text.indexOf("\uFFFD"); at !== -1; at = text.indexOf("\uFFFD", at + 1)) damage += 1;
  return damage * DAMAGE > text.length ? undefined : text;
}

/** Text of others inside of the prompt. */

const encoder = new TextEncoder();

export const bytesOf = (text: string): number => Buffer.byteLength(text);

/** The head of a text in at most so many bytes; no character is parted. */
export function firstBytes(text: string, most: number): string {
  if (most <= 0) return "";
  const { read } = encoder.encodeInto(text, new Uint8Array(Math.min(most, text.length * 3)));
  return text.slice(0, read);
}

/** Nothing in it opens or closes the element of instructions, and nothing in it is hidden from a person who reads it. */
export const untagged = (text: string): string =>
  text
    .replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "")
    .replace(/<(?=[\s/]*project_instructions)/gi, "&lt;");

/** As one line between quotes that it cannot leave. */
export const quoted = (text: string): string => JSON.stringify(oneLine(text)).replaceAll("<", "&lt;");

/** One line, with no sign that is not to be seen. */
export const oneLine = (text: string): string =>
  untagged(text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")).trim();

/** Text of others as it may stand in a prompt: on one line, within bounds, without what could act as markup. */

import { wholeBefore, wholeFrom } from "../../core/wording.ts";

const encoder = new TextEncoder();

export const bytesOf = (text: string): number => Buffer.byteLength(text);

/** The head of a text in at most this many bytes, without splitting a character. */
export function firstBytes(text: string, most: number): string {
  if (most <= 0) return "";
  const { read } = encoder.encodeInto(text, new Uint8Array(Math.min(most, text.length * 3)));
  return text.slice(0, read);
}

/** Removes what could open or close the instructions element, and characters that a person could not see. */
export const untagged = (text: string): string =>
  text
    .replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "")
    .replace(/<(?=[\s/]*project_instructions)/gi, "&lt;");

/** One line in quotes that the text cannot close. */
export const quoted = (text: string): string => JSON.stringify(oneLine(text)).replaceAll("<", "&lt;");

/** One line without invisible characters. */
export const oneLine = (text: string): string =>
  untagged(text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")).trim();

/** Head and tail of a text that is too long, with a mark between them for what is left out; no character is split. */
export function excerpt(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = wholeBefore(text, Math.ceil(most * 0.7));
  const tail = wholeFrom(text, text.length - Math.floor(most * 0.3));
  return `${text.slice(0, head)}\n[… ${tail - head} characters left out …]\n${text.slice(tail)}`;
}

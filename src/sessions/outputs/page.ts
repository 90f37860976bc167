import type { OutputPage } from "../../core/session.ts";

/**
 * Characters are counted as JavaScript counts, in units of UTF-16. A pair of them stays whole: a page that would begin
 * within one begins before it, and one that would end within one ends before it, or behind it when it would be empty.
 */
export function pageOf(text: string, offset: number, limit: number): OutputPage {
  const total = text.length;
  const asked = clamp(offset, total);
  const begin = parts(text, asked) ? asked - 1 : asked;
  const wanted = Math.max(begin, clamp(asked + Math.max(0, Math.trunc(limit) || 0), total));
  const end = parts(text, wanted) ? (wanted - 1 > begin ? wanted - 1 : wanted + 1) : wanted;
  const last = wanted === begin ? begin : end;
  return { text: text.slice(begin, last), offset: begin, end: last, total };
}

const clamp = (count: number, total: number): number => Math.min(total, Math.max(0, Math.trunc(count) || 0));

/** Whether a cut here would part a pair. */
const parts = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

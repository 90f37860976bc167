import { visible } from "../../core/visible.ts";

/**
 * In an edited text, a long paste is one character of plane 16. Text from outside never contains one: such characters
 * are spelled out first, like everything that would act on a terminal.
 */
const FIRST = 0x10_0000;
const MAX_TOKENS = 0xff00;

/** A paste with more lines or characters fills the screen, so it is folded. */
const MAX_LINES = 8;
const MAX_CHARACTERS = 1200;

const CONTROL = /(?![\n\t])[\p{Cc}\p{Cs}\u{100000}-\u{10FFFF}]/gu;
const TOKEN = /[\u{100000}-\u{10FFFF}]/gu;

/** The text in a safe form: control characters and lone surrogates are spelled out, line ends are `\n`. */
export const inert = (text: string): string =>
  text.replaceAll(/\r\n?/g, "\n").replaceAll(CONTROL, (character) => visible(character));

export interface Folded {
  /** The text itself, or the token of the last paste. */
  readonly text: string;
  readonly pastes: readonly string[];
}

export function folded(paste: string, pastes: readonly string[]): Folded {
  const text = inert(paste);
  if (!isLong(text) || pastes.length >= MAX_TOKENS) return { text, pastes };
  const known = pastes.indexOf(text);
  if (known !== -1) return { text: String.fromCodePoint(FIRST + known), pastes };
  return { text: String.fromCodePoint(FIRST + pastes.length), pastes: [...pastes, text] };
}

function isLong(text: string): boolean {
  if (text.length > MAX_CHARACTERS) return true;
  return text.split("\n", MAX_LINES + 1).length > MAX_LINES;
}

export const expanded = (text: string, pastes: readonly string[]): string =>
  text.replaceAll(TOKEN, (token) => pastes[placeOf(token)] ?? "");

const placeOf = (token: string): number => (token.codePointAt(0) ?? 0) - FIRST;

/** The label of a grapheme that begins with a token; undefined for any other. */
export function labelOf(grapheme: string, pastes: readonly string[]): string | undefined {
  const paste = (grapheme.codePointAt(0) ?? 0) < FIRST ? undefined : pastes[placeOf(grapheme)];
  if (paste === undefined) return undefined;
  const lines = paste.replace(/\n$/, "").split("\n").length;
  return lines > 1 ? `[pasted ${lines} lines]` : `[pasted ${paste.length} characters]`;
}

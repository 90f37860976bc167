/** Makes untrusted text safe to show: line ends and tabs work, every other control character is made visible. */
/**
 * Characters that a terminal obeys, that change the text direction, or that nobody sees: controls, formats, unpaired
 * surrogates, private and unassigned characters, Unicode's line separators, default-ignorable characters (joiners,
 * tags, variation selectors, fillers), and the Braille blank.
 */
const ACTIVE = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const PLAIN = /^[\n\t -~]*$/;

/** Number of pieces joined at a time: a text full of controls would otherwise take many times its size. */
const PIECES_AT_ONCE = 2 ** 14;

/**
 * Keeps the characters that make one emoji of several, where they can be nothing else: its variation selector and the
 * joiner between two. `before`: the text shown before this one, for a text that comes in pieces.
 */
export function visible(text: string, before = ""): string {
  if (PLAIN.test(text)) return text;
  const whole: string[] = [];
  let pieces: string[] = [];
  let from = 0;
  for (const { index, 0: character } of text.matchAll(ACTIVE)) {
    if (EMOJI_PARTS.test(character) && isPartOfEmoji(text, index, before)) continue;
    const isLineEnd = character === "\r" && text[index + 1] === "\n";
    pieces.push(text.slice(from, index), isLineEnd ? "" : visibleForm(character));
    from = index + character.length;
    if (pieces.length < PIECES_AT_ONCE) continue;
    whole.push(pieces.join(""));
    pieces = [];
  }
  return [...whole, ...pieces, text.slice(from)].join("");
}

/** The two variation selectors of emoji, and the joiner. */
const EMOJI_PARTS = /^[\uFE0E\uFE0F\u200D]$/;
const PICTURE_BEFORE = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier})\uFE0F?$/u;
const PICTURE_BEHIND = /^\p{Extended_Pictographic}/u;
/** Characters before a position that suffice to tell what its character belongs to. */
const CONTEXT = 6;

function isPartOfEmoji(text: string, at: number, before: string): boolean {
  const left = (at < CONTEXT ? before + text.slice(0, at) : text.slice(at - CONTEXT, at)).slice(-CONTEXT);
  if (text[at] === "\u200D")
    return PICTURE_BEFORE.test(left) && PICTURE_BEHIND.test(text.slice(at + 1, at + 3));
  if (/[0-9#*]$/.test(left)) return text[at + 1] === "\u20E3";
  return /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier})$/u.test(left);
}

/** Removes selectors and joiners. Nothing reads differently: an emoji in its other form, or two side by side. */
export const withoutEmojiParts = (shownText: string): string =>
  PLAIN.test(shownText) ? shownText : shownText.replaceAll(/[\uFE0E\uFE0F\u200D]/g, "");

const MAX_LENGTH = 400;
/** No visible form is shorter than half of its original, so text beyond this length cannot change the line. */
const MAX_READ = 2 * (MAX_LENGTH + CONTEXT);

/** The same as one bounded line: untrusted text cannot imitate a line of harness. */
export function visibleLine(text: string): string {
  const line = visibleWhole(text.slice(0, MAX_READ));
  if (line.length <= MAX_LENGTH) return line;
  const isWithinCharacter = /[\uD800-\uDBFF]/.test(line[MAX_LENGTH - 1] ?? "");
  return `${line.slice(0, isWithinCharacter ? MAX_LENGTH - 1 : MAX_LENGTH)}…`;
}

/** The same without a limit: for names, and for commands to be typed. */
export const visibleWhole = (text: string): string =>
  visible(text).replaceAll("\n", "\u240A").replaceAll("\t", " ");

/** Equivalent JSON on one line without control characters, safe on a terminal. */
export function inertJson(value: unknown): string {
  const line = JSON.stringify(value);
  return PLAIN.test(line) ? line : line.replaceAll(ACTIVE, escaped);
}

const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
    .join("");

function visibleForm(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** May become part of another character with what follows: half of a surrogate pair, of a line end, of an emoji. */
const OPEN_END = /(?:[\uD800-\uDBFF\r]|\uFE0E|\uFE0F|\u200D[\uD800-\uDBFF]?)$/;

export interface VisibleText {
  readonly push: (text: string) => string;
  readonly end: () => string;
}

/** The same for a text whose pieces may end anywhere; what is held back comes with the next piece, or at the end. */
export function visiblePieces(): VisibleText {
  let pending = "";
  let before = "";
  const take = (text: string, last: boolean): string => {
    const whole = pending + text;
    pending = last ? "" : (OPEN_END.exec(whole)?.[0] ?? "");
    const ready = whole.slice(0, whole.length - pending.length);
    const out = visible(ready, before);
    before = (before + ready.slice(-CONTEXT)).slice(-CONTEXT);
    return out;
  };
  return { push: (text) => take(text, false), end: () => take("", true) };
}

/** The same for bytes, whose chunks may end within a character. */
export function visibleStream(): {
  readonly push: (bytes: Uint8Array) => string;
  readonly end: () => string;
} {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const text = visiblePieces();
  return {
    push: (bytes) => text.push(decoder.decode(bytes, { stream: true })),
    end: () => text.push(decoder.decode()) + text.end(),
  };
}

/** Lines as a terminal leaves them: a line overwritten after a carriage return has its last state. */
export function lastStates(text: string): string {
  return text.includes("\r") ? text.split("\n").map(lastState).join("\n") : text;
}

function lastState(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === "\r") end -= 1;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}

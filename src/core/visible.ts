/** Text of a program that nobody trusts, as it may be shown: line ends and tabs work, every other control is shown. */

/** Controls (C0, DEL, C1), directions, joiners, invisible and tag characters. */
const ACTIVE =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E0FFF}]/gu;

/** A long text is taken in pieces: a flood of controls would cost many times its size at once. */
const PIECE = 2 ** 16;

export function visible(text: string): string {
  if (text.length <= PIECE) return visiblePiece(text);
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = text.length - at <= PIECE ? text.length : wholeEnd(text, at + PIECE);
    pieces.push(visiblePiece(text.slice(at, end)));
    at = end;
  }
  return pieces.join("");
}

const visiblePiece = (text: string): string => text.replaceAll("\r\n", "\n").replaceAll(ACTIVE, shown);

/** Neither within a character nor within a line end. */
const wholeEnd = (text: string, end: number): number =>
  /[\r\uD800-\uDBFF]/.test(text[end - 1] ?? "") ? end - 1 : end;

const LONGEST = 400;

/** The same in one line, cut where it is long: a text of others cannot look like a line of ours. */
export function visibleLine(text: string): string {
  const line = visible(text).replaceAll("\n", "\u240A").replaceAll("\t", " ");
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST)}…`;
}

/** One line of JSON that means the same and that a terminal can show: nothing in it is a control. */
export const inertJson = (value: unknown): string => JSON.stringify(value).replaceAll(ACTIVE, escaped);

const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
    .join("");

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** The same for a stream whose chunks may end within a character, or between the two halves of a line end. */
export function visibleStream(): {
  readonly push: (bytes: Uint8Array) => string;
  readonly end: () => string;
} {
  const decoder = new TextDecoder();
  let held = "";
  const take = (text: string): string => {
    const whole = held + text;
    held = whole.endsWith("\r") ? "\r" : "";
    return visible(held === "" ? whole : whole.slice(0, -1));
  };
  return {
    push: (bytes) => take(decoder.decode(bytes, { stream: true })),
    end: () => take(decoder.decode()) + visible(held),
  };
}

/** Lines as a terminal leaves them: of one that was overwritten from its start, what was written last. */
export function lastStates(text: string): string {
  return text.includes("\r") ? text.split("\n").map(lastState).join("\n") : text;
}

function lastState(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === "\r") end -= 1;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}

/** Character codes the grammar names, and what each ASCII character may mean. */
export const TAB = 9;
export const NEWLINE = 10;
export const SPACE = 32;
export const BANG = 33;
export const DOUBLE = 34;
export const HASH = 35;
export const DOLLAR = 36;
export const AMPERSAND = 38;
export const SINGLE = 39;
export const OPEN = 40;
export const CLOSE = 41;
export const STAR = 42;
export const PLUS = 43;
export const COMMA = 44;
export const MINUS = 45;
export const DOT = 46;
export const COLON = 58;
export const SEMICOLON = 59;
export const LESS = 60;
export const EQUALS = 61;
export const GREATER = 62;
export const QUESTION = 63;
export const BRACKET = 91;
export const BACKSLASH = 92;
export const BRACKET_CLOSE = 93;
export const BACKTICK = 96;
export const BRACE = 123;
export const BAR = 124;
export const BRACE_CLOSE = 125;

/** The classes of `CLASS`, as bits. */
const NAME_START = 1;
const DIGIT = 2;
/** Ends a word when unquoted. */
export const BREAK = 4;
/** Quotes, expansions and escapes: a word that holds one is read by pieces. */
export const ACTIVE = 8;
/** Means something only after the word is complete: patterns, braces, tildes. */
export const LATE = 16;

const MEMBERS: readonly (readonly [string, number])[] = [
  ["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", NAME_START],
  ["0123456789", DIGIT],
  [" \t\n;&|<>()", BREAK],
  ["\"'`$\\", ACTIVE],
  ["*?[{~", LATE],
];

/** What each ASCII character may mean; everything above is plain. */
export const CLASS: Readonly<Uint8Array> = classes();

function classes(): Uint8Array {
  const table = new Uint8Array(128);
  for (const [members, bit] of MEMBERS)
    for (let at = 0; at < members.length; at++) {
      const code = members.charCodeAt(at);
      table[code] = (table[code] ?? 0) | bit;
    }
  return table;
}

/** The class bits of a code unit, 0 for what is plain, `BREAK` for the end of the text. */
export function classOf(code: number): number {
  return code < 128 ? (CLASS[code] ?? BREAK) : code > 127 ? 0 : BREAK;
}

export function isName(code: number): boolean {
  return (classOf(code) & (NAME_START | DIGIT)) !== 0;
}

export function isNameStart(code: number): boolean {
  return (classOf(code) & NAME_START) !== 0;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

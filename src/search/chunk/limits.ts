/** Bytes of a file above which it is skipped as huge, so that a reader need not read it. */
export const HUGE = 1 << 20;

/** UTF-16 units that no piece is longer than. A declaration of this size stays whole. */
export const MOST = 2500;

/** What parts are joined up to. About 500 tokens. */
export const TARGET = 1800;

/** A declaration that is smaller is joined with its neighbours. */
export const SMALL = 500;

/** So little that it never stands alone: a closing bracket, an empty statement. */
export const TINY = 40;

/** Levels of the syntax tree that are looked at; what lies deeper is cut by lines. */
export const DEPTH = 64;

/** Nodes of one tree that are looked at; when they are used up, the rest is cut by lines. */
export const VISITS = 50_000;

/** UTF-16 units of a text above which it is cut by lines: the parser's memory grows with the text and stays. */
export const PARSED = 1 << 19;

/**
 * Steps of a parse, in the hundreds that the parser counts by. Code takes 0.01 of them for a character, at most 0.025;
 * what takes more is no code in this language, and is cut by lines. A count, so that a busy machine cuts no other pieces.
 */
export const parseSteps = (length: number): number => 500 + length * 0.06;

/** For a machine that all but stands still: a parse that takes longer is given up whatever its count. */
export const PARSE_MS = 10_000;

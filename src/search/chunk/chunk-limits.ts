/** Bytes of a file above which it is skipped as huge, so that a reader need not read it. */
export const HUGE = 1 << 20;

/** UTF-16 units that no piece is longer than. A declaration of this size stays whole. */
export const MAX_COUNT = 2500;

/** What parts are joined up to. About 500 tokens. */
export const TARGET = 1800;

/** A declaration that is smaller is joined with its neighbours. */
export const SMALL = 500;

/** Too small for a chunk of its own: a closing bracket, an empty statement. */
export const TINY = 40;

/** Levels of the syntax tree that are looked at; what lies deeper is cut by lines. */
export const DEPTH = 64;

/** Nodes of one tree that are looked at; when they are used up, the rest is cut by lines. */
export const VISITS = 50_000;

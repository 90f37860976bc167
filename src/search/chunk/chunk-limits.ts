/** A file with more bytes than this is skipped as huge; readers need not read it. */
export const HUGE = 1 << 20;

/** Maximum length of a piece in UTF-16 units. A declaration of up to this length stays whole. */
export const MAX_COUNT = 2500;

/** Parts are joined up to this length, about 500 tokens. */
export const TARGET = 1800;

/** A shorter declaration is joined with its neighbours. */
export const SMALL = 500;

/** A shorter part gets no chunk of its own: a closing bracket, an empty statement. */
export const TINY = 40;

/** Levels of the syntax tree that are visited; deeper code is cut by lines. */
export const DEPTH = 64;

/** Nodes of one syntax tree that are visited; the rest of the file is cut by lines. */
export const VISITS = 50_000;

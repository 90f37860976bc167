/** Types that the parts of search share. */

/**
 * The role of a file, by its path and content. Tests, examples and vendored code are found too, but rank behind source.
 */
export type Role = "source" | "test" | "example" | "docs" | "vendored" | "config";

export type ChunkKind = "function" | "class" | "method" | "type" | "imports" | "code" | "section" | "text";

/** Whether the user trusts the text of this repository. */
export type Trust = "trusted" | "untrusted";

/** A piece of a file. The pieces of a file are consecutive and cover all of it. */
export interface Piece {
  /** First line, from 1. */
  readonly start: number;
  /** Last line, inclusive. */
  readonly end: number;
  readonly kind: ChunkKind;
  /** The qualified name: `Store.close`; for a section its titles: `Install > Linux`. */
  readonly symbol: string | null;
  readonly text: string;
}

/** A piece as a store holds it. */
export interface Chunk extends Piece {
  /** A UUID that depends only on index, path, position and text. */
  readonly id: string;
  /** Relative to the workspace. */
  readonly path: string;
  readonly language: string;
  readonly role: Role;
  /** SHA-256 of the text, in hex. */
  readonly hash: string;
  readonly trust: Trust;
}

/** A file with more bytes than this is skipped as huge; readers need not read it. */
export const HUGE = 1 << 20;

/** Why a file has no chunks. */
export type Skip = "binary" | "minified" | "generated" | "lock" | "huge" | "secret" | "unreadable";

export type CutFile =
  | { readonly kind: "cut"; readonly language: string; readonly pieces: readonly Piece[] }
  | { readonly kind: "skipped"; readonly why: Skip };

/** Formats 32 hexadecimal digits as a UUID. */
export const uuidText = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");

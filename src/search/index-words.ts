/** What the parts of search say to each other. */

/** Of a file, by its path and its content. Tests, examples and vendored code are found too, behind the source. */
export type Role = "source" | "test" | "example" | "docs" | "vendored" | "config";

export type ChunkKind = "function" | "class" | "method" | "type" | "imports" | "code" | "section" | "text";

/** Whether the user has said that this repository's text may be believed. */
export type Trust = "trusted" | "untrusted";

/** A piece of a file. The pieces of one file follow each other and cover all of it. */
export interface Piece {
  /** First line, from 1. */
  readonly start: number;
  /** Last line, that one too. */
  readonly end: number;
  readonly kind: ChunkKind;
  /** With the names around it: `Store.close`; the titles of a section: `Install > Linux`. */
  readonly symbol: string | null;
  readonly text: string;
}

/** A piece as a store holds it. */
export interface Chunk extends Piece {
  /** A UUID; the same whenever index, path, place and text are. */
  readonly id: string;
  /** Below the workspace. */
  readonly path: string;
  readonly language: string;
  readonly role: Role;
  /** SHA-256 of the text, in hex. */
  readonly hash: string;
  readonly trust: Trust;
}

/** Why a file has no chunks. */
export type Skip = "binary" | "minified" | "generated" | "lock" | "huge" | "secret" | "unreadable";

export type CutFile =
  | { readonly kind: "cut"; readonly language: string; readonly pieces: readonly Piece[] }
  | { readonly kind: "skipped"; readonly why: Skip };

/** A UUID as it is written, of its 32 hexadecimal digits. */
export const uuidText = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");

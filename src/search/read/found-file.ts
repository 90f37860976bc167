import type { Skip } from "../index-words.ts";

/** Identifies an unchanged file without reading it. As doubles: host and box compute the same values. */
export interface Stamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** A file found below the workspace. */
export interface Found {
  readonly path: string;
  /** `closed`: a folder that may not be read. */
  readonly kind: "file" | "folder" | "closed" | "link" | "odd";
  readonly stamp: Stamp;
}

export const isSameStamp = (a: Stamp, b: Stamp): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;

/** The kernel's clock for files is coarse; on file systems with whole seconds it is coarser. */
const COARSE_MS = 100;
const COARSER_MS = 2100;

/** Whether any change after the stamp was taken would give the file another stamp. */
export const isSettled = ({ ctimeMs }: Stamp, lookedAt: number): boolean =>
  ctimeMs > 0 && ctimeMs < lookedAt - (ctimeMs % 1000 === 0 ? COARSER_MS : COARSE_MS);

/** An ignore file of the workspace. */
export interface RuleFile {
  readonly path: string;
  readonly stamp: Stamp;
  readonly text: string;
}

/** Ignore rules. The time of a test is bounded by the length of the lists. */
export interface IgnoredPaths {
  leavesOut(path: string, isFolder: boolean): boolean;
  /** Adds the list of a folder further down. */
  below(list: { readonly folder: string; readonly text: string; readonly strict: boolean }): IgnoredPaths;
}

/** The path rules of the policy, injected by the composition. */
export interface PathRules {
  /** Rules without any list. */
  readonly ignored: IgnoredPaths;
  /** Characters of a list that are obeyed; the rest of a longer list is not needed. */
  readonly mostOfList: number;
  /** Whether a file of this name often holds a password or a key. */
  readonly secret: (path: string) => boolean;
  /** Whether host programs obey the content of a folder with this name. */
  readonly guarded: (name: string, atTop: boolean) => boolean;
}

/** Files that may be read, and files left out, each with its reason. */
export interface Listing {
  readonly files: ReadonlyMap<string, Stamp>;
  readonly skipped: ReadonlyMap<string, { readonly stamp: Stamp; readonly why: Skip }>;
  readonly rules: readonly RuleFile[];
  /** Files whose names are not valid text; they have no path that could be shown or requested. */
  readonly nameless: number;
  /** Folders that may not be read, apart from those left out. */
  readonly closed: number;
  /** When the listing was made, in milliseconds since 1970. */
  readonly at: number;
}

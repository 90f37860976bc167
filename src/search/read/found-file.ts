import type { Skip } from "../index-words.ts";

/** By what a file is known again without being read. As doubles: host and box count alike. */
export interface Stamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** A file found below the workspace. */
export interface Found {
  readonly path: string;
  /** `closed`: a folder that may not be looked into. */
  readonly kind: "file" | "folder" | "closed" | "link" | "odd";
  readonly stamp: Stamp;
}

export const isSameStamp = (a: Stamp, b: Stamp): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;

/** The kernel's clock for files is coarse; a file system that counts whole seconds is coarser. */
const COARSE_MS = 100;
const COARSER_MS = 2100;

/** Whether nothing could have changed the file since it was looked at without another stamp. */
export const isSettled = ({ ctimeMs }: Stamp, lookedAt: number): boolean =>
  ctimeMs > 0 && ctimeMs < lookedAt - (ctimeMs % 1000 === 0 ? COARSER_MS : COARSE_MS);

/** An ignore file of the workspace. */
export interface RuleFile {
  readonly path: string;
  readonly stamp: Stamp;
  readonly text: string;
}

/** Whether lists of ignore rules leave a path out. The time of a test is bounded by the length of the lists. */
export interface IgnoredPaths {
  leavesOut(path: string, isFolder: boolean): boolean;
  /** With one list more, of a folder further down. */
  below(list: { readonly folder: string; readonly text: string; readonly strict: boolean }): IgnoredPaths;
}

/** The path rules of the policy, injected by the composition. */
export interface PathRules {
  /** Where no list is yet. */
  readonly ignored: IgnoredPaths;
  /** Characters of a list that are obeyed; of a longer one the rest is not needed. */
  readonly mostOfList: number;
  /** Whether a file of this name often holds a password or a key. */
  readonly secret: (path: string) => boolean;
  /** Whether a folder of this name is one that host programs obey. */
  readonly guarded: (name: string, atTop: boolean) => boolean;
}

/** Files that may be read, and files left out, each with its reason. */
export interface Listing {
  readonly files: ReadonlyMap<string, Stamp>;
  readonly skipped: ReadonlyMap<string, { readonly stamp: Stamp; readonly why: Skip }>;
  readonly rules: readonly RuleFile[];
  /** Files whose name is no text; they have no path that could be shown or asked for. */
  readonly nameless: number;
  /** Folders that may not be looked into, and are not left out. */
  readonly closed: number;
  /** When it was made, in milliseconds since 1970. */
  readonly at: number;
}

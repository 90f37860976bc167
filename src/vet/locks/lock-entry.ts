/** One package that a lock or manifest fixes, whatever its form. */
export interface LockEntry {
  readonly ecosystem: Ecosystem;
  /** The name under which it is imported. */
  readonly name: string;
  /** The package's own name, if it is fetched under another name on purpose. */
  readonly real?: string;
  readonly version: string;
  /** Address as it is written; empty where the lock names none. */
  readonly resolved: string;
  readonly integrity: string;
  /** The lock says that the package runs code when it is installed. */
  readonly runs?: true;
  /** The path of the lock or manifest. */
  readonly from: string;
  readonly line?: number;
}

/**
 * Stands before the sum of a Go module's `go.mod`, which is the only sum where nothing else of the module is fetched.
 */
export const OF_GO_MOD = "go.mod:";

/** Name and version, as people write them. */
export const entryText = ({ name, version }: Pick<LockEntry, "name" | "version">): string =>
  version === "" ? name : `${name} ${version}`;

export type Ecosystem = "npm" | "pip" | "cargo" | "composer" | "gem" | "go" | "maven";

/** Most entries of one lock; any more are not compared. */
export const MAX_ENTRIES = 50_000;
/** Most characters of one lock. */
export const MAX_LOCK = 16 * 2 ** 20;

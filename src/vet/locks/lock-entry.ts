/** One package that a lock or manifest fixes, whatever its form. */
export interface LockEntry {
  readonly ecosystem: Ecosystem;
  /** As it is imported. */
  readonly name: string;
  /** Of what it really is, where it is fetched under another name on purpose. */
  readonly real?: string;
  readonly version: string;
  /** Address, as it is written; empty where the lock names none. */
  readonly resolved: string;
  readonly integrity: string;
  /** The lock says that code of it runs when it is installed. */
  readonly runs?: true;
  /** The file that says so. */
  readonly from: string;
  readonly line?: number;
}

/** Before the sum of a Go module's `go.mod`, which stands alone where nothing else of the module is fetched. */
export const OF_GO_MOD = "go.mod:";

/** Name and version, as people write them. */
export const entryText = ({ name, version }: Pick<LockEntry, "name" | "version">): string =>
  version === "" ? name : `${name} ${version}`;

export type Ecosystem = "npm" | "pip" | "cargo" | "composer" | "gem" | "go" | "maven";

/** Entries of one lock; what is beyond is not compared. */
export const MAX_ENTRIES = 50_000;
/** Characters of one lock. */
export const MAX_LOCK = 16 * 2 ** 20;

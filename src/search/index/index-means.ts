import type { Trust } from "../index-words.ts";
import type { PathRules } from "../read/found-file.ts";
import type { SearchStore, ServerStore, StoreIdentity } from "../search-store.ts";

/** What all indexes of one user share; injected by the composition. */
export interface IndexOptions {
  readonly rules: PathRules;
  readonly trust: Trust;
  /** The program for the threads that cut files. */
  readonly thread: URL;
  readonly openStore: (opening: StoreOpening) => Promise<SearchStore>;
  /** The store that the user asked for by name: no other may answer in its place. */
  readonly named: SearchStore["name"] | null;
  /**
   * Opens a server that may still hold parts of an index that now lies elsewhere; null if there is none, or none may be
   * asked.
   */
  readonly openServer: (identity: StoreIdentity, signal: AbortSignal) => Promise<ServerStore | null>;
  /** Reports something to the user. */
  readonly warn: (text: string) => void;
}

export interface StoreOpening {
  /** The folder for a store that needs one. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** The store that has held the index until now. */
  readonly earlier: SearchStore["name"] | null;
  /** No store but `earlier` will do. */
  readonly only: boolean;
  /** `read`: nothing is changed, and opening fails if there is no readable store. */
  readonly access: "read" | "write";
  readonly signal: AbortSignal;
}

export type Stamps = "stamps" | "times";

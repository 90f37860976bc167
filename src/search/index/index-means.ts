import type { Trust } from "../index-words.ts";
import type { PathRules } from "../read/found-file.ts";
import type { SearchStore, ServerStore, StoreIdentity } from "../search-store.ts";

/** What all indexes of one user share; injected by the composition. */
export interface IndexOptions {
  readonly rules: PathRules;
  readonly trust: Trust;
  /** The program of a thread that cuts files. */
  readonly thread: URL;
  readonly openStore: (opening: StoreOpening) => Promise<SearchStore>;
  /** The store that was asked for by name: no other answers in its place. */
  readonly named: SearchStore["name"] | null;
  /**
   * A server that may still hold something of an index that is kept elsewhere by now; null where there is none, or none
   * that is to be asked.
   */
  readonly openServer: (identity: StoreIdentity, signal: AbortSignal) => Promise<ServerStore | null>;
  /** What a person should know. */
  readonly warn: (text: string) => void;
}

export interface StoreOpening {
  /** Of a store that needs one. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** What the index has been in until now. */
  readonly earlier: SearchStore["name"] | null;
  /** That one or none. */
  readonly only: boolean;
  /** `read`: nothing of it is changed, and where there is none that could be read it fails. */
  readonly access: "read" | "write";
  readonly signal: AbortSignal;
}

export type Stamps = "stamps" | "times";

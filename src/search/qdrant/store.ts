import { Tokenizer } from "../rank/tokens.ts";
import type { SearchStore, StoreIdentity } from "../store.ts";
import { PATIENCE, type Patience, QdrantApi, type QdrantServer } from "./api.ts";
import { clearIndex, tidyIndex } from "./clear.ts";
import { Collections } from "./collections.ts";
import { heldFiles } from "./held.ts";
import { SHELVES } from "./names.ts";
import { candidatesFor } from "./query.ts";
import { countAll, countFiles, unembeddedChunks } from "./read.ts";
import type { Seat } from "./seat.ts";
import { embedChunks } from "./vectors.ts";
import { checkedVersion } from "./version.ts";
import { putFiles, removeFiles } from "./write.ts";

export interface QdrantOptions {
  readonly signal?: AbortSignal;
  readonly patience?: Patience;
  /** The time, in milliseconds since 1970. */
  readonly now?: () => number;
  /** `write`: indexes of fields that somebody took away are made again. */
  readonly access?: "read" | "write";
}

/**
 * Rejects where there is no server, where it is too old, and where a collection of ours is not as it must be. No
 * collection is made before something is put. Closing leaves connections to the client, which lets them go when they are idle.
 */
export async function openQdrantStore(
  server: QdrantServer,
  identity: StoreIdentity,
  options: QdrantOptions = {},
): Promise<SearchStore> {
  const { signal = new AbortController().signal, patience = PATIENCE, now = Date.now, access } = options;
  const api = new QdrantApi(server, patience);
  const collections = new Collections(api, identity);
  // Side by side; that it is no Qdrant, or another one, is said before anything that such a one makes of the rest.
  const asked = SHELVES.map((shelf) => collections.look(shelf, signal));
  for (const each of asked) each.catch(() => undefined);
  const version = await checkedVersion(api, signal);
  const found = await Promise.all(asked);
  if (access === "write")
    for (const [at, shelf] of SHELVES.entries()) await collections.mend(shelf, found[at] ?? null, signal);
  return storeOn({ api, collections, identity, version, tokenizer: new Tokenizer(), now });
}

function storeOn(seat: Seat): SearchStore {
  return {
    name: "qdrant",
    put: (files, signal) => unless(signal, () => putFiles(seat, files, signal)),
    remove: (paths, signal) => unless(signal, () => removeFiles(seat, paths, signal)),
    // Each change waits until the server has it in its own journal.
    flush: (signal) => unless(signal, () => Promise.resolve()),
    held: (signal) => unless(signal, () => heldFiles(seat, signal)),
    unembedded: (limit, signal) => unless(signal, () => unembeddedChunks(seat, limit, signal)),
    embed: (vectors, signal) => unless(signal, () => embedChunks(seat, vectors, signal)),
    candidates: (query, limit, signal) => unless(signal, () => candidatesFor(seat, query, limit, signal)),
    counts: (signal) => unless(signal, () => countAll(seat, signal)),
    fileCount: (signal) => unless(signal, () => countFiles(seat, signal)),
    clear: (signal) => unless(signal, () => clearIndex(seat, signal)),
    tidy: (signal) => unless(signal, () => tidyIndex(seat, signal)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** What was given up before it began is told so, though nothing had to be asked. */
async function unless<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return act();
}

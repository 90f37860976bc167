import { HarnessError, reasonOf } from "../core/errors.ts";
import { openEmbeddedStore, readEmbeddedStore } from "./embedded/open-embedded.ts";
import type { QdrantServer } from "./qdrant/qdrant-nodes.ts";
import { unencrypted } from "./qdrant/plain-address.ts";
import type { SearchStore, ServerStore, StoreIdentity } from "./search-store.ts";

export interface StoreChoice {
  readonly store: "auto" | "qdrant" | "embedded";
  readonly server: QdrantServer;
  /** Of the embedded store, and of the words of what is in a server. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** What the index has been in until now; null where there is none yet. */
  readonly earlier: SearchStore["name"] | null;
  /** `read`: nothing of it is changed. A Qdrant is asked the same things either way. */
  readonly access: "read" | "write";
  /** Takes one line for a person. */
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** How long a Qdrant that was not asked for by name may take to answer. */
const QUICK_MS = 2000;
/** Of a cluster each node has its turn: they share the time of a request. */
const CLUSTER_MS = 15_000;

const quickly = ({ nodes = [] }: QdrantServer): AbortSignal =>
  AbortSignal.timeout(nodes.length === 0 ? QUICK_MS : CLUSTER_MS);

/**
 * The store that was asked for, or fails. With `auto` it is the one that the index is in already; for a new index, and
 * where that one is gone, Qdrant if it answers quickly and is usable, else the embedded one, which needs nothing.
 * The choice is its `name`; pass it as `earlier` the next time.
 */
export async function openStoreFor(choice: StoreChoice): Promise<SearchStore> {
  const { store, earlier, signal } = choice;
  signal.throwIfAborted();
  if (store === "qdrant") return ranked(choice, signal);
  if (store === "embedded" || earlier === "embedded") return embedded(choice);
  const quick = AbortSignal.any([signal, quickly(choice.server)]);
  try {
    return await ranked(choice, quick);
  } catch (thrown) {
    signal.throwIfAborted();
    const why = quick.aborted ? `Qdrant at ${choice.server.url} did not answer in time` : reasonOf(thrown);
    if (earlier === "qdrant")
      choice.warn(
        `the index is in a Qdrant that cannot be used: ${why}; it is made again in the embedded store`,
      );
    else if (!isNobody(thrown)) choice.warn(`${why}; the embedded store serves instead`);
    return embedded(choice);
  }
}

type ServerChoice = Pick<StoreChoice, "server" | "identity" | "warn" | "signal"> & {
  readonly store: "auto" | "qdrant";
};

/** Null when no Qdrant was asked for by name and none is usable. */
export async function openServerOf({ store, ...choice }: ServerChoice): Promise<ServerStore | null> {
  const quick = AbortSignal.any([choice.signal, quickly(choice.server)]);
  try {
    return await qdrant({ ...choice, access: "write" }, store === "qdrant" ? choice.signal : quick);
  } catch (thrown) {
    choice.signal.throwIfAborted();
    if (store === "auto") return null;
    throw thrown;
  }
}

/** No server listens there; with `auto` that is not worth a warning. */
const isNobody = (thrown: unknown): boolean =>
  thrown instanceof HarnessError && "trouble" in thrown && thrown.trouble === "unreachable";

type Server = Pick<StoreChoice, "server" | "identity" | "access" | "warn">;

async function ranked(choice: StoreChoice, signal: AbortSignal): Promise<SearchStore> {
  const { folder, identity, access } = choice;
  const [server, { HostRanked }] = await Promise.all([qdrant(choice, signal), import("./host-ranked.ts")]);
  return HostRanked.open(server, { folder, identity, access });
}

async function qdrant(choice: Server, signal: AbortSignal): Promise<ServerStore> {
  const { openQdrantStore } = await import("./qdrant/qdrant-store.ts");
  const { server, identity, access } = choice;
  for (const url of [server.url, ...(server.nodes ?? [])]) {
    const bare = unencrypted(url, server.apiKey);
    if (bare !== null) choice.warn(bare);
  }
  return await openQdrantStore(server, identity, { signal, access });
}

async function embedded({ folder, identity, access }: StoreChoice): Promise<SearchStore> {
  return (access === "read" ? readEmbeddedStore : openEmbeddedStore)(folder, identity);
}

import { HarnessError, reasonOf } from "../core/errors.ts";
import { openEmbeddedStore, readEmbeddedStore } from "./embedded/open-embedded.ts";
import type { QdrantServer } from "./qdrant/qdrant-nodes.ts";
import { unencrypted } from "./qdrant/plain-address.ts";
import type { SearchStore, ServerStore, StoreIdentity } from "./search-store.ts";

export interface StoreChoice {
  readonly store: "auto" | "qdrant" | "embedded";
  readonly server: QdrantServer;
  /** Folder of the embedded store, or of the word counts beside a server. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** The store that has held the index until now; null if there is no index yet. */
  readonly earlier: SearchStore["name"] | null;
  /** `read`: nothing is changed. A Qdrant gets the same requests either way. */
  readonly access: "read" | "write";
  /** Takes one line for a person. */
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** How long a Qdrant that was not asked for by name may take to answer. */
const QUICK_MS = 2000;
/**
 * For a cluster, whose nodes are tried in turn and share the time; and for the server that holds the index, which may
 * be busy: to wait for it costs less than to make the index again.
 */
const PATIENT_MS = 15_000;

const openingTimeout = ({ nodes = [] }: QdrantServer, holdsIndex: boolean): AbortSignal =>
  AbortSignal.timeout(nodes.length === 0 && !holdsIndex ? QUICK_MS : PATIENT_MS);

/**
 * Opens the store that was asked for, or fails. `auto` takes the store that already holds the index. For a new index,
 * or if that store is gone, it takes Qdrant if it answers quickly and is usable, else the embedded store, which needs
 * nothing. The choice is the `name` of the store; pass it as `earlier` the next time.
 */
export async function openStoreFor(choice: StoreChoice): Promise<SearchStore> {
  const { store, earlier, signal } = choice;
  signal.throwIfAborted();
  if (store === "qdrant") return openRankedQdrant(choice, signal);
  if (store === "embedded" || earlier === "embedded") return openEmbedded(choice);
  await qdrantModules();
  const bounded = AbortSignal.any([signal, openingTimeout(choice.server, earlier === "qdrant")]);
  try {
    return await openRankedQdrant(choice, bounded);
  } catch (thrown) {
    signal.throwIfAborted();
    const why = bounded.aborted ? `Qdrant at ${choice.server.url} did not answer in time` : reasonOf(thrown);
    if (earlier === "qdrant")
      choice.warn(
        `the Qdrant that holds the index cannot be used: ${why}; rebuilding the index in the embedded store`,
      );
    else if (!isUnreachable(thrown)) choice.warn(`${why}; using the embedded store instead`);
    return openEmbedded(choice);
  }
}

type ServerChoice = Pick<StoreChoice, "server" | "identity" | "warn" | "signal"> & {
  readonly store: "auto" | "qdrant";
};

/** Null when no Qdrant was asked for by name and none is usable. */
export async function openServerOf({ store, ...choice }: ServerChoice): Promise<ServerStore | null> {
  await qdrantModules();
  const bounded = AbortSignal.any([choice.signal, openingTimeout(choice.server, false)]);
  try {
    return await openQdrant({ ...choice, access: "write" }, store === "qdrant" ? choice.signal : bounded);
  } catch (thrown) {
    choice.signal.throwIfAborted();
    if (store === "auto") return null;
    throw thrown;
  }
}

/** No server listens there; with `auto` that needs no warning. */
const isUnreachable = (thrown: unknown): boolean =>
  thrown instanceof HarnessError && "trouble" in thrown && thrown.trouble === "unreachable";

type Server = Pick<StoreChoice, "server" | "identity" | "access" | "warn">;

/** Loaded before the server's time begins: on a busy machine that takes a good part of it. */
const qdrantModules = async () =>
  Promise.all([import("./qdrant/qdrant-store.ts"), import("./host-ranked.ts")]);

async function openRankedQdrant(choice: StoreChoice, signal: AbortSignal): Promise<SearchStore> {
  const { folder, identity, access } = choice;
  const server = await openQdrant(choice, signal);
  const [, { HostRanked }] = await qdrantModules();
  return HostRanked.open(server, { folder, identity, access });
}

async function openQdrant(choice: Server, signal: AbortSignal): Promise<ServerStore> {
  const [{ openQdrantStore }] = await qdrantModules();
  const { server, identity, access } = choice;
  for (const url of [server.url, ...(server.nodes ?? [])]) {
    const bare = unencrypted(url, server.apiKey);
    if (bare !== null) choice.warn(bare);
  }
  return await openQdrantStore(server, identity, { signal, access });
}

async function openEmbedded({ folder, identity, access }: StoreChoice): Promise<SearchStore> {
  return (access === "read" ? readEmbeddedStore : openEmbeddedStore)(folder, identity);
}

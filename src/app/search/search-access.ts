import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Settings } from "../../config/settings-schema.ts";
import { foldPath, protectedName } from "../../core/file-names.ts";
import { MAX_RULES_LENGTH, NestedIgnore } from "../../policy/paths/ignore-rules.ts";
import { secretAt } from "../../policy/paths/path-place.ts";
import {
  openEmbeddedStore,
  openServerOf,
  openStoreFor,
  readEmbeddedStore,
} from "../../search/stores/open-store.ts";
import type { IndexOptions } from "../../search/open-index.ts";
import type { Pruned } from "../../search/prune-indexes.ts";
import type { QdrantServer } from "../../search/stores/qdrant-api.ts";
import type { PathRules } from "../../search/files/box-files.ts";
import { type Host, packageRoot } from "../host.ts";

/** Constructs the code search. */

export const indexRoot = ({ places }: Host): string => path.join(places.state, "search");

export const PATH_RULES: PathRules = {
  ignored: NestedIgnore.none(),
  mostOfList: MAX_RULES_LENGTH,
  secret: (file) => secretAt(`/${foldPath(file)}`) !== null,
  guarded: (name, atTop) => protectedName(name, atTop) !== undefined,
};

/** The server that the settings name, with the key from the environment. */
export const qdrantOf = (
  env: Host["env"],
  { url, nodes, shard_number, replication_factor, write_consistency_factor }: Settings["search"],
): QdrantServer => ({
  url,
  nodes,
  shape: { shard_number, replication_factor, write_consistency_factor },
  apiKey: env["QDRANT_API_KEY"],
});

export const indexAccess = (
  { env }: Host,
  { search }: Settings,
  warn: (text: string) => void,
): IndexOptions => ({
  rules: PATH_RULES,
  // Until a person can declare a repository's text trustworthy.
  trust: "untrusted",
  thread: threadProgram(),
  openStore: async ({ earlier, only, ...opening }) => {
    const store = only && earlier !== null ? earlier : search.store;
    return openStoreFor({ ...opening, earlier, store, server: qdrantOf(env, search), warn });
  },
  named: search.store === "auto" ? null : search.store,
  openServer: async (identity, signal) => {
    if (search.store === "embedded") return null;
    return await openServerOf({ store: search.store, server: qdrantOf(env, search), identity, warn, signal });
  },
  warn,
});

/** For an index that is thrown away with its folder. */
export const embeddedOnly = (given: IndexOptions): IndexOptions => ({
  ...given,
  named: null,
  openServer: () => Promise.resolve(null),
  openStore: async ({ folder, identity, access }) => {
    return (access === "read" ? readEmbeddedStore : openEmbeddedStore)(folder, identity);
  },
});

/** The worker is a file of its own in the bundle; from sources, Node runs the source file. */
function threadProgram(): URL {
  const bundled = path.join(packageRoot, "dist/cut-worker.cjs");
  const source = path.join(packageRoot, "src/search/files/cut-worker.ts");
  return pathToFileURL(import.meta.url.endsWith(".ts") && existsSync(source) ? source : bundled);
}

/** Removes indexes that nothing needs, and frees their space. */
export async function pruneIndexes(
  host: Host,
  settings: Settings,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<Pruned> {
  const { prune } = await import("../../search/prune-indexes.ts");
  return prune(indexRoot(host), indexAccess(host, settings, note), signal);
}

import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Settings } from "../../config/settings-schema.ts";
import { foldPath, protectedName } from "../../core/protected-names.ts";
import { MAX_RULES_LENGTH, NestedIgnore } from "../../policy/paths/ignore-rules.ts";
import { secretAt } from "../../policy/paths/secret-paths.ts";
import { openEmbeddedStore, readEmbeddedStore } from "../../search/embedded/open-embedded.ts";
import type { IndexOptions } from "../../search/index/index-means.ts";
import type { Pruned } from "../../search/index/prune-indexes.ts";
import { openServerOf, openStoreFor } from "../../search/open-store.ts";
import type { QdrantServer } from "../../search/qdrant/qdrant-nodes.ts";
import type { PathRules } from "../../search/read/found-file.ts";
import { type Host, packageRoot } from "../host.ts";

/** Constructs what finds code. */

export const indexRoot = ({ places }: Host): string => path.join(places.state, "search");

export const PATH_RULES: PathRules = {
  ignored: NestedIgnore.none(),
  mostOfList: MAX_RULES_LENGTH,
  secret: (file) => secretAt(`/${foldPath(file)}`) !== null,
  guarded: (name, atTop) => protectedName(name, atTop) !== undefined,
};

/** As the settings name it, with the key of the environment. */
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
  // Until a person can say that a repository's text may be believed.
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

/** Bundled, it is a file of its own; from sources Node runs it as it is. */
function threadProgram(): URL {
  const bundled = path.join(packageRoot, "dist/cut-worker.cjs");
  const source = path.join(packageRoot, "src/search/index/cut-worker.ts");
  return pathToFileURL(import.meta.url.endsWith(".ts") && existsSync(source) ? source : bundled);
}

/** Removes indexes that nothing needs, and gives space back. */
export async function pruneIndexes(
  host: Host,
  settings: Settings,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<Pruned> {
  const { prune } = await import("../../search/index/prune-indexes.ts");
  return prune(indexRoot(host), indexAccess(host, settings, note), signal);
}

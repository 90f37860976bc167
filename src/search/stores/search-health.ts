import { warningHealth, HarnessError, type Health, healthy, reasonOf } from "../../core/errors.ts";
import type { QdrantServer } from "./qdrant-api.ts";
import { waitingTimeout } from "../../platform/waits.ts";

export interface StoreWanted extends QdrantServer {
  readonly store: "auto" | "qdrant" | "embedded";
}

/** Limit for the whole check: somebody is waiting. */
const QUICK_MS = 2000;

/** Which store would serve a search. A missing Qdrant is an ailment only if it was asked for by name. */
export async function storeHealth({ store, ...server }: StoreWanted): Promise<Health> {
  if (store === "embedded") return healthy("store", "embedded index");
  const { url, apiKey, nodes = [] } = server;
  if (nodes.length > 0) return clusterHealth(store, server);
  return oneHealth({ store, url, apiKey });
}

/** Asks each node separately: one working node is enough; the others are named. */
async function clusterHealth(store: StoreWanted["store"], server: QdrantServer): Promise<Health> {
  const { url, apiKey, nodes = [] } = server;
  const { shapeOf } = await import("./qdrant-api.ts");
  try {
    shapeOf(server);
  } catch (thrown) {
    return warningHealth("store", reasonOf(thrown), thrown instanceof HarnessError ? thrown.remedy : "");
  }
  const urls = [...new Set([url, ...nodes])];
  const found = await Promise.all(urls.map((each) => oneHealth({ store: "qdrant", url: each, apiKey })));
  const ill = found.filter(({ state }) => state !== "ok");
  const [first, one] = [ill[0], found.find(({ state }) => state === "ok")];
  const why = ill.map(({ detail }) => detail).join("; ");
  if (first === undefined)
    return healthy("store", `${urls.length} nodes: ${found.map(({ detail }) => detail).join(", ")}`);
  if (one !== undefined)
    return warningHealth(
      "store",
      `${one.detail}; ${ill.length} of ${urls.length} nodes have problems: ${why}`,
      first.remedy,
    );
  if (store === "auto") return healthy("store", `embedded index (no Qdrant node can be used: ${why})`);
  return warningHealth("store", `no Qdrant node can be used: ${why}`, first.remedy);
}

async function oneHealth({ store, url, apiKey }: StoreWanted): Promise<Health> {
  const [{ versionFor }, { unencrypted }] = await Promise.all([
    import("./qdrant-api.ts"),
    import("./open-store.ts"),
  ]);
  const signal = waitingTimeout(QUICK_MS);
  try {
    const version = await versionFor({ url, apiKey }, signal);
    const bare = unencrypted(url, apiKey);
    const found = `Qdrant ${version} at ${url}`;
    return bare === null
      ? healthy("store", found)
      : warningHealth("store", `${found}: ${bare}`, "harness config set search.url https://HOST:PORT");
  } catch (thrown) {
    const why = signal.aborted
      ? `Qdrant at ${url} took longer than ${QUICK_MS / 1000} s to report its version`
      : reasonOf(thrown);
    if (store === "auto")
      return healthy("store", `embedded index (${unreachableMessage(thrown, url) ?? why})`);
    const remedy =
      thrown instanceof HarnessError
        ? thrown.remedy
        : "./start.sh   (or: harness config set search.store auto)";
    return warningHealth("store", why, remedy);
  }
}

/** The message if no server listens there; nothing else is wrong then. */
const unreachableMessage = (thrown: unknown, url: string): string | undefined =>
  thrown instanceof HarnessError && "trouble" in thrown && thrown.trouble === "unreachable"
    ? `no Qdrant at ${url}`
    : undefined;

import { reasonOf } from "../core/errors.ts";
import { ailing, type Health, healthy } from "../core/health.ts";

/** Which store would serve a search. A Qdrant that is missing is an ailment only where it was asked for by name. */
export async function storeHealth(store: "auto" | "qdrant" | "embedded", url: string): Promise<Health> {
  if (store === "embedded") return healthy("store", "embedded index");
  const found = await askQdrant(url);
  if ("version" in found) return healthy("store", `Qdrant ${found.version} at ${url}`);
  if (store === "auto") return healthy("store", `embedded index (no Qdrant at ${url})`);
  return ailing(
    "store",
    `no Qdrant at ${url}: ${found.reason}`,
    "./start.sh   (or: harness config set search.store auto)",
  );
}

async function askQdrant(url: string): Promise<{ readonly version: string } | { readonly reason: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000), redirect: "error" });
    const body = (await response.json()) as { title?: unknown; version?: unknown } | null;
    if (typeof body?.title === "string" && /qdrant/i.test(body.title))
      return { version: String(body.version) };
    return { reason: "something else answers there" };
  } catch (thrown) {
    return { reason: reasonOf(thrown) };
  }
}

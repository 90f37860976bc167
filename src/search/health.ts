import { reasonOf } from "../core/errors.ts";
import { ailing, type Health, healthy } from "../core/health.ts";
import { visibleLine } from "../core/visible.ts";
import { unfitVersion } from "./qdrant/version.ts";

/** Which store would serve a search. A Qdrant that is missing is an ailment only where it was asked for by name. */
export async function storeHealth(store: "auto" | "qdrant" | "embedded", url: string): Promise<Health> {
  if (store === "embedded") return healthy("store", "embedded index");
  const found = await askQdrant(url);
  const remedy = "./start.sh   (or: harness config set search.store auto)";
  if ("version" in found) {
    const unfit = unfitVersion(found.version);
    if (unfit === null) return healthy("store", `Qdrant ${found.version} at ${url}`);
    const why = `Qdrant ${found.version} at ${url} ${unfit}`;
    return store === "auto" ? healthy("store", `embedded index (${why})`) : ailing("store", why, remedy);
  }
  if (store === "auto") return healthy("store", `embedded index (no Qdrant at ${url})`);
  return ailing("store", `no Qdrant at ${url}: ${found.reason}`, remedy);
}

async function askQdrant(url: string): Promise<{ readonly version: string } | { readonly reason: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000), redirect: "error" });
    const body = (await response.json()) as { title?: unknown; version?: unknown } | null;
    if (typeof body?.title === "string" && /qdrant/i.test(body.title))
      return { version: visibleLine(String(body.version)) };
    return { reason: "something else answers there" };
  } catch (thrown) {
    return { reason: reasonOf(thrown) };
  }
}

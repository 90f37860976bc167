import { HarnessError, reasonOf } from "../core/errors.ts";
import { ailing, type Health, healthy } from "../core/health.ts";

export interface StoreWanted {
  readonly store: "auto" | "qdrant" | "embedded";
  /** Of Qdrant. */
  readonly url: string;
  /** From QDRANT_API_KEY. */
  readonly apiKey?: string | undefined;
}

/** For all of it; who looks waits. */
const QUICK_MS = 2000;

/** Which store would serve a search. A Qdrant that is missing is an ailment only where it was asked for by name. */
export async function storeHealth({ store, url, apiKey }: StoreWanted): Promise<Health> {
  if (store === "embedded") return healthy("store", "embedded index");
  const [{ versionFor }, { unencrypted }] = await Promise.all([
    import("./qdrant/qdrant-version.ts"),
    import("./qdrant/plain-address.ts"),
  ]);
  const signal = AbortSignal.timeout(QUICK_MS);
  try {
    const version = await versionFor({ url, apiKey }, signal);
    const bare = unencrypted(url, apiKey);
    const found = `Qdrant ${version} at ${url}`;
    return bare === null
      ? healthy("store", found)
      : ailing("store", `${found}: ${bare}`, "harness config set search.url https://HOST:PORT");
  } catch (thrown) {
    const why = signal.aborted
      ? `Qdrant at ${url} took longer than ${QUICK_MS / 1000} s to say its version`
      : reasonOf(thrown);
    if (store === "auto") return healthy("store", `embedded index (${nobody(thrown, url) ?? why})`);
    const remedy =
      thrown instanceof HarnessError
        ? thrown.remedy
        : "./start.sh   (or: harness config set search.store auto)";
    return ailing("store", why, remedy);
  }
}

/** No server listens there, which is all there is to report. */
const nobody = (thrown: unknown, url: string): string | undefined =>
  thrown instanceof HarnessError && "trouble" in thrown && thrown.trouble === "unreachable"
    ? `no Qdrant at ${url}`
    : undefined;

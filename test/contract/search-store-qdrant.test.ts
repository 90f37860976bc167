import { randomUUID } from "node:crypto";
import { openQdrantStore } from "../../src/search/qdrant/qdrant-store.ts";
import type { StoreIdentity } from "../../src/search/search-store.ts";
import { startQdrant } from "../fakes/qdrant-server.ts";
import { searchStoreSuite } from "./search-store-suite.ts";

searchStoreSuite("search store in a stand-in of Qdrant", async () => {
  const server = await startQdrant();
  return {
    open: (identity) => openQdrantStore({ url: server.url }, identity),
    [Symbol.asyncDispose]: server.close,
  };
});

const url = process.env["HARNESS_QDRANT_URL"] ?? "http://127.0.0.1:6333";
const apiKey = process.env["QDRANT_API_KEY"];

/** Why there is no real server to ask, or false. */
async function missing(): Promise<string | false> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000), redirect: "error" });
    const { title } = (await answer.json()) as { readonly title?: unknown };
    return /qdrant/i.test(String(title)) ? false : `what answers at ${url} is no Qdrant`;
  } catch {
    return `no Qdrant at ${url} (HARNESS_QDRANT_URL names another)`;
  }
}

/** Collections of its own, which are gone afterwards. */
searchStoreSuite(
  "search store in a real Qdrant",
  () => {
    const mark = `test-${randomUUID()}`;
    const opened = new Map<string, StoreIdentity>();
    const own = ({ index, vectors }: StoreIdentity): StoreIdentity => ({
      index: `${mark}-${index}`,
      vectors: vectors && { ...vectors, model: `${mark}-${vectors.model}` },
    });
    return Promise.resolve({
      open: (identity) => {
        opened.set(JSON.stringify(own(identity)), own(identity));
        return openQdrantStore({ url, apiKey }, own(identity));
      },
      [Symbol.asyncDispose]: async () => {
        for (const identity of opened.values()) {
          await using store = await openQdrantStore({ url, apiKey }, identity);
          await store.clear(new AbortController().signal);
        }
      },
    });
  },
  { skip: await missing() },
);

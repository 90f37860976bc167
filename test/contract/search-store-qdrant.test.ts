import { randomUUID } from "node:crypto";
import { HostRanked, openQdrantStore } from "../../src/search/stores/qdrant-store.ts";
import type { QdrantServer } from "../../src/search/stores/qdrant-api.ts";
import type { SearchStore, StoreIdentity } from "../../src/search/search-store.ts";
import { startQdrant } from "../fakes/qdrant-server.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { searchStoreSuite } from "./search-store-suite.ts";
import { sha256 } from "./search-store-words.ts";

async function openedAt(server: QdrantServer, place: Scratch, identity: StoreIdentity): Promise<SearchStore> {
  const folder = place.at(sha256(JSON.stringify(identity)));
  return HostRanked.open(await openQdrantStore(server, identity), { folder, identity, access: "write" });
}

searchStoreSuite(
  "search store in a stand-in of Qdrant",
  async () => {
    await using stack = new AsyncDisposableStack();
    const place = stack.use(await scratch());
    const server = stack.use(await startQdrant());
    const kept = stack.move();
    return {
      open: (identity) => openedAt(server, place, identity),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  },
  { alike: true },
);

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
  async () => {
    const place = await scratch();
    const mark = `test-${randomUUID()}`;
    const opened = new Map<string, StoreIdentity>();
    const own = ({ index, vectors }: StoreIdentity): StoreIdentity => ({
      index: `${mark}-${index}`,
      vectors: vectors && { ...vectors, model: `${mark}-${vectors.model}` },
    });
    return {
      open: (identity) => {
        opened.set(JSON.stringify(own(identity)), own(identity));
        return openedAt({ url, apiKey }, place, own(identity));
      },
      [Symbol.asyncDispose]: async () => {
        for (const identity of opened.values()) {
          await using store = await openQdrantStore({ url, apiKey }, identity);
          await store.clear(new AbortController().signal);
        }
        await place[Symbol.asyncDispose]();
      },
    };
  },
  { skip: await missing(), alike: true },
);

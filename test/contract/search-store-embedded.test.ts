import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { scratch } from "../fixtures/scratch.ts";
import { searchStoreSuite } from "./search-store-suite.ts";
import { sha256 } from "./search-store-words.ts";

searchStoreSuite("embedded search store", async () => {
  const place = await scratch();
  return {
    open: (identity) =>
      Promise.resolve(openEmbeddedStore(place.at(sha256(JSON.stringify(identity))), identity)),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
});

import { memorySearchStore, type SearchMemory } from "../fakes/search-store.ts";
import { searchStoreSuite } from "./search-store-suite.ts";

searchStoreSuite("search store in memory", () => {
  const memory: SearchMemory = new Map();
  return Promise.resolve({
    open: (identity) => Promise.resolve(memorySearchStore(memory, identity)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});

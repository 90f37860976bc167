import { memoryStore } from "../fakes/store.ts";
import { storeSuite } from "./store-suite.ts";

storeSuite("store in memory", (now) => {
  const store = memoryStore(now);
  return Promise.resolve({ store, [Symbol.asyncDispose]: async () => store[Symbol.dispose]() });
});

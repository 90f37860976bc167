import { openStore } from "../../src/sessions/session-store.ts";
import { scratch } from "../fixtures/scratch.ts";
import { storeSuite } from "./store-suite.ts";

storeSuite("store in SQLite", async (now) => {
  const place = await scratch();
  const store = openStore(place.at("state"), { now });
  const close = (): PromiseLike<void> => {
    store[Symbol.dispose]();
    return place[Symbol.asyncDispose]();
  };
  return { store, [Symbol.asyncDispose]: close };
});

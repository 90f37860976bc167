import assert from "node:assert/strict";
import test from "node:test";
import type { SearchStore, StoreIdentity } from "../../src/search/search-store.ts";
import { alikeCases } from "./search-store-alike.ts";
import { breakCases } from "./search-store-breaks.ts";
import { fileCases } from "./search-store-files.ts";
import { identityCases } from "./search-store-identities.ts";
import { queryCases } from "./search-store-queries.ts";
import { vectorCases } from "./search-store-vectors.ts";
import { LEXICAL, MODELLED } from "./search-store-words.ts";

/** A place for stores of one kind. Stores opened with the same identity share one index until the place is disposed. */
export interface SearchPlace extends AsyncDisposable {
  readonly open: (identity: StoreIdentity) => Promise<SearchStore>;
}

interface SearchSeat {
  /** A store opened with vectors of four numbers. */
  readonly store: SearchStore;
  /** Opens any other store; all are closed after the test. */
  readonly open: SearchPlace["open"];
  readonly signal: AbortSignal;
}

export type AddSearch = (sentence: string, check: (context: SearchSeat) => Promise<void>) => void;

interface SuiteOptions {
  /** The reason why the suite cannot run here. */
  readonly skip?: string | false;
  /** The store answers like the embedded store, in the same order; the in-memory store is not held to that. */
  readonly alike?: boolean;
}

/** Tests everything that the port `SearchStore` promises. Indexes of each place are empty at first. */
export function searchStoreSuite(
  name: string,
  begin: () => Promise<SearchPlace>,
  { skip = false, alike = false }: SuiteOptions = {},
): void {
  const add: AddSearch = (sentence, check) => {
    test(`${name}: ${sentence}`, { skip }, async () => {
      await using place = await begin();
      await using opened = new AsyncDisposableStack();
      const open = async (identity: StoreIdentity): Promise<SearchStore> =>
        opened.use(await place.open(identity));
      const { signal } = new AbortController();
      await check({ store: await open(MODELLED), open, signal });
    });
  };
  for (const cases of [fileCases, queryCases, vectorCases, identityCases, breakCases]) cases(add);
  if (alike) alikeCases(add);
  test(`${name}: an opened store says which store it is`, { skip }, async () => {
    await using place = await begin();
    for (const identity of [MODELLED, LEXICAL]) {
      await using store = await place.open(identity);
      assert.match(store.name, /^(embedded|qdrant)$/);
    }
  });
}

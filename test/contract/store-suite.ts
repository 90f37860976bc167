import test from "node:test";
import type { SessionStore } from "../../src/core/session.ts";
import { listCases } from "./store-lists.ts";
import { outputCases } from "./store-outputs.ts";
import { recordCases } from "./store-records.ts";
import { stepCases } from "./store-steps.ts";

export interface OpenStore extends AsyncDisposable {
  readonly store: SessionStore;
}

interface StoreUnderTest {
  readonly store: SessionStore;
  /** The store's clock, which stands still. */
  readonly at: { now: number };
}

export type Add = (sentence: string, check: (opened: StoreUnderTest) => void) => void;

/** Tests everything that the port `SessionStore` promises. */
export function storeSuite(name: string, open: (now: () => number) => Promise<OpenStore>): void {
  const add: Add = (sentence, check) => {
    test(`${name}: ${sentence}`, async () => {
      const at = { now: Date.UTC(2026, 0, 1) };
      await using opened = await open(() => at.now);
      check({ store: opened.store, at });
    });
  };
  for (const cases of [recordCases, listCases, outputCases, stepCases]) cases(add);
}

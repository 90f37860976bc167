import { existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import type { Box } from "../../core/ports.ts";
import { Catalog } from "../catalog/catalog.ts";
import type { CatalogFacts } from "../catalog/rows.ts";
import { takeWriter } from "../catalog/lock.ts";
import type { IndexPlace } from "../catalog/workspace.ts";
import { troubleOf } from "../embedded/failure.ts";
import { HUGE } from "../chunk/limits.ts";
import type { PathRules } from "../read/found.ts";
import type { SearchStore, StoreIdentity } from "../store.ts";
import type { Trust } from "../words.ts";
import { firstChange } from "./fresh.ts";
import type { Progress } from "./parts.ts";
import type { Updated } from "./update.ts";

/** Goes up with whatever makes other pieces, other roles or another choice of files of the same workspace. */
const VERSION = "1";

/** What all indexes of one user share; handed in by whoever wires it together. */
export interface IndexMeans {
  readonly rules: PathRules;
  readonly trust: Trust;
  /** The program of a thread that cuts files. */
  readonly thread: URL;
  readonly openStore: (folder: string, identity: StoreIdentity) => Promise<SearchStore>;
  /** What a person should know. */
  readonly warn: (text: string) => void;
}

export type Stamps = "stamps" | "times";

/** One index, open. With a writer's lock it can be updated; without one it only answers. */
export class HeldIndex implements AsyncDisposable {
  readonly place: IndexPlace;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  readonly #means: IndexMeans;
  readonly #writer: Disposable | null;

  private constructor(given: {
    readonly place: IndexPlace;
    readonly catalog: Catalog;
    readonly store: SearchStore;
    readonly means: IndexMeans;
    readonly writer: Disposable | null;
  }) {
    this.place = given.place;
    this.catalog = given.catalog;
    this.store = given.store;
    this.#means = given.means;
    this.#writer = given.writer;
  }

  /** To be updated; waits so long for another that writes. */
  static async write(
    means: IndexMeans,
    place: IndexPlace,
    waiting: {
      readonly patienceMs: number;
      readonly signal: AbortSignal;
      /** What its vectors are to be; left out, they stay what they are. */
      readonly vectors?: StoreIdentity["vectors"] | undefined;
    },
  ): Promise<HeldIndex> {
    using stack = new DisposableStack();
    const writer = stack.use(await takeWriter(place.folder, waiting));
    const catalog = stack.use(
      Catalog.open(place.folder, (aside) =>
        means.warn(`a damaged index was set aside as ${aside}, and is built anew`),
      ),
    );
    const { vectors } = waiting;
    if (vectors !== undefined && vectors !== null) catalog.note(vectors);
    const store = await storeOf(means, place, catalog.facts(), "may begin");
    stack.move();
    return new HeldIndex({ place, catalog, store, means, writer });
  }

  /** To be asked; undefined where there is nothing yet that could answer. */
  static async read(means: IndexMeans, place: IndexPlace): Promise<HeldIndex | undefined> {
    const catalog = Catalog.read(place.folder);
    if (catalog === undefined) return undefined;
    try {
      const facts = catalog.facts();
      if (facts.store === null || (facts.store === "embedded" && !existsSync(storeFolder(place)))) {
        catalog[Symbol.dispose]();
        return undefined;
      }
      const store = await storeOf(means, place, facts, "is there");
      return new HeldIndex({ place, catalog, store, means, writer: null });
    } catch (thrown) {
      catalog[Symbol.dispose]();
      if (isDamaged(thrown)) return undefined;
      throw thrown;
    }
  }

  get facts(): CatalogFacts {
    return this.catalog.facts();
  }

  /** By a look at names and metadata on the host: nothing has changed since the last update, which ran to its end. */
  async isFresh(signal: AbortSignal): Promise<boolean> {
    if (!this.facts.whole) return false;
    const files = this.catalog.files();
    for (const { version } of files.values()) if (version !== VERSION) return false;
    const { workspace } = this.place;
    const { rules } = this.#means;
    const ruleFiles = this.catalog.rules();
    return (await firstChange({ workspace, files, ruleFiles, rules, largest: HUGE, signal })) === null;
  }

  /** Has it say what the files in the box say. */
  async update(
    box: Box,
    {
      knownBy = "stamps",
      onProgress,
    }: { readonly knownBy?: Stamps; readonly onProgress?: (now: Progress) => void },
    signal: AbortSignal,
  ): Promise<Updated> {
    const [{ update }, { cuttingFor }] = await Promise.all([import("./update.ts"), import("./cutting.ts")]);
    const { rules, trust, thread } = this.#means;
    const { catalog, store } = this;
    const cutting = (files: number) => cuttingFor(files, thread);
    const fixed = { index: this.place.id, version: VERSION, largest: HUGE };
    const parts = { box, catalog, store, rules, trust, cutting, knownBy, ...fixed };
    return update({ ...parts, ...(onProgress === undefined ? {} : { onProgress }) }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.store[Symbol.asyncDispose]();
    } finally {
      this.catalog[Symbol.dispose]();
      this.#writer?.[Symbol.dispose]();
    }
  }
}

export const storeFolder = ({ folder }: Pick<IndexPlace, "folder">): string => path.join(folder, "store");

/** A store of its own that is damaged is set aside like the catalog; what it held is read again. */
async function storeOf(
  { openStore, warn }: IndexMeans,
  place: IndexPlace,
  { model, dimension }: CatalogFacts,
  how: "may begin" | "is there",
): Promise<SearchStore> {
  const folder = storeFolder(place);
  const vectors = model === null || dimension === null ? null : { model, dimension };
  const identity = { index: place.id, vectors };
  try {
    return await openStore(folder, identity);
  } catch (thrown) {
    if (how === "is there" || !isDamaged(thrown)) throw thrown;
    rmSync(`${folder}.damaged`, { recursive: true, force: true });
    renameSync(folder, `${folder}.damaged`);
    warn(`a damaged store was set aside as ${folder}.damaged, and is built anew`);
    return openStore(folder, identity);
  }
}

const isDamaged = (thrown: unknown): boolean =>
  thrown instanceof Error && troubleOf(thrown.cause) === "damaged";

import path from "node:path";
import type { Box } from "../core/ports.ts";
import {
  HUGE_FILE_BYTES,
  type SearchStore,
  type ServerStore,
  type StoreIdentity,
  type Trust,
} from "./search-store.ts";
import type { PathRules } from "./files/box-files.ts";
import { CATALOG, type IndexPlace, setAside, takeWriter, troubleOf, tryWriter } from "./index-folders.ts";
import { Catalog, type CatalogFacts } from "./catalog.ts";
import { OWN_IGNORE, scanForChanges } from "./files/workspace-scan.ts";
import type { Cutting } from "./files/cutting.ts";
import type { IndexProgress, Stamps, Updated } from "./update-index.ts";

/** What all indexes of one user share; injected by the composition. */
export interface IndexOptions {
  readonly rules: PathRules;
  readonly trust: Trust;
  /** The program for the threads that cut files. */
  readonly thread: URL;
  readonly openStore: (opening: StoreOpening) => Promise<SearchStore>;
  /** The store that the user asked for by name: no other may answer in its place. */
  readonly named: SearchStore["name"] | null;
  /**
   * Opens a server that may still hold parts of an index that now lies elsewhere; null if there is none, or none may be
   * asked.
   */
  readonly openServer: (identity: StoreIdentity, signal: AbortSignal) => Promise<ServerStore | null>;
  /** Reports something to the user. */
  readonly warn: (text: string) => void;
}

interface StoreOpening {
  /** The folder for a store that needs one. */
  readonly folder: string;
  readonly identity: StoreIdentity;
  /** The store that has held the index until now. */
  readonly earlier: SearchStore["name"] | null;
  /** No store but `earlier` will do. */
  readonly only: boolean;
  /** `read`: nothing is changed, and opening fails if there is no readable store. */
  readonly access: "read" | "write";
  readonly signal: AbortSignal;
}

/** Increased whenever the same workspace would give other pieces, other roles or another choice of files. */
const VERSION = "2";

interface Updating {
  readonly knownBy?: Stamps;
  readonly onProgress?: (now: IndexProgress) => void;
  /** A cutter for few files, kept if more updates will follow. */
  readonly kept?: Cutting;
}

/** How an index is opened for writing. */
interface Writing {
  /** How long to wait for another writer. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** The vectors that the index shall have; if absent, they stay as they are. */
  readonly vectors?: StoreIdentity["vectors"];
  /** Use the store that has held the index, whatever the settings say now. */
  readonly only?: boolean;
}

/** One open index. With the writer's lock it can be updated; without it, it only answers. */
export class OpenedIndex implements AsyncDisposable {
  readonly place: IndexPlace;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  readonly #means: IndexOptions;
  readonly #writer: Disposable | null;

  private constructor(parts: {
    readonly place: IndexPlace;
    readonly catalog: Catalog;
    readonly store: SearchStore;
    readonly means: IndexOptions;
    readonly writer: Disposable | null;
  }) {
    this.place = parts.place;
    this.catalog = parts.catalog;
    this.store = parts.store;
    this.#means = parts.means;
    this.#writer = parts.writer;
  }

  /** Opens an index for updates; waits `patienceMs` for another writer. */
  static async write(means: IndexOptions, place: IndexPlace, opening: Writing): Promise<OpenedIndex> {
    await using stack = new AsyncDisposableStack();
    const writer = stack.use(await takeWriter(place.folder, opening));
    const warnDamaged = (aside: string): void =>
      means.warn(`a damaged index was set aside as ${aside} and is being rebuilt`);
    const catalog = stack.use(Catalog.open(place.folder, warnDamaged));
    const before = catalog.facts();
    const { vectors = vectorsOf(before), only = false, signal } = opening;
    const store = stack.use(await openedStore(means, place, { before, vectors, only, signal }));
    // The content of another store, or of the same store for another model, is compared file by file.
    const other = before.store !== store.name || before.model !== (vectors?.model ?? null);
    const { model, dimension } = vectors ?? { model: null, dimension: null };
    if (other) catalog.note({ whole: false, store: store.name, model, dimension });
    stack.move();
    return new OpenedIndex({ place, catalog, store, means, writer });
  }

  /** Opens an index for questions; undefined if nothing can answer yet. */
  static async read(
    means: IndexOptions,
    place: IndexPlace,
    signal: AbortSignal,
  ): Promise<OpenedIndex | undefined> {
    using stack = new DisposableStack();
    const catalog = Catalog.read(place.folder);
    if (catalog === undefined) return undefined;
    stack.use(catalog);
    try {
      const facts = catalog.facts();
      if (facts.store === null) return undefined;
      const identity = { index: place.id, vectors: vectorsOf(facts) };
      const kept = { folder: storeFolder(place), earlier: facts.store, only: true };
      const store = await means.openStore({ identity, ...kept, access: "read", signal });
      stack.move();
      return new OpenedIndex({ place, catalog, store, means, writer: null });
    } catch (thrown) {
      if (isDamaged(thrown) || isAnother(thrown)) return undefined;
      throw thrown;
    }
  }

  get facts(): CatalogFacts {
    return this.catalog.facts();
  }

  /** Whether the index is in the store that the user asked for by name, if any. */
  get isWhereWanted(): boolean {
    const { named } = this.#means;
    return named === null || named === this.store.name;
  }

  /**
   * Whether nothing has changed since the last complete update, judged by names and metadata on the host and a count in
   * the store.
   */
  async isFresh(signal: AbortSignal): Promise<boolean> {
    if (!this.facts.whole) return false;
    const files = this.catalog.stamps(VERSION);
    const { workspace } = this.place;
    const { rules } = this.#means;
    const ruleFiles = this.catalog.rules();
    // The server counts while this side scans.
    const [look, stored] = await Promise.all([
      scanForChanges({ workspace, files, ruleFiles, rules, largest: HUGE_FILE_BYTES, most: 0, signal }),
      this.store.fileCount(signal),
    ]);
    // The count finds files that were removed, or emptied by another version of this program.
    return look.kind === "told" && look.folders.size === 0 && stored === this.catalog.stored();
  }

  /** Brings the index up to date with the files in the box. */
  async update(
    box: Box,
    { knownBy = "stamps", onProgress, kept }: Updating,
    signal: AbortSignal,
  ): Promise<Updated> {
    const [{ update }, { cuttingFor }] = await Promise.all([
      import("./update-index.ts"),
      import("./files/cutting.ts"),
    ]);
    const { rules, trust, thread } = this.#means;
    const { catalog, store } = this;
    const cutting = (files: number) => cuttingFor(files, thread, kept);
    const { id, workspace } = this.place;
    const fixed = { index: id, workspace, version: VERSION, largest: HUGE_FILE_BYTES };
    const parts = { box, catalog, store, rules, trust, cutting, knownBy, ...fixed };
    return update({ ...parts, ...(onProgress === undefined ? {} : { onProgress }) }, signal);
  }

  /** Warns of a `.harnessignore` so long that it hides the whole folder. */
  warnOfHidden(): void {
    const own = this.catalog.rules().find(({ path }) => path === OWN_IGNORE);
    const most = this.#means.rules.mostOfList;
    if (own !== undefined && own.text.length > most)
      this.#means.warn(`no file is indexed: ${OWN_IGNORE} is longer than ${most} characters; shorten it`);
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

const vectorsOf = ({ model, dimension }: CatalogFacts): StoreIdentity["vectors"] =>
  model === null || dimension === null ? null : { model, dimension };

interface Opening extends Pick<StoreOpening, "only" | "signal"> {
  readonly before: CatalogFacts;
  readonly vectors: StoreIdentity["vectors"];
}

/** Opens the store. A damaged embedded store is set aside like a damaged catalog; its files are read again. */
async function openedStore(
  { openStore, warn }: IndexOptions,
  place: IndexPlace,
  { before, vectors, only, signal }: Opening,
): Promise<SearchStore> {
  const folder = storeFolder(place);
  const identity = { index: place.id, vectors };
  const kept = { earlier: before.store, only: only && before.store !== null };
  const opening = { folder, identity, ...kept, access: "write" as const, signal };
  try {
    return await openStore(opening);
  } catch (thrown) {
    if (!isDamaged(thrown)) throw thrown;
    warn(`a damaged store was set aside as ${setAside(folder)} and is being rebuilt`);
    return openStore(opening);
  }
}

/** Whether no readable index is there: it belongs to another version, or is gone. */
const isAnother = (thrown: unknown): boolean =>
  thrown instanceof Error && troubleOf(thrown.cause) === "another";

export const isDamaged = (thrown: unknown): boolean =>
  thrown instanceof Error && troubleOf(thrown.cause) === "damaged";

/**
 * Runs `work`. An index that turns out to be damaged during the work is set aside, and the work is repeated: an index
 * can always be rebuilt from the files. If another process is writing the index, that process repairs it.
 */
export async function withRepair<T>(
  { warn }: Pick<IndexOptions, "warn">,
  place: IndexPlace | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (place === undefined || !isDamaged(thrown) || !trySetAside(place)) throw thrown;
    warn(`a damaged index was set aside in ${place.folder} and is being rebuilt`);
    return await work();
  }
}

function trySetAside(place: IndexPlace): boolean {
  using lock = tryWriter(place.folder);
  if (lock === undefined) return false;
  for (const each of [path.join(place.folder, CATALOG), storeFolder(place)]) setAside(each);
  return true;
}

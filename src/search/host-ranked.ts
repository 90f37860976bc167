import path from "node:path";
import type { EmbeddedStore } from "./embedded/embedded-store.ts";
import { openEmbeddedStore, readEmbeddedStore } from "./embedded/open-embedded.ts";
import type { StoreChoice } from "./open-store.ts";
import type {
  Candidate,
  SearchStore,
  ServerStore,
  StoreCounts,
  StoredFile,
  StoreQuery,
} from "./search-store.ts";

/** Lies beside the files that an embedded store keeps in the same folder. */
const WORDS = "words";
/** The file count when the two sides disagree: no index has this number of files. */
const UNLIKE = -1;

/**
 * The server holds the chunks and their vectors; the word counts of the files lie in a folder of this machine, in the
 * format of an embedded store, so that both kinds of store answer a question alike. A file is held if both sides have
 * it.
 */
export class HostRanked implements SearchStore {
  readonly #server: ServerStore;
  readonly #words: EmbeddedStore;

  private constructor(server: ServerStore, words: EmbeddedStore) {
    this.#server = server;
    this.#words = words;
  }

  /** The server's store is closed with the result, and also if opening fails. */
  static async open(
    server: ServerStore,
    { folder, identity, access }: Pick<StoreChoice, "folder" | "identity" | "access">,
  ): Promise<HostRanked> {
    await using stack = new AsyncDisposableStack();
    stack.use(server);
    const [place, own] = [path.join(folder, WORDS), { index: identity.index, vectors: null }];
    const words =
      access === "read" ? readEmbeddedStore(place, own) : openEmbeddedStore(place, own, { texts: false });
    stack.move();
    return new HostRanked(server, words);
  }

  get name(): SearchStore["name"] {
    return this.#server.name;
  }

  async put(files: readonly StoredFile[], signal: AbortSignal): Promise<void> {
    await this.#server.put(files, signal);
    await this.#words.put(files, signal);
  }

  async remove(paths: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#words.remove(paths, signal);
    await this.#server.remove(paths, signal);
  }

  async flush(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#server.flush(signal), this.#words.flush(signal)]);
  }

  /** Files that only one side has are removed from it: nothing would look for them there again. */
  async held(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const [there, here] = await Promise.all([this.#server.held(signal), this.#words.held(signal)]);
    const strays = [...there.keys()].filter((file) => !here.has(file));
    if (strays.length > 0) await this.#server.remove(strays, signal);
    const lost = [...here.keys()].filter((file) => !there.has(file));
    if (lost.length > 0) await this.#words.remove(lost, signal);
    return new Map([...there].filter(([file, hash]) => here.get(file) === hash));
  }

  unembedded(limit: number, signal: AbortSignal): ReturnType<SearchStore["unembedded"]> {
    return this.#server.unembedded(limit, signal);
  }

  embed(vectors: ReadonlyMap<string, Float32Array>, signal: AbortSignal): Promise<void> {
    return this.#server.embed(vectors, signal);
  }

  async candidates(
    { text, vector }: StoreQuery,
    limit: number,
    signal: AbortSignal,
  ): Promise<readonly Candidate[]> {
    const ranked = new Map<string, number>();
    // Identical parts of one long line have the same id: the better one counts.
    for (const { id, lexical } of await this.#words.ranked(text, limit, signal))
      if (!ranked.has(id)) ranked.set(id, lexical);
    const { chunks, dense } = await this.#server.facts({ ids: [...ranked.keys()], vector }, limit, signal);
    const near = [...dense].toSorted(([, one], [, other]) => other - one).map(([id]) => id);
    return [...new Set([...ranked.keys(), ...near])].flatMap((id) => {
      const chunk = chunks.get(id);
      if (chunk === undefined) return [];
      return [{ chunk, lexical: ranked.get(id) ?? null, dense: dense.get(id) ?? null }];
    });
  }

  counts(signal: AbortSignal): Promise<StoreCounts> {
    return this.#server.counts(signal);
  }

  async fileCount(signal: AbortSignal): Promise<number> {
    const [there, here] = await Promise.all([this.#server.fileCount(signal), this.#words.fileCount(signal)]);
    return there === here ? there : UNLIKE;
  }

  async clear(signal: AbortSignal): Promise<void> {
    await this.#words.clear(signal);
    await this.#server.clear(signal);
  }

  tidy(signal: AbortSignal): Promise<void> {
    return this.#server.tidy(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#words[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
  }
}

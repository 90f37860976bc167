import path from "node:path";
import { z } from "zod";
import type {
  ScoredChunk,
  SearchStore,
  ServerStore,
  StoreCounts,
  StoredFile,
  StoreIdentity,
  StoreQuery,
} from "../search-store.ts";
import {
  checkedVersion,
  PATIENCE,
  type QdrantPatience,
  QdrantApi,
  type QdrantServer,
  type QdrantTime,
  resultOf,
  shapeOf,
} from "./qdrant-api.ts";

import { clearIndex, embedChunks, putFiles, removeFiles, removeWhere, tidyIndex } from "./qdrant-write.ts";
import {
  chunksOf,
  COLLECTION_KINDS,
  type CollectionKind,
  Collections,
  fileRecord,
  filesOf,
  FORMAT_VERSION,
  ofVersions,
  orWithout,
  type QdrantContext,
} from "./qdrant-collections.ts";
import { countAll, countFiles, factsFor, scrollAll, unembeddedChunks } from "./qdrant-read.ts";
import type { EmbeddedStore } from "./embedded-store.ts";
import { openEmbeddedStore, readEmbeddedStore, type StoreChoice } from "./open-store.ts";

export interface QdrantOptions {
  readonly signal?: AbortSignal;
  readonly patience?: QdrantPatience;
  readonly time?: QdrantTime;
  /** The time, in milliseconds since 1970. */
  readonly now?: () => number;
  /** `write`: missing field indexes are created. */
  readonly access?: "read" | "write";
}

/**
 * Rejects if there is no server, if it is too old, or if one of our collections has the wrong settings. Collections are
 * created only when something is stored. Closing leaves connections to the client, which drops idle ones.
 */
export async function openQdrantStore(
  server: QdrantServer,
  identity: StoreIdentity,
  options: QdrantOptions = {},
): Promise<ServerStore> {
  const { signal = new AbortController().signal, patience = PATIENCE, now = Date.now, access } = options;
  const api = new QdrantApi(server, patience, options.time);
  const collections = new Collections(api, identity, shapeOf(server));
  // Sent in parallel. A wrong version, or a server that is no Qdrant, is reported first: such a server may answer the
  // other requests in any way.
  const looks = COLLECTION_KINDS.map((kind) => collections.look(kind, signal));
  for (const each of looks) each.catch(() => undefined);
  await checkedVersion(api, signal);
  const found = await Promise.all(looks);
  if (access === "write")
    for (const [at, kind] of COLLECTION_KINDS.entries())
      await collections.mend(kind, found[at] ?? null, signal);
  return storeOn({ api, collections, identity, now });
}

function storeOn(context: QdrantContext): ServerStore {
  return {
    name: "qdrant",
    put: (files, signal) => ifNotAborted(signal, () => putFiles(context, files, signal)),
    remove: (paths, signal) => ifNotAborted(signal, () => removeFiles(context, paths, signal)),
    // Each change waits until the server has it in its own journal.
    flush: (signal) => ifNotAborted(signal, () => Promise.resolve()),
    fileHashes: (signal) => ifNotAborted(signal, () => indexedFiles(context, signal)),
    unembedded: (limit, signal) => ifNotAborted(signal, () => unembeddedChunks(context, limit, signal)),
    embed: (vectors, signal) => ifNotAborted(signal, () => embedChunks(context, vectors, signal)),
    facts: (query, nearest, signal) => ifNotAborted(signal, () => factsFor(context, query, nearest, signal)),
    counts: (signal) => ifNotAborted(signal, () => countAll(context, signal)),
    fileCount: (signal) => ifNotAborted(signal, () => countFiles(context, signal)),
    clear: (signal) => ifNotAborted(signal, () => clearIndex(context, signal)),
    tidy: (signal) => ifNotAborted(signal, () => tidyIndex(context, signal)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** An aborted signal fails at once, even when no request is needed. */
async function ifNotAborted<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return act();
}

/** Longer than any request: a version without a file for this long was left by a killed process. */
const ABANDONED_MS = 15 * 60_000;
const MAX_VERSIONS = 500;
/** Versions that may exist beside those of files. Any more are counted at another time. */
const SPARE_VERSIONS = 1000;

const facets = resultOf(z.object({ hits: z.array(z.object({ value: z.string(), count: z.int() })) }));

/**
 * Files whose chunks are complete by the server's count. Old points of other versions are removed: if their file is
 * gone, no later update would remove them by path.
 */
async function indexedFiles(
  context: QdrantContext,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  const debris: string[] = [];
  for (const kind of COLLECTION_KINDS) {
    if (!(await context.collections.whole(kind, signal))) continue;
    const found = await versionsOn(context, kind, signal);
    for (const [path, hash] of found.fileHashes) hashes.set(path, hash);
    debris.push(...found.others);
  }
  const before = context.now() - ABANDONED_MS;
  for (let at = 0; at < debris.length; at += MAX_VERSIONS) {
    const versions = debris.slice(at, at + MAX_VERSIONS);
    await removeWhere(context, ofVersions(context.identity.index, versions, before), signal);
  }
  return hashes;
}

interface Versions {
  readonly fileHashes: ReadonlyMap<string, string>;
  /** Versions with some chunks or a file's point, but not all. */
  readonly others: readonly string[];
}

async function versionsOn(
  context: QdrantContext,
  kind: CollectionKind,
  signal: AbortSignal,
): Promise<Versions> {
  const { index } = context.identity;
  const files = await scrollAll(
    context,
    {
      kind,
      filter: filesOf(index),
      form: fileRecord,
      fields: ["form", "path", "file_hash", "version", "chunks"],
      limit: Number.POSITIVE_INFINITY,
    },
    signal,
  );
  const counts = await countedVersions(context, kind, { limit: files.length + SPARE_VERSIONS, signal });
  const whole = files.filter(
    ({ form, version, chunks }) => form === FORMAT_VERSION && (counts.get(version) ?? 0) === chunks,
  );
  const versions = new Set(whole.map(({ version }) => version));
  const all = new Set([...counts.keys(), ...files.map(({ version }) => version)]);
  return {
    fileHashes: new Map(whole.map(({ path, file_hash }) => [path, file_hash])),
    others: [...all].filter((version) => !versions.has(version)),
  };
}

async function countedVersions(
  { api, collections, identity }: QdrantContext,
  kind: CollectionKind,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, number>> {
  const body = {
    collection_name: collections.name(kind),
    key: "version",
    filter: chunksOf(identity.index),
    limit,
    exact: true,
  };
  const answer = api.ask((calls, init) => calls.facet(body, init), {
    what: "count the chunks of files",
    form: facets,
    signal,
  });
  const { hits } = await orWithout(answer, { hits: [] });
  return new Map(hits.map(({ value, count }) => [value, count]));
}

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
  async fileHashes(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const [there, here] = await Promise.all([
      this.#server.fileHashes(signal),
      this.#words.fileHashes(signal),
    ]);
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
  ): Promise<readonly ScoredChunk[]> {
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

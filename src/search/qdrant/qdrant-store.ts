import { z } from "zod";
import type { ServerStore, StoreIdentity } from "../search-store.ts";
import {
  PATIENCE,
  type QdrantTime,
  type Patience,
  QdrantApi,
  resultOf,
  completedWrite,
} from "./qdrant-api.ts";
import { QdrantFailure } from "./qdrant-failure.ts";
import { clearIndex, tidyIndex } from "./qdrant-clear.ts";
import { Collections, orWithout } from "./qdrant-collections.ts";
import { type QdrantServer, shapeOf } from "./qdrant-nodes.ts";
import { numbersOf, type QdrantContext } from "./qdrant-context.ts";
import { DENSE, fileRecord, FORM, type CollectionKind, COLLECTION_KINDS } from "./qdrant-points.ts";
import { chunksOf, factsFor, filesOf, ofVersions } from "./qdrant-query.ts";
import { countAll, countFiles, scrollAll, unembeddedChunks } from "./qdrant-read.ts";
import { checkedVersion } from "./qdrant-version.ts";
import { batches, putFiles, removeFiles, removeWhere, sideBySide } from "./qdrant-write.ts";

export interface QdrantOptions {
  readonly signal?: AbortSignal;
  readonly patience?: Patience;
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
  const asked = COLLECTION_KINDS.map((shelf) => collections.look(shelf, signal));
  for (const each of asked) each.catch(() => undefined);
  await checkedVersion(api, signal);
  const found = await Promise.all(asked);
  if (access === "write")
    for (const [at, shelf] of COLLECTION_KINDS.entries())
      await collections.mend(shelf, found[at] ?? null, signal);
  return storeOn({ api, collections, identity, now });
}

function storeOn(context: QdrantContext): ServerStore {
  return {
    name: "qdrant",
    put: (files, signal) => ifNotAborted(signal, () => putFiles(context, files, signal)),
    remove: (paths, signal) => ifNotAborted(signal, () => removeFiles(context, paths, signal)),
    // Each change waits until the server has it in its own journal.
    flush: (signal) => ifNotAborted(signal, () => Promise.resolve()),
    held: (signal) => ifNotAborted(signal, () => indexedFiles(context, signal)),
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
const SPARE = 1000;

const facets = resultOf(z.object({ hits: z.array(z.object({ value: z.string(), count: z.int() })) }));

/**
 * Files whose chunks are complete by the server's count. Old points of other versions are removed: if their file is
 * gone, no later update would remove them by path.
 */
async function indexedFiles(
  context: QdrantContext,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const held = new Map<string, string>();
  const debris: string[] = [];
  for (const shelf of COLLECTION_KINDS) {
    if (!(await context.collections.whole(shelf, signal))) continue;
    const found = await versionsOn(context, shelf, signal);
    for (const [path, hash] of found.held) held.set(path, hash);
    debris.push(...found.others);
  }
  const before = context.now() - ABANDONED_MS;
  for (let at = 0; at < debris.length; at += MAX_VERSIONS) {
    const versions = debris.slice(at, at + MAX_VERSIONS);
    await removeWhere(context, ofVersions(context.identity.index, versions, before), signal);
  }
  return held;
}

interface Versions {
  readonly held: ReadonlyMap<string, string>;
  /** Versions with some chunks or a file's point, but not all. */
  readonly others: readonly string[];
}

async function versionsOn(
  context: QdrantContext,
  shelf: CollectionKind,
  signal: AbortSignal,
): Promise<Versions> {
  const { index } = context.identity;
  const files = await scrollAll(
    context,
    {
      shelf,
      filter: filesOf(index),
      form: fileRecord,
      fields: ["form", "path", "file_hash", "version", "chunks"],
      limit: Number.POSITIVE_INFINITY,
    },
    signal,
  );
  const counts = await countedVersions(context, shelf, { limit: files.length + SPARE, signal });
  const whole = files.filter(
    ({ form, version, chunks }) => form === FORM && (counts.get(version) ?? 0) === chunks,
  );
  const versions = new Set(whole.map(({ version }) => version));
  const all = new Set([...counts.keys(), ...files.map(({ version }) => version)]);
  return {
    held: new Map(whole.map(({ path, file_hash }) => [path, file_hash])),
    others: [...all].filter((version) => !versions.has(version)),
  };
}

async function countedVersions(
  { api, collections, identity }: QdrantContext,
  shelf: CollectionKind,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, number>> {
  const body = {
    collection_name: collections.name(shelf),
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

interface Vector {
  readonly id: string;
  readonly dense: number[];
}

const BYTES_OF_NUMBER = 22;
/** A chunk that is removed between check and write makes the whole write fail. */
const MAX_TRIES = 4;

const owners = resultOf(
  z.array(z.object({ id: z.string(), payload: z.object({ index: z.string(), what: z.string() }) })),
);

/** All vectors are checked before the first is sent. */
async function embedChunks(
  context: QdrantContext,
  vectors: ReadonlyMap<string, Float32Array>,
  signal: AbortSignal,
): Promise<void> {
  const all = Array.from(vectors, ([id, vector]) => ({ id, dense: numbersOf(vector, context.identity) }));
  const parts = batches(all, ({ dense }) => dense.length * BYTES_OF_NUMBER + 80);
  await sideBySide(
    parts.flatMap((part) => COLLECTION_KINDS.map((shelf) => ({ shelf, part }))),
    ({ shelf, part }) => embedPart(context, shelf, part, signal),
  );
}

async function embedPart(
  context: QdrantContext,
  shelf: CollectionKind,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    const there = await ownIds(context, shelf, part, signal);
    const points = part
      .filter(({ id }) => there.has(id))
      .map(({ id, dense }) => ({ id, vector: { [DENSE]: dense } }));
    if (points.length === 0) return;
    const body = { collection_name: context.collections.name(shelf), wait: true, points };
    try {
      await context.api.ask((calls, init) => calls.updateVectors(body, init), {
        what: `store ${points.length} vectors`,
        form: completedWrite,
        signal,
        write: true,
      });
      return;
    } catch (thrown) {
      const gone = thrown instanceof QdrantFailure && thrown.trouble.startsWith("no-");
      if (!gone || tried === MAX_TRIES) throw thrown;
    }
  }
}

/** The ids of chunks of this index: the server would refuse a missing one. */
async function ownIds(
  { api, collections, identity }: QdrantContext,
  shelf: CollectionKind,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const body = {
    collection_name: collections.name(shelf),
    ids: part.map(({ id }) => id),
    with_payload: ["index", "what"],
    with_vector: false,
  };
  const found = api.ask((calls, init) => calls.getPoints(body, init), {
    what: "look up chunks",
    form: owners,
    signal,
  });
  const own = (await orWithout(found, [])).filter(
    ({ payload }) => payload.index === identity.index && payload.what === "chunk",
  );
  return new Set(own.map(({ id }) => id));
}

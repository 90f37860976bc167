import { z } from "zod";
import { resultOf } from "./api.ts";
import { orWithout } from "./collections.ts";
import { chunksOf, filesOf, ofVersions } from "./filters.ts";
import { SHELVES, type Shelf } from "./names.ts";
import { fileRecord, FORM } from "./points.ts";
import { scrolled } from "./read.ts";
import type { Seat } from "./seat.ts";
import { removeWhere } from "./write.ts";

/** No request is under way for so long: what nobody has claimed by then was left by one who was killed. */
const ABANDONED_MS = 15 * 60_000;
const MOST_VERSIONS = 500;
/** Versions that may be there beside those of files. What is more is counted another time. */
const SPARE = 1000;

const facets = resultOf(z.object({ hits: z.array(z.object({ value: z.string(), count: z.int() })) }));

/**
 * Files whose chunks the server has counted and found to be all there. What is there beside them and is old enough is
 * removed: nobody would ask for it by its path again when the file has gone meanwhile.
 */
export async function heldFiles(seat: Seat, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const held = new Map<string, string>();
  const debris: string[] = [];
  for (const shelf of SHELVES) {
    if (!(await seat.collections.whole(shelf, signal))) continue;
    const found = await versionsOn(seat, shelf, signal);
    for (const [path, hash] of found.held) held.set(path, hash);
    debris.push(...found.others);
  }
  const before = seat.now() - ABANDONED_MS;
  for (let at = 0; at < debris.length; at += MOST_VERSIONS) {
    const versions = debris.slice(at, at + MOST_VERSIONS);
    await removeWhere(seat, ofVersions(seat.identity.index, versions, before), signal);
  }
  return held;
}

interface Versions {
  readonly held: ReadonlyMap<string, string>;
  /** Of which chunks are there, or a file's point, and not all. */
  readonly others: readonly string[];
}

async function versionsOn(seat: Seat, shelf: Shelf, signal: AbortSignal): Promise<Versions> {
  const { index } = seat.identity;
  const files = await scrolled(
    seat,
    {
      shelf,
      filter: filesOf(index),
      form: fileRecord,
      fields: ["form", "path", "file_hash", "version", "chunks"],
      limit: Number.POSITIVE_INFINITY,
    },
    signal,
  );
  const counts = await countedVersions(seat, shelf, { limit: files.length + SPARE, signal });
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
  { api, collections, identity }: Seat,
  shelf: Shelf,
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

import { createHash } from "node:crypto";
import type { CatalogFile } from "../embedded/catalog.ts";
import { type Chunk, type CutFile, type Role, type Skip, type Trust, uuidText } from "../index-words.ts";
import { roleOf } from "../rank/path-role.ts";
import { isSettled, type Listing } from "../read/found-file.ts";
import type { Content } from "../read/read-contents.ts";
import type { StoredFile } from "../search-store.ts";
import type { Cutting } from "./cutting.ts";
import { NOTHING, type Plan, type UpdateParts } from "./index-plan.ts";

/** A file as it is written to store and catalog. */
export interface Prepared {
  readonly path: string;
  readonly row: CatalogFile;
  /** Undefined if the store already has the file, or shall not have it. */
  readonly stored: StoredFile | undefined;
}

export interface Reading {
  readonly plan: Plan;
  readonly listing: Listing;
}

interface Preparing {
  readonly parts: UpdateParts;
  readonly reading: Reading;
}

export async function prepare(
  { cutting, ...given }: Preparing & { readonly cutting: Cutting },
  { path, bytes }: Content,
): Promise<Prepared> {
  const { parts, reading } = given;
  if (bytes === null) return leftOut(given, path, "huge");
  const hash = createHash("sha256").update(bytes).digest("hex");
  const row = reading.plan.known.get(path);
  const seen = stampOf(given, path);
  if (row !== undefined && row.hash === hash && row.version === parts.version)
    return { path, row: { ...row, ...seen }, stored: undefined };
  const cut = await cutting.cut(path, bytes);
  if (cut.kind === "skipped") return leftOut(given, path, cut.why, hash);
  const { language } = cut;
  const { index, trust, version } = parts;
  const role = roleOf(path);
  const chunks = chunksOf({ index, path, role, trust }, cut);
  const read = { ...seen, hash, version, language, role, chunks: chunks.length, skip: null };
  return { path, row: read, stored: chunks.length === 0 ? undefined : { path, hash, chunks } };
}

export function leftOut(given: Preparing, path: string, skip: Skip, hash: string | null = null): Prepared {
  const { version } = given.parts;
  return { path, row: { ...NOTHING, ...stampOf(given, path), hash, version, skip }, stored: undefined };
}

/** The stamp taken before the file was read. */
function stampOf({ reading: { listing } }: Preparing, path: string): Pick<CatalogFile, "stamp" | "settled"> {
  const stamp = listing.files.get(path) ?? { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
  return { stamp, settled: isSettled(stamp, listing.at) };
}

interface ChunksOf {
  /** The index that the chunks belong to. */
  readonly index: string;
  readonly path: string;
  readonly role: Role;
  readonly trust: Trust;
}

/** The pieces of a file as a store holds them. */
function chunksOf(
  { index, path, role, trust }: ChunksOf,
  { language, pieces }: Extract<CutFile, { readonly kind: "cut" }>,
): readonly Chunk[] {
  const twins = new Map<string, number>();
  return pieces.map((piece) => {
    const hash = createHash("sha256").update(piece.text).digest("hex");
    const place = `${piece.start}-${piece.end} ${hash}`;
    // A line longer than a chunk may have identical pieces.
    const twin = twins.get(place) ?? 0;
    twins.set(place, twin + 1);
    const id = uuidOf([index, path, place, String(twin)].join("\0"));
    return { ...piece, id, path, language, role, hash, trust };
  });
}

/** A UUID made from a name (version 8: by a hash of our own choice). */
function uuidOf(name: string): string {
  const bytes = createHash("sha256").update(name).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidText(bytes.toString("hex"));
}

import { createHash } from "node:crypto";
import type { CatalogFile } from "../catalog/rows.ts";
import type { Content } from "../read/contents.ts";
import { isSettled, type Listing } from "../read/found.ts";
import { roleOf } from "../rank/role.ts";
import type { StoredFile } from "../store.ts";
import type { Skip } from "../words.ts";
import { chunksOf } from "./chunks.ts";
import type { Cutting } from "./cutting.ts";
import { NOTHING, type Plan } from "./plan.ts";
import type { UpdateParts } from "./parts.ts";

/** A file as it goes into store and catalog. */
export interface Prepared {
  readonly path: string;
  readonly row: CatalogFile;
  /** Undefined: the store has it as it is, or shall have nothing of it. */
  readonly stored: StoredFile | undefined;
}

export interface Reading {
  readonly plan: Plan;
  readonly listing: Listing;
}

export interface Preparing {
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

/** As it was before it was read. */
function stampOf({ reading: { listing } }: Preparing, path: string): Pick<CatalogFile, "stamp" | "settled"> {
  const stamp = listing.files.get(path) ?? { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
  return { stamp, settled: isSettled(stamp, listing.at) };
}

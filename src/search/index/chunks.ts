import { createHash } from "node:crypto";
import { uuidText } from "../uuid.ts";
import type { Chunk, CutFile, Role, Trust } from "../words.ts";

export interface ChunksOf {
  /** The index they are of. */
  readonly index: string;
  readonly path: string;
  readonly role: Role;
  readonly trust: Trust;
}

/** The pieces of a file as a store holds them. */
export function chunksOf(
  { index, path, role, trust }: ChunksOf,
  { language, pieces }: Extract<CutFile, { readonly kind: "cut" }>,
): readonly Chunk[] {
  const twins = new Map<string, number>();
  return pieces.map((piece) => {
    const hash = createHash("sha256").update(piece.text).digest("hex");
    const place = `${piece.start}-${piece.end} ${hash}`;
    // Of a line that is longer than a chunk there may be two that are alike.
    const twin = twins.get(place) ?? 0;
    twins.set(place, twin + 1);
    const id = uuidOf([index, path, place, String(twin)].join("\0"));
    return { ...piece, id, path, language, role, hash, trust };
  });
}

/** A UUID of the kind that is made from a name (version 8: by a hash of one's own choice). */
function uuidOf(name: string): string {
  const bytes = createHash("sha256").update(name).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidText(bytes.toString("hex"));
}

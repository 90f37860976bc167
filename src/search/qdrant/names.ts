import { createHash } from "node:crypto";
import type { StoredFile, StoreIdentity } from "../store.ts";

/** Code and documentation are kept apart: words are rare in other ways in each. */
export const SHELVES = ["code", "docs"] as const;
export type Shelf = (typeof SHELVES)[number];

export const collectionName = (shelf: Shelf, identity: StoreIdentity): string =>
  `harness-${shelf}-${modelName(identity)}`;

/** By its name a collection is ours, whichever model it was made for. */
export const isOurs = (collection: string): boolean => /^harness-(?:code|docs)-/.test(collection);

/** What the two collections of one identity have in common. */
export const withoutShelf = (collection: string): string => collection.replace(/^harness-(?:code|docs)-/, "");

/** All chunks of a file are on one shelf. */
export const shelfOf = ({ chunks }: StoredFile): Shelf =>
  chunks[0]?.role === "docs" || chunks[0]?.kind === "section" ? "docs" : "code";

const LONGEST = 80;

/** With a digest where the model's name is not all there: two models never share a collection. */
function modelName({ vectors }: StoreIdentity): string {
  if (vectors === null) return "words";
  const plain = vectors.model
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .slice(0, LONGEST);
  const digest = plain === vectors.model ? "" : `-${hexOf(vectors.model).slice(0, 6)}`;
  return `${plain}${digest}-${vectors.dimension}`;
}

export const hexOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A UUID of version 8 (free form) that is the same whenever the parts are. */
export function uuidOf(...parts: readonly string[]): string {
  const hex = hexOf(JSON.stringify(parts));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

import { setImmediate as breath } from "node:timers/promises";
import type { Box } from "../../core/ports.ts";
import type { Skip } from "../words.ts";
import type { Found, Listing, PathRules, RuleFile, Stamp } from "./found.ts";
import { entriesIn } from "./names.ts";
import { ruleFilesOf } from "./rule-files.ts";
import { folderOf, Sieve } from "./sieve.ts";

export interface ListingRequest {
  readonly box: Box;
  readonly rules: PathRules;
  /** Bytes of the largest file that is read. */
  readonly largest: number;
  /** Rule files as they were read last; one with the same stamp is not read again. */
  readonly known: readonly RuleFile[];
  readonly signal: AbortSignal;
}

const SLICE_MS = 10;

/** Which files there are, by one look through the box. */
export async function listingIn(request: ListingRequest): Promise<Listing> {
  const at = Date.now();
  const found: Found[] = [];
  let nameless = 0;
  for await (const names of entriesIn(request.box, request.signal))
    for (const each of names)
      if (each === undefined) nameless += 1;
      else found.push(each);
  const rules = await ruleFilesOf(found, { ...request, most: request.rules.mostOfList, at });
  const texts = new Map(rules.map(({ path, text }) => [path, text]));
  const sieve = new Sieve(request.rules, texts, request.largest);
  return { ...(await sifted(found, { sieve }, request.signal)), rules, nameless, at };
}

/** What counts of what was found in folders that are looked into, and below them. */
export async function sifted(
  found: readonly Found[],
  { sieve, folders = [""] }: { readonly sieve: Sieve; readonly folders?: Iterable<string> },
  signal: AbortSignal,
): Promise<Pick<Listing, "files" | "skipped" | "closed">> {
  const files = new Map<string, Stamp>();
  const skipped = new Map<string, { readonly stamp: Stamp; readonly why: Skip }>();
  const entered = new Set(folders);
  let closed = 0;
  let slice = performance.now();
  for (const { path, kind, stamp } of found) {
    if (performance.now() - slice > SLICE_MS) {
      await breath();
      signal.throwIfAborted();
      slice = performance.now();
    }
    if (!entered.has(folderOf(path))) continue;
    if (kind === "folder" && sieve.enters(path)) entered.add(path);
    if (kind === "closed" && sieve.enters(path)) closed += 1;
    if (kind !== "file") continue;
    const what = sieve.file(path, stamp.size);
    if (what === "read") files.set(path, stamp);
    else if (what !== undefined) skipped.set(path, { stamp, why: what });
  }
  return { files, skipped, closed };
}

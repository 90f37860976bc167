import { EXIT, HarnessError } from "../../core/errors.ts";
import { contentsOf } from "../read/contents.ts";
import type { Listing } from "../read/found.ts";
import { listingIn } from "../read/listing.ts";
import { Batches } from "./batches.ts";
import { type Seen, seenInPart } from "./narrow.ts";
import type { UpdateParts } from "./parts.ts";
import { type Plan, planOf, reconciled } from "./plan.ts";
import { summaryOf, type Summary } from "./summary.ts";
import { leftOut, prepare, type Reading } from "./prepared.ts";

export interface Updated extends Summary {
  /** Files whose text was cut anew, and files that are gone. */
  readonly changed: number;
  readonly removed: number;
}

/** Has an index say what the files say now. Broken off anywhere, the next one goes on where it stopped. */
export async function update(parts: UpdateParts, signal: AbortSignal): Promise<Updated> {
  const { catalog, store } = parts;
  const rules = catalog.rules();
  const { listing, known } =
    (await seenInPart(parts, rules, signal)) ?? (await seenWhole(parts, rules, signal));
  const { version, knownBy = "stamps" } = parts;
  const plan = planOf({ listing, known, version, knownBy });
  const idle = plan.changed.length + plan.gone.length + plan.skipped.size === 0;
  // Before anything is touched, so that a kill or a power cut at any moment finds it said.
  if (!idle) catalog.begin(store.name);
  const removed = await leaveOut(parts, plan, signal);
  const changed = plan.changed.length === 0 ? 0 : await readIn(parts, { plan, listing }, signal);
  if (!sameRules(rules, listing.rules)) catalog.setRules(listing.rules);
  if (!idle) await assertKept(parts, signal);
  // The catalog may not outlast a power cut that the store does not: nobody would compare the two again.
  if (!idle) await store.flush(signal);
  const nameless = listing.nameless + listing.closed;
  catalog.note({ whole: true, updated: Date.now(), nameless, store: store.name });
  return { ...summaryOf(catalog), changed, removed };
}

async function seenWhole(parts: UpdateParts, rules: Listing["rules"], signal: AbortSignal): Promise<Seen> {
  // The box lists while this side reads what is known.
  const [listing, known] = await Promise.all([
    listingIn({ ...parts, known: rules, signal }),
    reconciled(parts.catalog, parts.store, signal),
  ]);
  return { listing, known };
}

/** A server may lose meanwhile what it had taken: then nothing says that the index is whole. */
async function assertKept({ catalog, store }: UpdateParts, signal: AbortSignal): Promise<void> {
  const [{ files }, kept] = [summaryOf(catalog), await store.fileCount(signal)];
  if (kept === files) return;
  throw new HarnessError(
    EXIT.failed,
    `the store holds ${kept} files where ${files} were put into it: somebody changed it meanwhile`,
    "harness index",
  );
}

const sameRules = (a: Listing["rules"], b: Listing["rules"]): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b);

async function leaveOut({ catalog, store }: UpdateParts, plan: Plan, signal: AbortSignal): Promise<number> {
  const { gone, skipped, known } = plan;
  const held = [...gone, ...skipped.keys()].filter((path) => (known.get(path)?.chunks ?? 0) > 0);
  if (held.length > 0) await store.remove(held, signal);
  if (gone.length + skipped.size > 0) catalog.record(skipped, gone);
  return gone.length;
}

/** Reads what has changed; the number of files whose chunks are others now. */
async function readIn(parts: UpdateParts, reading: Reading, signal: AbortSignal): Promise<number> {
  const { changed } = reading.plan;
  await using cutting = parts.cutting(changed.length);
  await using writer = new Batches(parts, reading.plan, signal);
  const unread = new Set(changed);
  for await (const content of contentsOf(parts.box, changed, { most: parts.largest, signal })) {
    unread.delete(content.path);
    await writer.take(prepare({ parts, reading, cutting }, content), content.bytes?.length ?? 0);
    parts.onProgress?.({ done: changed.length - unread.size, total: changed.length });
  }
  for (const path of unread)
    await writer.take(Promise.resolve(leftOut({ parts, reading }, path, "unreadable")), 0);
  return await writer.end();
}

import { EXIT, HarnessError } from "../../core/errors.ts";
import { type CatalogFile, type Summary, summaryOf } from "../embedded/catalog.ts";
import { inTime } from "../index-failure.ts";
import { entriesOfFolders } from "../read/folder-listing.ts";
import { type Found, isSameStamp, isSettled, type Listing, type RuleFile } from "../read/found-file.ts";
import { contentsOf } from "../read/read-contents.ts";
import { folderOf, isRuleFile, Sieve } from "../read/sieve.ts";
import { listingIn, filterEntries } from "../read/workspace-listing.ts";
import { type Plan, planOf, reconciled, type UpdateParts } from "./index-plan.ts";
import { type ChangedFolders, scanForChanges } from "./look-for-changes.ts";
import { leftOut, prepare, type Prepared, type Reading } from "./prepared-files.ts";

export interface Updated extends Summary {
  /** Files that were cut again, and files that are gone. */
  readonly changed: number;
  readonly removed: number;
}

/** Brings an index up to date with the files. After an interruption at any point, the next update continues there. */
export async function update(parts: UpdateParts, signal: AbortSignal): Promise<Updated> {
  const { catalog, store } = parts;
  const rules = catalog.rules();
  const { listing, known } =
    (await listChangedFolders(parts, rules, signal)) ?? (await listEverything(parts, rules, signal));
  const { version, knownBy = "stamps" } = parts;
  const plan = planOf({ listing, known, version, knownBy });
  const idle = plan.changed.length + plan.gone.length + plan.skipped.size === 0;
  // Recorded before anything is changed, so that it is known after a kill or a power cut at any moment.
  if (!idle) catalog.begin(store.name);
  const removed = await leaveOut(parts, plan, signal);
  const changed = plan.changed.length === 0 ? 0 : await readIn(parts, { plan, listing }, signal);
  if (!sameRules(rules, listing.rules)) catalog.setRules(listing.rules);
  if (!idle) await assertKept(parts, signal);
  // After a power cut the catalog must not be newer than the store: the two would never be compared again.
  if (!idle) await store.flush(signal);
  const nameless = listing.nameless + listing.closed;
  catalog.note({ whole: true, updated: Date.now(), nameless, store: store.name });
  return { ...summaryOf(catalog), changed, removed };
}

async function listEverything(
  parts: UpdateParts,
  rules: Listing["rules"],
  signal: AbortSignal,
): Promise<UpdateInput> {
  // The box lists files while this side reads the catalog.
  const [listing, known] = await Promise.all([
    listingIn({ ...parts, known: rules, signal }),
    reconciled(parts.catalog, parts.store, signal),
  ]);
  return { listing, known };
}

/** A server may have lost files that it had accepted; the index must not be marked whole then. */
async function assertKept({ catalog, store }: UpdateParts, signal: AbortSignal): Promise<void> {
  const [{ files }, kept] = [summaryOf(catalog), await store.fileCount(signal)];
  if (kept === files) return;
  throw new HarnessError(
    EXIT.failed,
    `the store no longer holds all ${files} files that were written to it: something else changed it meanwhile`,
    "harness index",
  );
}

const sameRules = (a: Listing["rules"], b: Listing["rules"]): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b);

async function leaveOut({ catalog, store }: UpdateParts, plan: Plan, signal: AbortSignal): Promise<number> {
  const { gone, skipped, known } = plan;
  const indexed = [...gone, ...skipped.keys()].filter((path) => (known.get(path)?.chunks ?? 0) > 0);
  if (indexed.length > 0) await store.remove(indexed, signal);
  if (gone.length + skipped.size > 0) catalog.record(skipped, gone);
  return gone.length;
}

/** Reads the changed files. Returns the number of files whose chunks changed. */
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

/** Files in one transaction of the store, and their bytes. */
const BATCH_FILES = 200;
const BATCH_BYTES = 2 << 20;

/** Writes one batch while the next is read and cut: at most two are in memory. */
class Batches implements AsyncDisposable {
  readonly #parts: UpdateParts;
  readonly #plan: Plan;
  readonly #signal: AbortSignal;
  #batch: Promise<Prepared>[] = [];
  #bytes = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #cut = 0;

  constructor(parts: UpdateParts, plan: Plan, signal: AbortSignal) {
    this.#parts = parts;
    this.#plan = plan;
    this.#signal = signal;
  }

  async take(prepared: Promise<Prepared>, bytes: number): Promise<void> {
    // A rejection is handled when the batch is written.
    prepared.catch(() => undefined);
    this.#batch.push(prepared);
    this.#bytes += bytes;
    if (this.#batch.length >= BATCH_FILES || this.#bytes >= BATCH_BYTES) await this.#next();
  }

  /** Returns the number of files written. */
  async end(): Promise<number> {
    await this.#next();
    await this.#writing;
    return this.#cut;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.catch(() => undefined);
  }

  async #next(): Promise<void> {
    await this.#writing;
    const batch = this.#batch;
    [this.#batch, this.#bytes] = [[], 0];
    this.#writing = this.#write(batch);
    this.#writing.catch(() => undefined);
  }

  async #write(batch: readonly Promise<Prepared>[]): Promise<void> {
    this.#cut += await writeBatch(this.#parts, { batch, plan: this.#plan }, this.#signal);
  }
}

interface Batch {
  readonly batch: readonly Promise<Prepared>[];
  readonly plan: Plan;
}

/**
 * Writes the store first, then the catalog: a file only in the store is found again, a file only in the catalog would
 * be missed.
 */
async function writeBatch(
  { catalog, store }: UpdateParts,
  { batch, plan }: Batch,
  signal: AbortSignal,
): Promise<number> {
  const files = await inTime(() => Promise.all(batch), signal);
  const emptied = files.filter(
    ({ path, row }) => row.chunks === 0 && (plan.known.get(path)?.chunks ?? 0) > 0,
  );
  if (emptied.length > 0)
    await store.remove(
      emptied.map(({ path }) => path),
      signal,
    );
  const stored = files.flatMap((file) => (file.stored === undefined ? [] : [file.stored]));
  if (stored.length > 0) await store.put(stored, signal);
  catalog.record(new Map(files.map(({ path, row }) => [path, row])));
  return stored.length + emptied.length;
}

/** What an update works on: a listing, and what the catalog knows of the same files. */
interface UpdateInput {
  readonly listing: Listing;
  readonly known: ReadonlyMap<string, CatalogFile>;
}

/** With more changed folders everything is listed, which hardly takes longer. */
const MAX_FOLDERS = 40;

/**
 * Lists only the folders in which a scan of the host found changes; the others are as the catalog has them. Undefined
 * if everything must be listed: an update did not end, the ignore rules have changed or are too recent, too much has
 * changed, or the box shows other files than the host.
 */
async function listChangedFolders(
  parts: UpdateParts,
  ruleFiles: readonly RuleFile[],
  signal: AbortSignal,
): Promise<UpdateInput | undefined> {
  const { catalog, store, workspace, rules, largest, version, knownBy = "stamps" } = parts;
  const at = Date.now();
  const { whole, nameless } = catalog.facts();
  if (!whole || nameless > 0 || knownBy !== "stamps") return undefined;
  if (!ruleFiles.every(({ stamp }) => isSettled(stamp, at))) return undefined;
  const files = catalog.stamps(version);
  const request = { workspace, files, ruleFiles, rules, largest, most: MAX_FOLDERS, signal };
  // The server counts while this side scans.
  const [look, stored] = await Promise.all([scanForChanges(request), store.fileCount(signal)]);
  if (look.kind === "other" || look.nameless || stored !== catalog.stored()) return undefined;
  const sieve = new Sieve(rules, new Map(ruleFiles.map(({ path, text }) => [path, text])), largest);
  const change = await changeIn(parts, { look, sieve, ruleFiles }, signal);
  if (change === undefined) return undefined;
  const { found, scope } = change;
  const listing = await filterEntries(found, { sieve, folders: look.folders }, signal);
  const inScope = scope.size === 0 ? [] : [...files.keys()].filter((path) => scope.has(folderOf(path)));
  return { listing: { ...listing, rules: ruleFiles, nameless: 0, at }, known: catalog.filesAt(inScope) };
}

interface ScanContext {
  readonly look: ChangedFolders;
  readonly sieve: Sieve;
  readonly ruleFiles: readonly RuleFile[];
}

interface Change {
  /** Entries of the changed folders and of new folders. */
  readonly found: readonly Found[];
  /** Folders, including deleted ones, whose files shall match `found`. */
  readonly scope: ReadonlySet<string>;
}

async function changeIn(
  { box }: UpdateParts,
  { look, sieve, ruleFiles }: ScanContext,
  signal: AbortSignal,
): Promise<Change | undefined> {
  const { folders, grown } = look;
  if (folders.size === 0) return { found: [], scope: folders };
  // Their ancestors are listed too: a link in place of one would lead elsewhere.
  const listed = withAbove(folders);
  const level = await entriesOfFolders(box, [...listed], { deep: false, signal });
  const there = new Map(level?.map((found) => [found.path, found]));
  if (
    level === undefined ||
    !isAsScanned(look, listed, there) ||
    !areRulesUnchanged(ruleFiles, listed, there)
  )
    return undefined;
  const added = level.filter(
    ({ path, kind }) =>
      kind === "folder" && grown.has(folderOf(path)) && !look.known.has(path) && sieve.enters(path),
  );
  const below = await entriesOfFolders(
    box,
    added.map(({ path }) => path),
    { deep: true, signal },
  );
  if (below === undefined || below.some(({ path }) => isRuleFile(path))) return undefined;
  return { found: [...level, ...below], scope: new Set([...folders, ...goneFrom(look)]) };
}

/** Whether box and host show the same folders in `listed`, of those that the catalog knows. */
function isAsScanned(
  { known, visited }: ChangedFolders,
  listed: ReadonlySet<string>,
  there: ReadonlyMap<string, Found>,
): boolean {
  for (const folder of known) {
    if (folder === "" || !listed.has(folderOf(folder))) continue;
    if (visited.has(folder) !== (there.get(folder)?.kind === "folder")) return false;
  }
  return true;
}

/** Whether all ignore files in `listed` are as they were read. */
function areRulesUnchanged(
  ruleFiles: readonly RuleFile[],
  listed: ReadonlySet<string>,
  there: ReadonlyMap<string, Found>,
): boolean {
  const known = new Map(
    ruleFiles.filter(({ path }) => listed.has(folderOf(path))).map((each) => [each.path, each]),
  );
  const found = [...there.values()].filter(({ path, kind }) => isRuleFile(path) && kind !== "folder");
  return (
    found.length === known.size &&
    found.every(({ path, kind, stamp }) => {
      const before = known.get(path);
      return before !== undefined && kind === "file" && isSameStamp(before.stamp, stamp);
    })
  );
}

/** Known folders that could not be read; their parent shows why. */
const goneFrom = ({ known, visited }: ChangedFolders): readonly string[] =>
  [...known].filter((folder) => !visited.has(folder));

function withAbove(folders: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set([""]);
  for (const folder of folders) for (let at = folder; !all.has(at); at = folderOf(at)) all.add(at);
  return all;
}

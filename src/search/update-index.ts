import { createHash } from "node:crypto";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Box } from "../core/ports.ts";
import { unlessAborted } from "../platform/waits.ts";
import { type Catalog, type CatalogFile, type Summary, summaryOf } from "./catalog.ts";
import { entriesOfFolders, filterEntries, listingIn } from "./files/workspace-listing.ts";
import {
  type Content,
  contentsOf,
  type FoundFile,
  isSameStamp,
  isSettled,
  type Listing,
  type PathRules,
  type RuleFile,
  type FileStamp,
} from "./files/box-files.ts";
import { type ChangedFolders, folderOf, isRuleFile, scanForChanges, Sieve } from "./files/workspace-scan.ts";
import {
  type Chunk,
  type CutFile,
  type SearchStore,
  type Skip,
  type StoredFile,
  type Trust,
  uuidText,
} from "./search-store.ts";
import type { Cutting } from "./files/cutting.ts";
import { roleOf } from "./ranked-query.ts";

/** How a file is recognized; `times`: the files are copies that share only size and modification time with the originals. */
export type Stamps = "stamps" | "times";

/** What an update works with. */
interface UpdateParts {
  /** The box over the workspace. */
  readonly box: Box;
  /** The workspace on the host: absolute and resolved. */
  readonly workspace: string;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  /** The id of the index. */
  readonly index: string;
  readonly trust: Trust;
  readonly rules: PathRules;
  /** Creates the cutter for this many files, when it is first needed. */
  readonly cutting: (files: number) => Cutting;
  /** Changes whenever the same text would give other pieces. */
  readonly version: string;
  readonly largest: number;
  readonly knownBy?: Stamps;
  readonly onProgress?: (progress: IndexProgress) => void;
}

export interface IndexProgress {
  readonly done: number;
  readonly total: number;
}

export interface Updated extends Summary {
  /** Files that were cut again, and files that are gone. */
  readonly changed: number;
  readonly removed: number;
}

/** Brings an index up to date with the files. After an interruption at any point, the next update continues there. */
export async function update(parts: UpdateParts, signal: AbortSignal): Promise<Updated> {
  const { catalog, store } = parts;
  const rules = catalog.rules();
  const input =
    (await listChangedFolders(parts, rules, signal)) ?? (await listEverything(parts, rules, signal));
  const { listing } = input;
  const plan = planOf(parts, input);
  const idle = plan.changed.length + plan.gone.length + plan.skipped.size === 0;
  // Recorded before anything is changed, so that it is known after a kill or a power cut at any moment.
  if (!idle) catalog.begin(store.name);
  const removed = await leaveOut(parts, plan, signal);
  const changed = plan.changed.length === 0 ? 0 : await readIn({ parts, plan, listing }, signal);
  if (!sameRules(rules, listing.rules)) catalog.setRules(listing.rules);
  if (!idle) await assertKept(parts, signal);
  // After a power cut the catalog must not be newer than the store: the two would never be compared again.
  if (!idle) await store.flush(signal);
  const nameless = listing.nameless + listing.closed;
  catalog.note({ whole: true, updated: Date.now(), nameless, store: store.name });
  return { ...summaryOf(catalog), changed, removed };
}

/** What an update works on: a listing, and what the catalog knows of the same files. */
interface UpdateInput {
  readonly listing: Listing;
  readonly known: ReadonlyMap<string, CatalogFile>;
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
async function readIn(reading: Reading, signal: AbortSignal): Promise<number> {
  const { parts, plan } = reading;
  const { changed } = plan;
  await using cutting = parts.cutting(changed.length);
  await using writer = new Batches(parts, plan, signal);
  const unread = new Set(changed);
  for await (const content of contentsOf(parts.box, changed, { most: parts.largest, signal })) {
    unread.delete(content.path);
    await writer.take(prepare(reading, cutting, content), content.bytes?.length ?? 0);
    parts.onProgress?.({ done: changed.length - unread.size, total: changed.length });
  }
  for (const path of unread) await writer.take(Promise.resolve(leftOut(reading, path, "unreadable")), 0);
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
    this.#cut += await writeBatch(this.#parts, this.#plan, batch, this.#signal);
  }
}

/**
 * Writes the store first, then the catalog: a file only in the store is found again, a file only in the catalog would
 * be missed.
 */
async function writeBatch(
  { catalog, store }: UpdateParts,
  plan: Plan,
  batch: readonly Promise<Prepared>[],
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const files = await unlessAborted(Promise.all(batch), signal);
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
  readonly found: readonly FoundFile[];
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
  return { found: [...level, ...below], scope: new Set([...folders, ...unreadFolders(look)]) };
}

/** Whether box and host show the same folders in `listed`, of those that the catalog knows. */
function isAsScanned(
  { known, visited }: ChangedFolders,
  listed: ReadonlySet<string>,
  there: ReadonlyMap<string, FoundFile>,
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
  there: ReadonlyMap<string, FoundFile>,
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
const unreadFolders = ({ known, visited }: ChangedFolders): readonly string[] =>
  [...known].filter((folder) => !visited.has(folder));

function withAbove(folders: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set([""]);
  for (const folder of folders) for (let at = folder; !all.has(at); at = folderOf(at)) all.add(at);
  return all;
}

/** What an update has to do. */
interface Plan {
  /** Files to read, in this order. */
  readonly changed: readonly string[];
  /** Files in the catalog that are gone from the workspace. */
  readonly gone: readonly string[];
  /** Files left out for a reason, newly or with another stamp. */
  readonly skipped: ReadonlyMap<string, CatalogFile>;
  /** Files as the catalog has them, except that those the store has lost count as unread. */
  readonly known: ReadonlyMap<string, CatalogFile>;
}

function planOf({ version, knownBy = "stamps" }: UpdateParts, { listing, known }: UpdateInput): Plan {
  const changed = [...listing.files].filter(([path, stamp]) =>
    isChanged({ version, knownBy }, known.get(path), stamp),
  );
  const skipped = new Map<string, CatalogFile>();
  for (const [path, { stamp, why }] of listing.skipped) {
    const row = known.get(path);
    if (row?.skip === why && !isChanged({ version, knownBy: "stamps" }, { ...row, skip: null }, stamp))
      continue;
    const settled = isSettled(stamp, listing.at);
    skipped.set(path, { ...NOTHING, stamp, settled, version, skip: why });
  }
  const gone = [...known.keys()].filter((path) => !listing.files.has(path) && !listing.skipped.has(path));
  return { changed: changed.map(([path]) => path).toSorted(), gone, skipped, known };
}

function isChanged(
  { version, knownBy }: Required<Pick<UpdateParts, "version" | "knownBy">>,
  row: CatalogFile | undefined,
  stamp: FileStamp,
): boolean {
  if (row === undefined || !row.settled || row.version !== version) return true;
  // The file was left out for its name or size, but no longer is.
  if (row.skip === "secret" || row.skip === "huge") return true;
  return !(knownBy === "stamps" ? isSameStamp : isSameTime)(row.stamp, stamp);
}

/** Values for a file that was not read. */
const NOTHING = { hash: null, language: null, role: null, chunks: 0 } as const;

const isSameTime = (a: FileStamp, b: FileStamp): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs;

/**
 * Compares the catalog with the store: they differ after an interrupted update, or if the store changed since. Files
 * that only the store has are removed from it; files that it has lost count as unread.
 */
async function reconciled(
  catalog: Catalog,
  store: SearchStore,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, CatalogFile>> {
  const files = catalog.files();
  const stored = [...files].filter(([, { chunks }]) => chunks > 0);
  if (catalog.facts().whole && (await store.fileCount(signal)) === stored.length) return files;
  const hashes = await store.fileHashes(signal);
  const lost = new Set(stored.filter(([path, { hash }]) => hashes.get(path) !== hash).map(([path]) => path));
  const strays = [...hashes.keys()].filter((path) => (files.get(path)?.chunks ?? 0) === 0);
  if (strays.length > 0) {
    // After the removal the counts may match by chance, and the rest would never be compared again.
    catalog.begin(store.name);
    await store.remove(strays, signal);
  }
  return new Map([...files].map(([path, file]) => [path, lost.has(path) ? { ...file, ...LOST } : file]));
}

const LOST = { hash: null, settled: false } as const;

/** A file as it is written to store and catalog. */
interface Prepared {
  readonly path: string;
  readonly row: CatalogFile;
  /** Undefined if the store already has the file, or shall not have it. */
  readonly stored: StoredFile | undefined;
}

interface Reading {
  readonly parts: UpdateParts;
  readonly plan: Plan;
  readonly listing: Listing;
}

async function prepare(reading: Reading, cutting: Cutting, { path, bytes }: Content): Promise<Prepared> {
  const { version } = reading.parts;
  if (bytes === null) return leftOut(reading, path, "huge");
  const hash = createHash("sha256").update(bytes).digest("hex");
  const row = reading.plan.known.get(path);
  const seen = stampOf(reading, path);
  if (row !== undefined && row.hash === hash && row.version === version)
    return { path, row: { ...row, ...seen }, stored: undefined };
  const cut = await cutting.cut(path, bytes);
  if (cut.kind === "skipped") return leftOut(reading, path, cut.why, hash);
  const { language } = cut;
  const role = roleOf(path);
  const chunks = chunksOf(reading.parts, { path, role }, cut);
  const read = { ...seen, hash, version, language, role, chunks: chunks.length, skip: null };
  return { path, row: read, stored: chunks.length === 0 ? undefined : { path, hash, chunks } };
}

function leftOut(reading: Reading, path: string, skip: Skip, hash: string | null = null): Prepared {
  const { version } = reading.parts;
  return { path, row: { ...NOTHING, ...stampOf(reading, path), hash, version, skip }, stored: undefined };
}

/** The stamp taken before the file was read. */
function stampOf({ listing }: Reading, path: string): Pick<CatalogFile, "stamp" | "settled"> {
  const stamp = listing.files.get(path) ?? { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
  return { stamp, settled: isSettled(stamp, listing.at) };
}

/** The pieces of a file as a store holds them. */
function chunksOf(
  { index, trust }: UpdateParts,
  { path, role }: Pick<Chunk, "path" | "role">,
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

import { createHash } from "node:crypto";
import type { Box } from "../../core/ports.ts";
import type { Catalog, CatalogFile } from "../catalog/catalog.ts";
import { contentsOf, type Content } from "../read/contents.ts";
import { isSettled, type Listing, type PathRules } from "../read/found.ts";
import { listingIn } from "../read/listing.ts";
import type { SearchStore, StoredFile } from "../store.ts";
import type { Skip, Trust } from "../words.ts";
import { chunksOf } from "./chunks.ts";
import type { Cutting } from "./cutting.ts";
import { NOTHING, type Plan, planOf, reconciled } from "./plan.ts";
import { roleOf } from "./role.ts";

export interface UpdateParts {
  /** Over the workspace. */
  readonly box: Box;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  /** The id of the index. */
  readonly index: string;
  readonly trust: Trust;
  readonly rules: PathRules;
  /** Made when it is first needed, for so many files. */
  readonly cutting: (files: number) => Cutting;
  /** Changes with whatever makes other pieces of the same text. */
  readonly version: string;
  readonly largest: number;
  readonly knownBy?: "stamps" | "times";
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface Updated {
  /** Files in the index. */
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Partial<Record<Skip, number>>>;
  /** Files whose text was cut anew, and files that are gone. */
  readonly changed: number;
  readonly removed: number;
}

/** Has an index say what the files say now. Broken off anywhere, the next one goes on where it stopped. */
export async function update(parts: UpdateParts, signal: AbortSignal): Promise<Updated> {
  const { catalog, store } = parts;
  const before = await reconciled(catalog, store, signal);
  const rules = catalog.rules();
  const listing = await listingIn({ ...parts, known: rules, signal });
  const { version, knownBy = "stamps" } = parts;
  const plan = planOf({ listing, known: before, version, knownBy });
  const idle = plan.changed.length + plan.gone.length + plan.skipped.size === 0;
  // Before anything is touched, so that a kill at any moment finds it said.
  if (!idle) catalog.note({ whole: false, store: store.name });
  const removed = await leaveOut(parts, plan, signal);
  const changed = plan.changed.length === 0 ? 0 : await readIn(parts, { plan, listing }, signal);
  if (!sameRules(rules, listing.rules)) catalog.setRules(listing.rules);
  catalog.note({ whole: true, updated: Date.now(), nameless: listing.nameless, store: store.name });
  return { ...summaryOf(catalog), changed, removed };
}

export function summaryOf(catalog: Catalog): Pick<Updated, "files" | "chunks" | "skipped"> {
  const rows = [...catalog.files().values()];
  const skipped: Partial<Record<Skip, number>> = {};
  for (const { skip } of rows) if (skip !== null) skipped[skip] = (skipped[skip] ?? 0) + 1;
  const { nameless } = catalog.facts();
  if (nameless > 0) skipped.unreadable = (skipped.unreadable ?? 0) + nameless;
  return {
    files: rows.filter(({ chunks }) => chunks > 0).length,
    chunks: rows.reduce((sum, { chunks }) => sum + chunks, 0),
    skipped,
  };
}

const sameRules = (a: Listing["rules"], b: Listing["rules"]): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

async function leaveOut({ catalog, store }: UpdateParts, plan: Plan, signal: AbortSignal): Promise<number> {
  const { gone, skipped, known } = plan;
  const held = [...gone, ...skipped.keys()].filter((path) => (known.get(path)?.chunks ?? 0) > 0);
  if (held.length > 0) await store.remove(held, signal);
  if (gone.length + skipped.size > 0) catalog.record(skipped, gone);
  return gone.length;
}

/** Files of one transaction of the store, and bytes of them. */
const BATCH_FILES = 400;
const BATCH_BYTES = 4 << 20;

interface Prepared {
  readonly path: string;
  readonly row: CatalogFile;
  /** Undefined: the store has it as it is, or shall have nothing of it. */
  readonly stored: StoredFile | undefined;
}

interface Reading {
  readonly plan: Plan;
  readonly listing: Listing;
}

/** Reads what has changed; the number of files whose chunks are others now. */
async function readIn(parts: UpdateParts, reading: Reading, signal: AbortSignal): Promise<number> {
  const { changed } = reading.plan;
  await using cutting = parts.cutting(changed.length);
  await using writer = new Writer(parts, reading.plan, signal);
  const unread = new Set(changed);
  for await (const content of contentsOf(parts.box, changed, { most: parts.largest, signal })) {
    unread.delete(content.path);
    await writer.take(prepare({ parts, reading, cutting }, content), content.bytes?.length ?? 0);
    parts.onProgress?.({ done: changed.length - unread.size, total: changed.length });
  }
  for (const path of unread)
    await writer.take(Promise.resolve(leftOut({ parts, reading }, path, "unreadable")), 0);
  return writer.end();
}

/** Writes one batch while the next is read and cut: no more than two are held. */
class Writer implements AsyncDisposable {
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
    // Heard when its batch is written.
    prepared.catch(() => undefined);
    this.#batch.push(prepared);
    this.#bytes += bytes;
    if (this.#batch.length >= BATCH_FILES || this.#bytes >= BATCH_BYTES) await this.#next();
  }

  /** How many files were written. */
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
    this.#writing = written(this.#parts, { batch, plan: this.#plan }, this.#signal).then((count) => {
      this.#cut += count;
    });
    this.#writing.catch(() => undefined);
  }
}

interface Preparing {
  readonly parts: UpdateParts;
  readonly reading: Reading;
}

async function prepare(
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
  const role = roleOf(path, language);
  const chunks = chunksOf({ index, path, role, trust }, cut);
  const read = { ...seen, hash, version, language, role, chunks: chunks.length, skip: null };
  return { path, row: read, stored: chunks.length === 0 ? undefined : { path, hash, chunks } };
}

function leftOut(given: Preparing, path: string, skip: Skip, hash: string | null = null): Prepared {
  const { version } = given.parts;
  return { path, row: { ...NOTHING, ...stampOf(given, path), hash, version, skip }, stored: undefined };
}

/** As it was before it was read. */
function stampOf({ reading: { listing } }: Preparing, path: string): Pick<CatalogFile, "stamp" | "settled"> {
  const stamp = listing.files.get(path) ?? { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
  return { stamp, settled: isSettled(stamp, listing.at) };
}

interface Batch {
  readonly batch: readonly Promise<Prepared>[];
  readonly plan: Plan;
}

/** First the store, then the catalog: what is only in the store is found again, what is only said would be missed. */
async function written(
  { catalog, store }: UpdateParts,
  { batch, plan }: Batch,
  signal: AbortSignal,
): Promise<number> {
  const files = await Promise.all(batch);
  signal.throwIfAborted();
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

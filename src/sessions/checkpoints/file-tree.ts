import { createHash, hash } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { replaceFileSync, writeWhole } from "../../platform/safe-files.ts";
import { makeFolder } from "../../platform/folders.ts";
import { type Entry, keyOf, pathOf, sameEntry, type Tree } from "./entry.ts";
import { type EntryCursor, EntryList, type EntryRecord, EntryWriter, listIn } from "./entry-list.ts";

/** The trees of a workspace: how they are stored in files, merged and compared. */

/** A tree in a file: either whole, or as its differences from an earlier tree of the same session. */
interface Stored {
  readonly base: string | null;
  readonly records: EntryList;
}

/** At most this many consecutive trees depend on each other. */
const MAX_CHAIN_LENGTH = 40;

/** Files `<session>.<number>`: written under another name and renamed, so a tree under its own name is complete. */
export class TreeFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    makeFolder(folder);
  }

  /**
   * Call it only after the contents named in the tree are durable. `last` is the tree saved before; it is returned if
   * nothing changed.
   */
  save(session: string, files: Tree, last?: SavedTree): SavedTree {
    const tree = asEntryList(files);
    const stored = storedOf(tree, last);
    if (last !== undefined && stored.base !== null && stored.records.size === 0) return last;
    const id = `${session}.${this.#next(session)}`;
    this.#write(id, stored);
    return { id, tree, chain: stored.base === null ? 0 : (last?.chain ?? 0) + 1 };
  }

  load(id: string): EntryList {
    let { base, records } = this.#read(id);
    while (base !== null) {
      const earlier = this.#read(base);
      records = merged(earlier.records, records, earlier.base === null);
      ({ base } = earlier);
    }
    return records;
  }

  /** The changes from one tree to another, if the second is stored as such. */
  deltaFrom(base: string, id: string): EntryList | undefined {
    const stored = this.#read(id);
    return stored.base === base ? stored.records : undefined;
  }

  /** Names of all contents that any tree needs. */
  live(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const id of this.ids())
      for (const [, entry] of this.#read(id).records)
        if (entry.kind === "file") for (const piece of entry.pieces) ids.add(piece);
    return ids;
  }

  ids(): readonly string[] {
    return readdirSync(this.folder).filter((name) => NAME.test(name));
  }

  /**
   * Removes the last trees first, because they depend on earlier ones: after a kill, the remaining ones are complete.
   */
  forget(session: string): void {
    const names = readdirSync(this.folder).filter((name) => name.startsWith(`${session}.`));
    const numbered = names.map(
      (name) => [Number.parseInt(name.slice(session.length + 1), 10), name] as const,
    );
    for (const [, name] of numbered.toSorted(([a], [b]) => b - a))
      rmSync(path.join(this.folder, name), { force: true });
  }

  /** No number is used twice, even if trees were removed: steps name trees that no longer exist. */
  #next(session: string): number {
    const numbers = this.ids()
      .filter((id) => id.startsWith(`${session}.`))
      .map((id) => Number(id.slice(session.length + 1)));
    return Math.max(Date.now(), Math.max(0, ...numbers) + 1);
  }

  #read(id: string): Stored {
    try {
      if (!NAME.test(id)) throw new Error("not the name of a tree");
      return storedIn(readFileSync(path.join(this.folder, id)));
    } catch (thrown) {
      throw new HarnessError(
        EXIT.failed,
        `the checkpoint ${id} is gone or damaged`,
        "harness undo --to STEP   (old checkpoints are removed when there are too many: harness diff --steps)",
        thrown,
      );
    }
  }

  #write(id: string, stored: Stored): void {
    const aside = path.join(this.folder, `${id}.new`);
    const write = (descriptor: number): void =>
      writeList(descriptor, `${MARK}${stored.base ?? ""}\n`, stored.records);
    replaceFileSync(path.join(this.folder, id), write, { aside, lasts: "content" });
  }
}

export interface SavedTree {
  readonly id: string;
  readonly tree: EntryList;
  readonly chain: number;
}

const NAME = /^[\w-]+\.\d+$/;

/** Begins a tree file, followed by the name of the tree that it builds on. Earlier versions wrote compressed JSON. */
const MARK = "harness tree 2 ";

function storedIn(bytes: Buffer): Stored {
  if (!bytes.subarray(0, MARK.length).equals(Buffer.from(MARK))) return storedAsJson(bytes);
  const { head, list } = readList(bytes);
  return { base: head.slice(MARK.length) || null, records: list };
}

function storedAsJson(bytes: Buffer): Stored {
  const { base, entries, gone } = JSON.parse(zstdDecompressSync(bytes).toString()) as {
    readonly base: string | null;
    readonly entries: readonly (readonly [path: string, entry: Entry])[];
    readonly gone: readonly string[];
  };
  return { base, records: listOf([...entries, ...gone.map((at) => [at, undefined] as const)]) };
}

const GATHERED_BYTES = 2 ** 20;
const CHECKSUM_BYTES = 32;

/** Writes a first line, the list, and the SHA-256 of both. */
export function writeList(descriptor: number, head: string, list: EntryList): void {
  const sum = createHash("sha256");
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    parts.push(part);
    length += part.length;
    if (length < GATHERED_BYTES) return;
    writeWhole(descriptor, Buffer.concat(parts));
    parts = [];
    length = 0;
  };
  for (const part of [Buffer.from(head), ...list.bytes()]) {
    sum.update(part);
    add(part);
  }
  writeWhole(descriptor, Buffer.concat([...parts, sum.digest()]));
}

/** Throws if the bytes are not what was written. */
export function readList(bytes: Buffer): { readonly head: string; readonly list: EntryList } {
  const body = bytes.subarray(0, Math.max(0, bytes.length - CHECKSUM_BYTES));
  if (hash("sha256", body, "hex") !== bytes.toString("hex", body.length)) throw new Error("it is damaged");
  const end = body.indexOf(0x0a);
  return { head: body.toString("latin1", 0, end), list: listIn(body.subarray(end + 1)) };
}

function storedOf(tree: EntryList, last: SavedTree | undefined): Stored {
  if (last === undefined) return { base: null, records: tree };
  const writer = new EntryWriter();
  for (const { key, to } of changedIn(last.tree, tree)) {
    if (last.chain >= MAX_CHAIN_LENGTH || (writer.size + 1) * 2 > tree.size)
      return { base: null, records: tree };
    writer.add(key, to);
  }
  return { base: last.id, records: writer.finish() };
}

/** Up to this many changed paths are kept beside a tree before both are merged into a new tree. */
const MAX_CHANGED = 5000;

/** Moves from tree to tree while holding only one in memory. */
export class TreeWalk {
  readonly #files: TreeFiles;
  #id: string | undefined;
  #tree: EntryList = new EntryList([]);
  #changed = new Map<string, Entry | undefined>();

  constructor(files: TreeFiles) {
    this.#files = files;
  }

  /**
   * Yields the differences from the current tree; nothing for the first tree. Read it to its end before the next move.
   */
  *moveTo(id: string): Generator<EntryChange> {
    const here = this.#id;
    if (here === id) return;
    this.#id = id;
    const delta = here === undefined ? undefined : this.#files.deltaFrom(here, id);
    if (delta === undefined) {
      const before = this.#whole();
      this.#tree = this.#files.load(id);
      if (here !== undefined) yield* changesBetween(before, this.#tree);
    } else if (delta.size > MAX_CHANGED) {
      const before = this.#whole();
      this.#tree = merged(before, delta);
      yield* changesBetween(before, this.#tree);
    } else yield* this.#through(delta);
  }

  *#through(delta: EntryList): Generator<EntryChange> {
    for (const [path, to] of delta.records()) {
      const from = this.#changed.has(path) ? this.#changed.get(path) : this.#tree.get(path);
      this.#changed.set(path, to);
      yield { path, from, to };
    }
    if (this.#changed.size > MAX_CHANGED) this.#tree = this.#whole();
  }

  #whole(): EntryList {
    const whole = this.#changed.size === 0 ? this.#tree : merged(this.#tree, listOf(this.#changed));
    this.#changed = new Map();
    return whole;
  }
}

function asEntryList(tree: Tree): EntryList {
  return tree instanceof EntryList ? tree : listOf(tree);
}

/** Accepts records in any order. */
export function listOf(records: Iterable<EntryRecord>): EntryList {
  const all = Array.from(records, ([path, entry]) => ({ key: keyOf(path), entry }));
  const writer = new EntryWriter();
  for (const { key, entry } of all.toSorted((a, b) => Buffer.compare(a.key, b.key))) writer.add(key, entry);
  return writer.finish();
}

/** Below 0: take the first; 0: take both; above 0: take the second. */
const orderOf = (a: EntryCursor, b: EntryCursor): number =>
  b.ended ? -1 : a.compareTo(b.key.subarray(0, b.keyLength));

/** The older tree with the newer records on top; `whole`: leaves out records of removed paths. */
export function merged(older: EntryList, newer: EntryList, whole = true): EntryList {
  const writer = new EntryWriter();
  const [a, b] = [older.cursor(), newer.cursor()];
  a.next();
  b.next();
  while (!a.ended || !b.ended) {
    const order = orderOf(a, b);
    const from = order < 0 ? a : b;
    if (!whole || !from.isGone) writer.copy(from);
    if (order <= 0) a.next();
    if (order >= 0) b.next();
  }
  return writer.finish();
}

/** The tree with these entries replaced; undefined removes an entry. */
export const overlaid = (tree: Tree, changes: ReadonlyMap<string, Entry | undefined>): EntryList =>
  merged(asEntryList(tree), listOf(changes));

export function filtered(tree: Tree, isWanted: (path: string) => boolean): EntryList {
  const writer = new EntryWriter();
  for (const cursor = asEntryList(tree).cursor(); cursor.next();)
    if (isWanted(cursor.path)) writer.copy(cursor);
  return writer.finish();
}

export interface EntryChange {
  readonly path: string;
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

interface KeyChange extends Omit<EntryChange, "path"> {
  readonly key: Buffer;
}

/** In key order; a yielded key is valid only until the next one. */
function* changedIn(before: EntryList, after: EntryList): Generator<KeyChange> {
  const [a, b] = [before.cursor(), after.cursor()];
  a.next();
  b.next();
  while (!a.ended || !b.ended) {
    const order = orderOf(a, b);
    if (order !== 0 || !a.isAlike(b)) {
      const { key, keyLength } = order < 0 ? a : b;
      const [from, to] = [order <= 0 ? a.entry : undefined, order >= 0 ? b.entry : undefined];
      if (!sameEntry(from, to)) yield { key: key.subarray(0, keyLength), from, to };
    }
    if (order <= 0) a.next();
    if (order >= 0) b.next();
  }
}

export function* changesBetween(before: EntryList, after: EntryList): Generator<EntryChange> {
  for (const { key, from, to } of changedIn(before, after)) yield { path: pathOf(key), from, to };
}

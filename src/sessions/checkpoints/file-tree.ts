import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { replaceFileSync } from "../../platform/safe-files.ts";
import { type Entry, sameEntry, type Tree } from "./entry.ts";

/** A tree as a file: whole, or what is other than in an earlier one of the same session. */
interface Stored {
  readonly base: string | null;
  readonly entries: readonly (readonly [path: string, entry: Entry])[];
  readonly gone: readonly string[];
}

/** So many in a row need each other at most. */
const LONGEST_CHAIN = 40;

/** `<session>.<number>`: written aside and renamed, so that a tree under its name is whole. */
export class TreeFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Only when what it names is durable. `last`: the tree that was saved before it, or its own when nothing changed. */
  save(session: string, tree: Tree, last?: SavedTree): SavedTree {
    const stored = storedOf(tree, last);
    if (last !== undefined && stored.base !== null && stored.entries.length + stored.gone.length === 0)
      return last;
    const id = `${session}.${this.#next(session)}`;
    this.#write(id, zstdCompressSync(JSON.stringify(stored)));
    return { id, tree, chain: stored.base === null ? 0 : (last?.chain ?? 0) + 1 };
  }

  load(id: string): Tree {
    const { base, entries, gone } = this.#read(id);
    const tree = new Map(base === null ? [] : this.load(base));
    for (const at of gone) tree.delete(at);
    for (const [at, entry] of entries) tree.set(at, entry);
    return tree;
  }

  /** How a tree came from another, where it is kept so. */
  deltaFrom(base: string, id: string): Pick<Stored, "entries" | "gone"> | undefined {
    const stored = this.#read(id);
    return stored.base === base ? stored : undefined;
  }

  /** Names of contents that any tree needs. */
  live(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const id of this.ids())
      for (const [, entry] of this.#read(id).entries)
        if (entry.kind === "file") for (const piece of entry.pieces) ids.add(piece);
    return ids;
  }

  ids(): readonly string[] {
    return readdirSync(this.folder).filter((name) => NAME.test(name));
  }

  /** The last ones first, which need those before them: what a kill leaves is whole. */
  forget(session: string): void {
    const names = readdirSync(this.folder).filter((name) => name.startsWith(`${session}.`));
    const numbered = names.map(
      (name) => [Number.parseInt(name.slice(session.length + 1), 10), name] as const,
    );
    for (const [, name] of numbered.toSorted(([a], [b]) => b - a))
      rmSync(path.join(this.folder, name), { force: true });
  }

  #next(session: string): number {
    const numbers = this.ids()
      .filter((id) => id.startsWith(`${session}.`))
      .map((id) => Number(id.slice(session.length + 1)));
    return Math.max(0, ...numbers) + 1;
  }

  #read(id: string): Stored {
    try {
      if (!NAME.test(id)) throw new Error("this is no name of a tree");
      return JSON.parse(zstdDecompressSync(readFileSync(path.join(this.folder, id))).toString()) as Stored;
    } catch (thrown) {
      throw new HarnessError(
        EXIT.failed,
        `the checkpoint ${id} is gone or damaged`,
        "harness diff --steps   (older checkpoints make room when there are too many)",
        thrown,
      );
    }
  }

  #write(id: string, bytes: Buffer): void {
    const aside = path.join(this.folder, `${id}.new`);
    replaceFileSync(path.join(this.folder, id), bytes, { aside, lasts: "content" });
  }
}

export interface SavedTree {
  readonly id: string;
  readonly tree: Tree;
  readonly chain: number;
}

const NAME = /^[\w-]+\.\d+$/;

function storedOf(tree: Tree, last: SavedTree | undefined): Stored {
  if (last === undefined) return { base: null, entries: [...tree], gone: [] };
  const entries = [...tree].filter(([at, entry]) => !sameEntry(entry, last.tree.get(at)));
  const gone = [...last.tree.keys()].filter((at) => !tree.has(at));
  const changes = entries.length + gone.length;
  if (changes > 0 && (last.chain >= LONGEST_CHAIN || changes * 2 > tree.size))
    return { base: null, entries: [...tree], gone: [] };
  return { base: last.id, entries, gone };
}

export interface EntryChange {
  readonly path: string;
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

/** Goes from tree to tree with one of them in memory. */
export class TreeWalk {
  readonly #files: TreeFiles;
  #at: { readonly id: string; readonly tree: Map<string, Entry> } | undefined;

  constructor(files: TreeFiles) {
    this.#files = files;
  }

  /** What is other there; nothing for the first one. */
  moveTo(id: string): readonly EntryChange[] {
    const here = this.#at;
    if (here?.id === id) return [];
    const delta = here === undefined ? undefined : this.#files.deltaFrom(here.id, id);
    if (here === undefined || delta === undefined) {
      const tree = new Map(this.#files.load(id));
      this.#at = { id, tree };
      return here === undefined ? [] : changesBetween(here.tree, tree);
    }
    const changes: EntryChange[] = [];
    for (const path of delta.gone) {
      changes.push({ path, from: here.tree.get(path), to: undefined });
      here.tree.delete(path);
    }
    for (const [path, to] of delta.entries) {
      changes.push({ path, from: here.tree.get(path), to });
      here.tree.set(path, to);
    }
    this.#at = { id, tree: here.tree };
    return changes;
  }
}

function changesBetween(before: Tree, after: Tree): readonly EntryChange[] {
  const changes: EntryChange[] = [];
  for (const [path, from] of before)
    if (!sameEntry(from, after.get(path))) changes.push({ path, from, to: after.get(path) });
  for (const [path, to] of after) if (!before.has(path)) changes.push({ path, from: undefined, to });
  return changes;
}

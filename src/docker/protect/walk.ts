import { Buffer } from "node:buffer";
import type { Dir, Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { errorCode } from "../../core/errors.ts";
import { textOfBytes } from "../../core/byte-text.ts";
import { fold, isDependencies, protectedName } from "../../core/protected-names.ts";

export interface Walked {
  /** Absolute paths as `textOfBytes` gives them: protected names, and folders that git takes for a bare repository. None lies in another. */
  readonly found: readonly string[];
  /** False when a bound ended the search; `warnings` then says so. */
  readonly complete: boolean;
  readonly warnings: readonly string[];
}

export interface Bounds {
  readonly entries: number;
  readonly ms: number;
}

const BOUNDS: Bounds = { entries: 200_000, ms: 10_000 };

/** Reads at one time; the file system calls of Node run on four threads. */
const LANES = 4;

/**
 * Looks for what is protected by name or by its markers: one opendir a folder, no stat, no link followed.
 * Upper folders come first and dependencies last, so that a bound cuts off what matters least.
 * Paths are handled as bytes (one character a byte), because a name need not be UTF-8.
 */
export async function walk(root: string, bounds: Bounds = BOUNDS): Promise<Walked> {
  const found: string[] = [];
  const warnings: string[] = [];
  const until = performance.now() + bounds.ms;
  let queues: Queues = {
    level: [{ path: bytes(root), atTop: true, inDependencies: false }],
    dependencies: [],
  };
  let entries = 0;
  const spent = (): boolean => entries >= bounds.entries || performance.now() >= until;
  while (queues.level.length > 0 && !spent()) {
    const below: Folder[] = [];
    for (let at = 0; at < queues.level.length && !spent(); at += LANES) {
      const lanes = queues.level.slice(at, at + LANES);
      for (const seen of await Promise.all(lanes.map((folder) => search(folder, bounds.entries)))) {
        entries += seen.entries;
        for (const file of seen.found) found.push(file);
        warnings.push(...seen.warnings);
        for (const folder of seen.below) below.push(folder);
      }
    }
    queues = nextLevel(queues.dependencies, below);
  }
  const complete = !spent();
  if (!complete)
    warnings.push(`${root} was not searched to its end: a bound was reached after ${entries} entries`);
  return { found: found.map((file) => textOfBytes(Buffer.from(file, "latin1"))), complete, warnings };
}

interface Queues {
  readonly level: readonly Folder[];
  readonly dependencies: readonly Folder[];
}

function nextLevel(waiting: readonly Folder[], below: readonly Folder[]): Queues {
  const level = below.filter(({ inDependencies }) => !inDependencies);
  const dependencies = [...waiting, ...below.filter(({ inDependencies }) => inDependencies)];
  return level.length > 0 ? { level, dependencies } : { level: dependencies, dependencies: [] };
}

interface Seen {
  readonly entries: number;
  readonly found: readonly string[];
  readonly below: readonly Folder[];
  readonly warnings: readonly string[];
}

async function search(folder: Folder, limit: number): Promise<Seen> {
  const read = await list(folder.path, limit);
  if (typeof read === "string") {
    const warnings = read === "ENOENT" ? [] : [`${printable(folder.path)} could not be searched: ${read}`];
    return { entries: 0, found: [], below: [], warnings };
  }
  const entries = read.length;
  if (!folder.atTop && isGitLayout(read)) return { entries, found: [folder.path], below: [], warnings: [] };
  const found: string[] = [];
  const below: Folder[] = [];
  for (const { name, directory } of read) {
    const file = `${folder.path}/${name}`;
    if (isProtected(name, folder)) found.push(file);
    else if (directory)
      below.push({ path: file, atTop: false, inDependencies: folder.inDependencies || isDependencies(name) });
  }
  return { entries, found, below, warnings: [] };
}

interface Folder {
  readonly path: string;
  readonly atTop: boolean;
  readonly inDependencies: boolean;
}

interface Entry {
  readonly name: string;
  readonly directory: boolean;
  readonly link: boolean;
}

function isProtected(name: string, { atTop, inDependencies }: Folder): boolean {
  const text = ASCII.test(name) ? name : Buffer.from(name, "latin1").toString("utf8");
  return inDependencies ? fold(text) === ".git" : protectedName(text, atTop) !== undefined;
}

const ASCII = /^[\u0000-\u007f]*$/;

/**
 * What git accepts as a repository without being called .git: HEAD beside objects and refs, or beside a
 * commondir file. A config file beside a hooks folder is one that only lacks what the box could add.
 */
function isGitLayout(entries: readonly Entry[]): boolean {
  let seen = 0;
  for (const { name, directory, link } of entries) {
    const mark = MARKS.get(name.length > 9 ? "" : name.toLowerCase());
    if (mark !== undefined && (link || mark.directory === directory)) seen |= mark.bit;
  }
  return LAYOUTS.some((layout) => (seen & layout) === layout);
}

const MARKS: ReadonlyMap<string, { readonly bit: number; readonly directory: boolean }> = new Map([
  ["head", { bit: 1, directory: false }],
  ["objects", { bit: 2, directory: true }],
  ["refs", { bit: 4, directory: true }],
  ["commondir", { bit: 8, directory: false }],
  ["config", { bit: 16, directory: false }],
  ["hooks", { bit: 32, directory: true }],
]);

const LAYOUTS = [1 | 2 | 4, 1 | 8, 16 | 32];

/** The folder's entries, at most `limit`, or the system's code for why not. */
async function list(folder: string, limit: number): Promise<readonly Entry[] | string> {
  const entries: Entry[] = [];
  try {
    // Its types do not know the encoding `buffer`. Read in chunks: one hostile folder must not fill the memory.
    const options = { encoding: "buffer" as BufferEncoding, bufferSize: 1024 };
    const opened = await opendir(Buffer.from(folder, "latin1"), options);
    try {
      for (let entry = next(opened); entry !== null && entries.length < limit; entry = next(opened))
        entries.push({
          name: entry.name.toString("latin1"),
          directory: entry.isDirectory(),
          link: entry.isSymbolicLink(),
        });
    } finally {
      opened.closeSync();
    }
    return entries;
  } catch (thrown) {
    return errorCode(thrown) ?? "unreadable";
  }
}

const next = (opened: Dir): Dirent<Buffer> | null => opened.readSync() as unknown as Dirent<Buffer> | null;

/** Whether git would take this very folder for a repository when it has no .git of its own. */
export async function isBare(folder: string): Promise<boolean> {
  const read = await list(bytes(folder), BOUNDS.entries);
  return typeof read !== "string" && isGitLayout(read);
}

const bytes = (file: string): string => Buffer.from(file, "utf8").toString("latin1");

const printable = (file: string): string =>
  JSON.stringify(Buffer.from(file, "latin1").toString("utf8")).slice(1, -1);

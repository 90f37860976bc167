import { opendir, stat } from "node:fs/promises";
import path from "node:path";
import { isBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { SessionInfo } from "../../core/session.ts";
import { visibleLine } from "../../core/visible.ts";
import { bytesOfName, textOfName } from "../../platform/folder-tree.ts";
import { readRegularHead } from "../../platform/safe-files.ts";
import { beginsAsBundle } from "../../sessions/session-bundle.ts";
import type { Host } from "../host.ts";
import { infoOfBundle, readBundle, type ReadBundle, recordsOfBundle } from "./read-bundle.ts";

interface BundledSession extends SessionInfo {
  /** The bundle's file. */
  readonly bundle: string;
}

export interface BundleFilter {
  readonly limit: number;
  /** Searched for in titles and messages. */
  readonly query?: string | undefined;
}

export interface BundleList {
  /** Most recently changed first. */
  readonly sessions: readonly BundledSession[];
  /** Messages on files that could not be read, or cannot be trusted: each names its file. */
  readonly faults: readonly string[];
}

/** Deep enough for the volume of a batch: its hash, the folder of its results, the files. */
const DEEPEST = 3;
/** The most entries of a folder and its subfolders, so that the search ends in any tree. */
const MOST_ENTRIES = 100_000;
const MOST_FAULTS = 1000;
const HEAD_BYTES = 512;

/**
 * The sessions of a file, or of all files in a folder or a bucket, with one file in memory at a time. Writes nothing.
 */
export async function bundledSessions(
  host: Pick<Host, "env">,
  place: string,
  { query = "", limit }: BundleFilter,
): Promise<BundleList> {
  const many = await filesAt(host, place);
  const { files, isFatal } = many ?? { files: [{ file: place }], isFatal: () => true };
  const found: { sessions: BundledSession[]; faults: string[] } = { sessions: [], faults: [] };
  let seen = 0;
  for await (const { file, fault } of files as AsyncIterable<Candidate> | Iterable<Candidate>) {
    seen += 1;
    const told: BundleLook =
      fault === undefined
        ? await readOne(host, file, { query, alone: many === undefined, isFatal })
        : { fault };
    if (told.fault !== undefined) found.faults.push(told.fault);
    if (found.faults.length === MOST_FAULTS) {
      found.faults.push(`${place}: the files after ${file} were not read`);
      break;
    }
    if (told.session !== undefined)
      found.sessions = [...found.sessions, told.session].toSorted(newestFirst).slice(0, limit);
  }
  if (seen > 0) return found;
  throw new HarnessError(
    EXIT.usage,
    `there is no session bundle in ${visibleLine(place)}`,
    "harness sessions export ID --bundle FILE",
  );
}

interface FileGroup {
  readonly files: AsyncIterable<Candidate>;
  /** Whether the error affects all files, and so ends the list. */
  readonly isFatal: (thrown: HarnessError) => boolean;
}

/** Undefined for a single file. */
async function filesAt({ env }: Pick<Host, "env">, place: string): Promise<FileGroup | undefined> {
  if (isBucketAddress(place)) {
    if (place.endsWith(".tar")) return undefined;
    const { bundlesBelow, isTransient } = await import("./bundle-bucket.ts");
    return { files: bounded(bundlesBelow(env, place), place), isFatal: isTransient };
  }
  const isFolder = await stat(place).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isFolder ? { files: filesIn(place), isFatal: () => false } : undefined;
}

async function* bounded(files: AsyncIterable<string>, place: string): AsyncGenerator<Candidate> {
  let entries = 0;
  for await (const file of files) {
    if ((entries += 1) > MOST_ENTRIES) {
      yield tooManyEntries(place);
      return;
    }
    yield { file };
  }
}

const tooManyEntries = (place: string): Candidate => ({
  file: place,
  fault: `${place}: more than ${MOST_ENTRIES} files; not all were read`,
});

interface BundleLook {
  readonly session?: BundledSession;
  readonly fault?: string;
}

/**
 * The error of a bundle that is named alone keeps its exit code; among many, an error must not hide the other bundles.
 */
async function readOne(
  host: Pick<Host, "env">,
  file: string,
  {
    query,
    isFatal,
    alone,
  }: { readonly query: string; readonly alone: boolean; readonly isFatal: FileGroup["isFatal"] },
): Promise<BundleLook> {
  try {
    const read = await readBundle(host, file, alone ? "follow" : "refuse");
    const { broken } = read.opened.audit;
    const fault =
      broken === null ? {} : { fault: `${file}: its audit is broken at line ${broken.line}: ${broken.why}` };
    return matches(read, query.toLowerCase())
      ? { ...fault, session: { ...infoOfBundle(read), bundle: file } }
      : fault;
  } catch (thrown) {
    if (alone || !(thrown instanceof HarnessError) || isFatal(thrown)) throw thrown;
    return { fault: thrown.message };
  }
}

const newestFirst = (a: BundledSession, b: BundledSession): number =>
  b.changed - a.changed || (a.id < b.id ? 1 : -1);

const matches = (read: ReadBundle, query: string): boolean =>
  infoOfBundle(read).title.toLowerCase().includes(query) ||
  recordsOfBundle(read).some(
    (record) => record.kind === "message" && record.message.text.toLowerCase().includes(query),
  );

interface Candidate {
  readonly file: string;
  readonly fault?: string;
}

/** A name may not be valid UTF-8. */
const BY_BYTES = { encoding: "buffer" as BufferEncoding };

/** Files that may be bundles; opening them decides. Links are not followed: the folder may be anybody's. */
async function* filesIn(place: string): AsyncGenerator<Candidate> {
  const folders = [{ folder: place, depth: 0 }];
  let entries = 0;
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const { folder, depth } = next;
    const found: { readonly name: string; readonly kind: "folder" | "file" }[] = [];
    try {
      for await (const entry of await opendir(bytesOfName(folder), BY_BYTES)) {
        if ((entries += 1) > MOST_ENTRIES) break;
        const kind = entry.isDirectory() ? "folder" : entry.isFile() ? "file" : undefined;
        if (kind !== undefined) found.push({ name: textOfName(entry.name as unknown as Buffer), kind });
      }
    } catch (thrown) {
      yield { file: folder, fault: `${folder} cannot be listed: ${reasonOf(thrown)}` };
    }
    for (const { name, kind } of found.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = path.join(folder, name);
      if (kind === "folder" && depth < DEEPEST) folders.push({ folder: file, depth: depth + 1 });
      else if (kind === "file" && (await mayBeOne(file))) yield { file };
    }
    if (entries > MOST_ENTRIES) {
      yield tooManyEntries(place);
      return;
    }
  }
}

/** The name of a file that is still being written ends like this. */
const ASIDE = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function mayBeOne(file: string): Promise<boolean> {
  if (ASIDE.test(file)) return false;
  if (file.endsWith(".tar")) return true;
  const head = await readRegularHead(bytesOfName(file), { links: "refuse", max: HEAD_BYTES }).catch(
    () => undefined,
  );
  return head !== undefined && beginsAsBundle(head);
}

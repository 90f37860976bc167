import { Buffer } from "node:buffer";
import { posix } from "node:path";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Change, ListedEntry, FileResult } from "../core/ports.ts";
import { textOfBytes } from "../core/raw-data.ts";
import type { RunnerClient } from "./runner-client.ts";
import { nameOfErrno } from "./runner-command.ts";
import {
  decodeFields,
  type Field,
  type FieldValue,
  numberIn,
  REPLY,
  REQUEST,
  textIn,
} from "./runner-protocol.ts";

/** Files of a box: reading, writing, listing, and what has changed, as the runner reports it. */

/** A file operation that the box refused, with the system's name for why. */
export class FileRefused extends Error {
  override readonly name = "FileRefused";
  readonly code: string;
  readonly path: string;

  constructor(code: string, path: string, doing: string) {
    super(`${path}: ${doing}: ${code}`);
    this.code = code;
    this.path = path;
  }
}

/** Codes that mean that a wall of the box refused, not the file itself. */
const WALLS: ReadonlySet<string> = new Set(["EROFS", "EBUSY", "EPERM"]);

/** The error as a value. */
export const refusedFile = ({ code, path, message }: FileRefused): FileResult<never> => ({
  kind: WALLS.has(code) ? "blocked" : "failed",
  cause: "filesystem",
  code,
  path,
  reason: message,
});

const KINDS: Readonly<Record<string, ListedEntry["kind"]>> = { f: "file", d: "folder", l: "link" };

interface FileQuestion {
  readonly type: number;
  readonly path: string;
  readonly fields?: readonly (readonly [string, FieldValue])[];
  readonly content?: Uint8Array;
}

/** Linux's limit, with the terminating NUL. */
const PATH_MAX = 4096;

async function askRunner(
  client: RunnerClient,
  { type, path, fields = [], content }: FileQuestion,
): Promise<{ readonly data: Buffer; readonly end: readonly Field[] }> {
  if (path.includes("\0")) throw new FileRefused("EINVAL", path, "a path cannot contain a NUL");
  if (Buffer.byteLength(path) >= PATH_MAX)
    throw new FileRefused("ENAMETOOLONG", path, "the path is too long");
  const { data, end } = await client.ask(type, [["p", path], ...fields], content);
  if (end.type !== REPLY.end)
    throw new HarnessError(EXIT.sandbox, "the runner sent an unexpected answer", "start again");
  const reply = decodeFields(end.payload);
  const errno = numberIn(reply, "e");
  if (errno !== 0) throw new FileRefused(nameOfErrno(errno), path, textIn(reply, "w"));
  return { data, end: reply };
}

/** At most `limit` bytes from `offset`; `size` is the whole file's. */
export async function readFileIn(
  client: RunnerClient,
  path: string,
  { offset = 0, limit = 64 * 2 ** 20 }: { readonly offset?: number; readonly limit?: number } = {},
): Promise<{ readonly content: Buffer; readonly size: number }> {
  const fields = [
    ["o", offset],
    ["n", limit],
  ] as const;
  const { data, end } = await askRunner(client, { type: REQUEST.read, path, fields });
  return { content: data, size: numberIn(end, "z") };
}

/** Writes all or nothing; an existing file keeps its mode. */
export async function writeFileIn(
  client: RunnerClient,
  path: string,
  content: Uint8Array,
  mode = 0o644,
): Promise<void> {
  await askRunner(client, { type: REQUEST.write, path, fields: [["m", mode]], content });
}

/** The most entries that are listed of one folder. */
const MAX_ENTRIES = 10_000;

export async function listIn(client: RunnerClient, path: string): Promise<readonly ListedEntry[]> {
  return readEntries(
    (await askRunner(client, { type: REQUEST.list, path, fields: [["n", MAX_ENTRIES]] })).data,
  );
}

export async function statIn(client: RunnerClient, path: string): Promise<ListedEntry> {
  const [entry] = readEntries((await askRunner(client, { type: REQUEST.stat, path })).data);
  if (entry === undefined) throw new FileRefused("EIO", path, "stat");
  return { ...entry, name: posix.basename(path) };
}

/** From now on `changesIn` reports what differs below this folder. */
export async function snapshotIn(
  client: RunnerClient,
  root: string,
  leftOut: readonly string[],
): Promise<void> {
  const fields = leftOut.map((folder) => ["x", folder] as const);
  await askRunner(client, { type: REQUEST.snapshot, path: root, fields });
}

export async function changesIn(
  client: RunnerClient,
): Promise<{ readonly changes: ChangeList; readonly incomplete: boolean }> {
  const { data, end } = await askRunner(client, { type: REQUEST.changes, path: "" });
  return { changes: new ChangeList(data), incomplete: numberIn(end, "i") === 1 };
}

/** The changes since the previous call, or since the snapshot. */
export async function newChangesIn(client: RunnerClient): Promise<{
  readonly changes: ChangeList;
  readonly incomplete: boolean;
  /** Total size of those changed files that still exist. */
  readonly bytes: number;
}> {
  const fields = [["r", 1]] as const;
  const { data, end } = await askRunner(client, { type: REQUEST.changes, path: "", fields });
  return {
    changes: new ChangeList(data),
    incomplete: numberIn(end, "i") === 1,
    bytes: numberIn(end, "b"),
  };
}

function readEntries(data: Buffer): readonly ListedEntry[] {
  const entries: ListedEntry[] = [];
  for (let at = 0; at < data.length;) {
    const length = data.readUInt16LE(at + 21);
    entries.push({
      kind: KINDS[String.fromCharCode(data.readUInt8(at))] ?? "odd",
      mode: data.readUInt32LE(at + 1),
      size: Number(data.readBigUInt64LE(at + 5)),
      modified: Number(data.readBigUInt64LE(at + 13)),
      name: textOfBytes(data.subarray(at + 23, at + 23 + length)),
    });
    at += 23 + length;
  }
  return entries;
}

const LETTERS: Readonly<Record<Change["kind"], string>> = { file: "f", folder: "d", link: "l", odd: "o" };
const WHATS: Readonly<Record<string, Change["what"]>> = { A: "added", M: "modified", D: "deleted" };

/** The bytes of a record before its path: what, kind, mode, bytes shared with the path before, length. */
const HEAD_BYTES = 14;

/**
 * Changes as the runner sends them: each record holds only the part of its path that differs from the path before, so
 * that hundreds of thousands of long paths take no more room than their names. The iteration decodes one path at a
 * time.
 */
class ChangeList implements Iterable<Change> {
  readonly #records: Buffer;

  constructor(records: Buffer) {
    this.#records = records;
  }

  *[Symbol.iterator](): Generator<Change> {
    const records = this.#records;
    let path = Buffer.alloc(4096);
    for (let at = 0; at < records.length;) {
      const shared = records.readUInt32LE(at + 6);
      const length = records.readUInt32LE(at + 10);
      if (shared + length > path.length) path = Buffer.concat([path, Buffer.alloc(shared + length)]);
      records.copy(path, shared, at + HEAD_BYTES, at + HEAD_BYTES + length);
      yield {
        what: WHATS[letterAt(records, at)] ?? "modified",
        kind: KINDS[letterAt(records, at + 1)] ?? "odd",
        mode: records.readUInt32LE(at + 2),
        path: textOfBytes(path.subarray(0, shared + length)),
      };
      at += HEAD_BYTES + length;
    }
  }
}

const letterAt = (bytes: Buffer, at: number): string => String.fromCharCode(bytes.readUInt8(at));

/** A change found in this process; `folder` is the same buffer for all entries of one folder. */
export interface FoundChange extends Omit<Change, "path"> {
  readonly folder: Buffer;
  readonly name: Buffer;
}

/** The same list for changes found in this process, ordered by path. */
export function changeListOf(found: readonly FoundChange[]): ChangeList {
  const sorted = found.toSorted(byPath);
  const pieces: Buffer[] = [];
  let before: FoundChange | undefined;
  for (const found of sorted) {
    const shared = before === undefined ? 0 : sharedPath(before, found);
    const piece = Buffer.alloc(HEAD_BYTES + lengthOf(found) - shared);
    piece.write(`${found.what.charAt(0).toUpperCase()}${LETTERS[found.kind]}`, "latin1");
    piece.writeUInt32LE(found.mode, 2);
    piece.writeUInt32LE(shared, 6);
    piece.writeUInt32LE(piece.length - HEAD_BYTES, 10);
    for (let at = HEAD_BYTES; at < piece.length; at += 1) piece[at] = byteAt(found, shared + at - HEAD_BYTES);
    pieces.push(piece);
    before = found;
  }
  return new ChangeList(Buffer.concat(pieces));
}

/** Does not build whole paths, which would take more room than the list. */
function sharedPath(a: FoundChange, b: FoundChange): number {
  const most = Math.min(lengthOf(a), lengthOf(b));
  let same = a.folder === b.folder ? Math.min(a.folder.length, most) : 0;
  while (same < most && byteAt(a, same) === byteAt(b, same)) same += 1;
  return same;
}

function sharedBy(a: Buffer, b: Buffer): number {
  const most = Math.min(a.length, b.length);
  let same = 0;
  while (same < most && a[same] === b[same]) same += 1;
  return same;
}

/** Orders by whole paths without building them. */
function byPath(a: FoundChange, b: FoundChange): number {
  if (a.folder === b.folder) return Buffer.compare(a.name, b.name);
  const length = Math.max(lengthOf(a), lengthOf(b));
  for (let at = sharedBy(a.folder, b.folder); at < length; at += 1) {
    const order = byteAt(a, at) - byteAt(b, at);
    if (order !== 0) return order;
  }
  return 0;
}

const lengthOf = ({ folder, name }: FoundChange): number =>
  folder.length === 0 ? name.length : folder.length + 1 + name.length;

/** -1 after the end. */
function byteAt({ folder, name }: FoundChange, at: number): number {
  if (folder.length === 0) return name[at] ?? -1;
  if (at === folder.length) return 0x2f;
  return (at < folder.length ? folder[at] : name[at - folder.length - 1]) ?? -1;
}

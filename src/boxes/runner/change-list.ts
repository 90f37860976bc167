import { Buffer } from "node:buffer";
import { textOfBytes } from "../../core/raw-data.ts";
import type { Change } from "../../core/ports.ts";

const KINDS: Readonly<Record<string, Change["kind"]>> = { f: "file", d: "folder", l: "link" };
const LETTERS: Readonly<Record<Change["kind"], string>> = { file: "f", folder: "d", link: "l", odd: "o" };
const WHATS: Readonly<Record<string, Change["what"]>> = { A: "added", M: "modified", D: "deleted" };

/** The bytes of a record before its path: what, kind, mode, bytes shared with the path before, length. */
const HEAD = 14;

/**
 * Changes as the runner sends them: each record holds only the part of its path that differs from the path before, so
 * that hundreds of thousands of long paths take no more room than their names. The iteration decodes one path at a
 * time.
 */
export class ChangeList implements Iterable<Change> {
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
      records.copy(path, shared, at + HEAD, at + HEAD + length);
      yield {
        what: WHATS[letterAt(records, at)] ?? "modified",
        kind: KINDS[letterAt(records, at + 1)] ?? "odd",
        mode: records.readUInt32LE(at + 2),
        path: textOfBytes(path.subarray(0, shared + length)),
      };
      at += HEAD + length;
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
    const piece = Buffer.alloc(HEAD + lengthOf(found) - shared);
    piece.write(`${found.what.charAt(0).toUpperCase()}${LETTERS[found.kind]}`, "latin1");
    piece.writeUInt32LE(found.mode, 2);
    piece.writeUInt32LE(shared, 6);
    piece.writeUInt32LE(piece.length - HEAD, 10);
    for (let at = HEAD; at < piece.length; at += 1) piece[at] = byteAt(found, shared + at - HEAD);
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

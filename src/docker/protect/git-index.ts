import { textOfBytes } from "../../core/byte-text.ts";

/**
 * The paths of a git index, versions 2 to 4, as `gitformat-index` has them. Nothing is run and nothing is believed: what
 * does not fit the form throws. Of an index that is split this reads one half; a folder that a sparse one stands for
 * ends in a slash.
 */
export interface GitIndex {
  readonly paths: () => Generator<string>;
  /** The name of the file with the other half, where it is split. */
  readonly shared: string | undefined;
}

/** Of an entry before its name: stat data, an object's name of this length, flags. */
const STAT = 40;
const SHA1 = 20;
const SHA256 = 32;
const EXTENDED = 0x4000;

export function readGitIndex(bytes: Buffer): GitIndex {
  const version = bytes.length >= 12 ? bytes.readUInt32BE(4) : 0;
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) throw malformed();
  // Which hash it uses stands elsewhere: with the wrong one no index reads to its end.
  for (const hash of [SHA1, SHA256]) {
    const layout = { bytes, version, hash };
    const end = endOf(layout);
    const shared = end === undefined ? undefined : sharedBehind(layout, end);
    if (shared !== undefined)
      return { paths: () => pathsIn(layout), shared: shared === "" ? undefined : `sharedindex.${shared}` };
  }
  throw malformed();
}

interface Layout {
  readonly bytes: Buffer;
  readonly version: number;
  readonly hash: number;
}

/** Where the entries end; undefined when they do not read. */
function endOf(layout: Layout): number | undefined {
  try {
    let end = 12;
    for (const entry of entriesIn(layout)) end = entry.end;
    return end;
  } catch {
    return undefined;
  }
}

interface Entry {
  readonly name: Buffer;
  readonly end: number;
}

function* pathsIn(layout: Layout): Generator<string> {
  // What a split index replaces has no name there.
  for (const { name } of entriesIn(layout)) if (name.length > 0) yield textOfBytes(name);
}

function* entriesIn({ bytes, version, hash }: Layout): Generator<Entry> {
  const count = bytes.readUInt32BE(8);
  let before: Buffer = Buffer.alloc(0);
  for (let at = 12, entry = 0; entry < count; entry += 1) {
    const flags = bytes.readUInt16BE(at + STAT + hash);
    const begin = at + STAT + hash + ((flags & EXTENDED) !== 0 && version >= 3 ? 4 : 2);
    const { from, kept } = version === 4 ? prefixAt(bytes, begin, before) : { from: begin, kept: NONE };
    const nul = bytes.indexOf(0, from);
    if (nul === -1 || nul > bytes.length - hash) throw malformed();
    const rest = bytes.subarray(from, nul);
    const name = kept.length === 0 ? rest : Buffer.concat([kept, rest]);
    const said = flags & 0xfff;
    if (said < 0xfff ? name.length !== said : name.length < 0xfff) throw malformed();
    at = version === 4 ? nul + 1 : at + padded(nul - at);
    before = name;
    yield { name, end: at };
  }
}

const NONE = Buffer.alloc(0);

/** With one to eight NULs behind it an entry is a multiple of eight. */
const padded = (length: number): number => (Math.floor(length / 8) + 1) * 8;

/** How much of the name before is taken off its end, as a number of git's own form. */
function prefixAt(
  bytes: Buffer,
  at: number,
  before: Buffer,
): { readonly from: number; readonly kept: Buffer } {
  let from = at;
  let byte = bytes.readUInt8(from);
  let off = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    from += 1;
    byte = bytes.readUInt8(from);
    off = (off + 1) * 128 + (byte & 0x7f);
    if (off > before.length) throw malformed();
  }
  if (off > before.length) throw malformed();
  return { from: from + 1, kept: before.subarray(0, before.length - off) };
}

/** The other half's name from the extensions, empty where there is none; undefined where they do not fit. */
function sharedBehind({ bytes, hash }: Layout, end: number): string | undefined {
  let shared = "";
  let at = end;
  for (; at + 8 <= bytes.length - hash; at += 8 + bytes.readUInt32BE(at + 4)) {
    if (bytes.toString("latin1", at, at + 4) !== "link") continue;
    const name = bytes.subarray(at + 8, at + 8 + hash);
    if (name.some((byte) => byte !== 0)) shared = name.toString("hex");
  }
  return at === bytes.length - hash ? shared : undefined;
}

const malformed = (): Error => new Error("it is no index of git's");

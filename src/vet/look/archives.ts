/**
 * Looks at how much archives in a tree unpack to, and where to: tables of zips are read; gzip is unpacked within bounds,
 * and the result is dropped. Also judges what a box reports when the tree itself came as an archive or a clone.
 */
import { Readable } from "node:stream";
import { createGunzip, gunzipSync, inflateRawSync } from "node:zlib";
import { type Finding, type LookedAtTree, hostile, noisy, type WeighedRule } from "../../core/behaviour.ts";
import { type TarEntry, untar } from "../../core/tar-archive.ts";
import { type Findings, type LookedAtFile, type LookRule, REFUSED_DATA } from "./looked-at.ts";
import { formatSize } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";

const ARCHIVE =
  /\.(?:zip|jar|war|ear|whl|egg|apk|ipa|xpi|crx|vsix|nupkg|docx|xlsx|pptx|odt|epub|tgz|gz|tar|svgz|crate|gem|aar)$/;
/** Most bytes of one compressed file that are read. */
const MAX_PACKED = 64 * 2 ** 20;
/** Most unpacked bytes of one file that are counted; a file with more is called large. */
const MAX_UNPACKED = 512 * 2 ** 20;
/** Most unpacked bytes of all archives of a tree that are counted. */
const MAX_ALL = 2 * 2 ** 30;
const MUCH_BYTES = 8 * 2 ** 20;
const HIGH_RATIO = 100;
const BOMB_BYTES = 2 ** 30;
/** An archive in an archive in an archive. */
const MAX_DEPTH = 3;
/** Most unpacked bytes of an archive inside another one. */
const MAX_INNER = 16 * 2 ** 20;
const MAX_ENTRIES = 100_000;
const MAX_INNERS = 32;

export class Archives {
  readonly #found: Findings;
  readonly #tree: LookedAtTree;
  #left = MAX_ALL;

  constructor(found: Findings, tree: LookedAtTree) {
    this.#found = found;
    this.#tree = tree;
  }

  async look(file: LookedAtFile, signal: AbortSignal): Promise<void> {
    const { path, bytes, size, lower } = file;
    const zip = isZip(bytes) || (ARCHIVE.test(lower) && size > 22 && /\.(?:zip|jar|whl)$/.test(lower));
    const gzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
    const tar = bytes.toString("latin1", 257, 262) === "ustar" || lower.endsWith(".tar");
    if (!zip && !gzip && !tar) return;
    const report = (rule: LookRule, words: string): void =>
      this.#found.add(rule === "archive.escapes" && REFUSED_DATA.test(path) ? "archive.tried" : rule, words, {
        path,
      });
    if (zip) await this.#zip(path, size, report);
    else if (this.#left <= 0) report("look.more", "archives contain more than was examined");
    else await this.#stream(path, { size, gzip, signal, report });
  }

  async #zip(path: string, size: number, report: Report): Promise<void> {
    const tail = Math.min(size, MAX_TABLE);
    const end = await this.#tree.read(path, tail, size - tail);
    if (end === undefined) return;
    const whole = size <= MAX_INNER ? await this.#tree.read(path, size) : undefined;
    const total = zipIn(Buffer.from(end), size, {
      report,
      whole: whole === undefined ? undefined : Buffer.from(whole),
      depth: 0,
    });
    judgeSize(total.bytes, size, report);
  }

  async #stream(path: string, { size, gzip, signal, report }: StreamOptions): Promise<void> {
    const counted = { bytes: 0, entries: 0 };
    const budget = Math.min(MAX_UNPACKED, this.#left);
    const pieces = this.#pieces(path, Math.min(size, MAX_PACKED), signal);
    const stream = counting(gzip ? gunzippedThrough(pieces, MAX_DEPTH) : pieces, counted, budget);
    try {
      for await (const part of untar(stream)) {
        if (Buffer.isBuffer(part)) continue;
        if ((counted.entries += 1) > MAX_ENTRIES) {
          report("archive.much", `more than ${MAX_ENTRIES} entries`);
          break;
        }
        tarEntry(part, report);
      }
    } catch {
      // No tar, a damaged one, or cut by a bound: the bytes that came out count all the same.
    }
    for await (const piece of stream) if (piece.length === 0) break;
    this.#left -= counted.bytes;
    judgeSize(counted.bytes, Math.min(size, MAX_PACKED), report);
  }

  async *#pieces(path: string, most: number, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    for (let at = 0; at < most; at += PIECE_BYTES) {
      signal.throwIfAborted();
      const piece = await this.#tree.read(path, Math.min(PIECE_BYTES, most - at), at);
      if (piece === undefined || piece.length === 0) return;
      yield Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    }
  }
}

type Report = (rule: LookRule, words: string) => void;

interface StreamOptions {
  readonly size: number;
  readonly gzip: boolean;
  readonly signal: AbortSignal;
  readonly report: Report;
}

/** Numbers of a table that may end anywhere. */
const u16 = (bytes: Buffer, at: number): number => (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 2 ** 8;
const u32 = (bytes: Buffer, at: number): number => u16(bytes, at) + u16(bytes, at + 2) * 2 ** 16;

const PIECE_BYTES = 2 ** 16;

/** The unpacked bytes, piece by piece; readers stop at their budget. */
async function* gunzipped(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const gunzip = Readable.from(pieces).pipe(createGunzip());
  try {
    for await (const piece of gunzip) yield piece as Buffer;
  } finally {
    gunzip.destroy();
  }
}

/** Unpacks gzip in gzip, too; the innermost bytes count. */
async function* gunzippedThrough(pieces: AsyncIterable<Buffer>, depth: number): AsyncGenerator<Buffer, void> {
  const outer = gunzipped(pieces)[Symbol.asyncIterator]();
  const { value: head, done } = await outer.next();
  if (done === true) return;
  const all = (async function* whole(): AsyncGenerator<Buffer, void> {
    yield head;
    for await (const piece of outer) yield piece;
  })();
  yield* depth > 1 && head[0] === 0x1f && head[1] === 0x8b ? gunzippedThrough(all, depth - 1) : all;
}

/** Counts the bytes; ends when the budget is used up. */
async function* counting(
  stream: AsyncIterable<Buffer>,
  counted: { bytes: number },
  budget: number,
): AsyncGenerator<Buffer, void> {
  for await (const piece of stream) {
    counted.bytes += piece.length;
    yield piece;
    if (counted.bytes >= budget) return;
  }
}

function judgeSize(unpacked: number, packed: number, report: Report): void {
  const ratio = unpacked / Math.max(packed, 1);
  const words = `${packed} bytes unpack to ${unpacked >= MAX_UNPACKED ? "at least " : ""}${unpacked}`;
  if (ratio < HIGH_RATIO || unpacked < MUCH_BYTES) return;
  report(
    unpacked >= BOMB_BYTES || (unpacked >= MAX_UNPACKED && ratio > HIGH_RATIO)
      ? "archive.bomb"
      : "archive.much",
    words,
  );
}

const SECRET = /(?:^|\/)\.git\/(?:hooks|config)|^\/|^[A-Za-z]:[\\/]|(?:^|[\\/])\.\.(?:[\\/]|$)/;

function tarEntry({ name, type, target }: TarEntry, report: Report): void {
  const path = name.toString();
  entryName(path, report);
  const linkTarget = target.toString();
  if (
    (type === "link" || type === "same") &&
    (linkTarget.startsWith("/") || leavesBy(type === "link" ? `${path}/../${linkTarget}` : linkTarget))
  )
    report("archive.escapes", `${path} leads to ${linkTarget}`);
  if (type === "odd") report("archive.escapes", `${path} is a device, a pipe or similar`);
}

const entryName = (path: string, report: Report): void => {
  if (SECRET.test(path)) report("archive.escapes", `it contains ${path}`);
};

function leavesBy(path: string): boolean {
  let depth = 0;
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    depth += name === ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

/** Most bytes of the table at the end of a zip that are read; of a larger table, only the end. */
const MAX_TABLE = 8 * 2 ** 20;
const isZip = (bytes: Buffer): boolean => u32(bytes, 0) === 0x04034b50;

interface Zip {
  readonly report: Report;
  /** The whole archive, if it is small. */
  readonly whole: Buffer | undefined;
  readonly depth: number;
}

interface Total {
  readonly bytes: number;
}

/** `end` is the file's last part. */
function zipIn(end: Buffer, size: number, zip: Zip): Total {
  const last = end.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  if (last === -1 || last + 22 > end.length) return { bytes: 0 };
  const offset = u32(end, last + 16);
  const base = size - end.length;
  let at = Math.max(0, Math.min(offset === 0xffffffff ? last : offset - base, last));
  // A file before the archive shifts all offsets.
  if (u32(end, at) !== CENTRAL_SIGNATURE) at = Math.max(0, end.indexOf(CENTRAL_BYTES));
  const seen = { bytes: 0, packed: 0, entries: 0, inners: 0 };
  const starts = new Set<number>();
  let overlaps = false;
  while (at + 46 <= last && u32(end, at) === CENTRAL_SIGNATURE && seen.entries < MAX_ENTRIES) {
    const entry = centralEntry(end, at);
    seen.entries += 1;
    seen.bytes += entry.size;
    seen.packed += entry.packed;
    overlaps ||= starts.has(entry.start);
    starts.add(entry.start);
    entryName(entry.name, zip.report);
    if (seen.inners < MAX_INNERS && zip.depth < MAX_DEPTH && /\.(?:zip|jar|t?gz)$/i.test(entry.name)) {
      seen.inners += 1;
      seen.bytes += innerBytes(entry, zip);
    }
    at = entry.next;
  }
  if (overlaps || seen.packed > size * 2) zip.report("archive.bomb", "its entries overlap");
  return { bytes: seen.bytes };
}

const CENTRAL_SIGNATURE = 0x02014b50;
const CENTRAL_BYTES = Buffer.from([0x50, 0x4b, 1, 2]);

interface Central {
  readonly name: string;
  readonly method: number;
  readonly packed: number;
  readonly size: number;
  readonly start: number;
  readonly next: number;
}

function centralEntry(end: Buffer, at: number): Central {
  const [name, extra, comment] = [28, 30, 32].map((from) => u16(end, at + from)) as [number, number, number];
  const size = u32(end, at + 24);
  return {
    name: end.toString("utf8", at + 46, at + 46 + name),
    method: u16(end, at + 10),
    packed: u32(end, at + 20),
    size: size === 0xffffffff ? wideSize(end.subarray(at + 46 + name, at + 46 + name + extra)) : size,
    start: u32(end, at + 42),
    next: at + 46 + name + extra + comment,
  };
}

/** The size in the 64-bit form: the first number of the extra field. */
function wideSize(extra: Buffer): number {
  for (let at = 0; at + 4 <= extra.length; at += 4 + u16(extra, at + 2))
    if (u16(extra, at) === 1 && at + 12 <= extra.length) return Number(extra.readBigUInt64LE(at + 4));
  return 0xffffffff;
}

/** What an archive within the archive unpacks to. */
function innerBytes({ start, packed, method }: Central, { whole, report, depth }: Zip): number {
  if (whole === undefined || start + 30 > whole.length) return 0;
  const from = start + 30 + u16(whole, start + 26) + u16(whole, start + 28);
  const data = whole.subarray(from, from + packed);
  try {
    const inner = method === 0 ? data : inflateRawSync(data, { maxOutputLength: MAX_INNER });
    return inner[0] === 0x1f && inner[1] === 0x8b
      ? gunzippedBytes(inner)
      : zipIn(inner, inner.length, { report, whole: inner, depth: depth + 1 }).bytes;
  } catch {
    return 0;
  }
}

/** The unpacked size, or the bound if the size is larger. */
function gunzippedBytes(bytes: Buffer): number {
  let inner = bytes;
  for (let depth = 0; depth < MAX_DEPTH && inner[0] === 0x1f && inner[1] === 0x8b; depth += 1)
    try {
      inner = gunzipSync(inner, { maxOutputLength: MAX_INNER });
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? MAX_INNER : 0;
    }
  return inner.length;
}

/** Rules on archives and clones, decided while they are unpacked. */
export const ARCHIVE_RULES = {
  "unpack.bomb": hostile("it unpacks to many times its own size; nothing in it was run"),
  "unpack.large": noisy("it is too large to unpack in full; nothing in it was run"),
  "unpack.outside": hostile("an entry leads outside the folder that it is unpacked in"),
  "unpack.device": hostile("an entry is a device or a pipe"),
  "unpack.rights": hostile("an entry would run with the rights of its owner or group"),
  "unpack.twice": noisy("two entries have the same name: programs disagree on which one counts"),
  "unpack.odd": noisy("an entry that cannot be unpacked"),
  "unpack.elsewhere": noisy("the clone was redirected to another host, which was not contacted"),
  "unpack.broken": noisy("it is truncated or damaged; only what came before was examined"),
} as const satisfies Readonly<Record<string, WeighedRule>>;

type ArchiveRule = keyof typeof ARCHIVE_RULES;

/** What a box reports after it unpacked an archive. */
export interface Unpacked {
  readonly entries: number;
  readonly bytes: number;
  /** Bytes of the archive itself. */
  readonly packed: number;
  /** Why the archive was not unpacked to its end. */
  readonly stopped: "bytes" | "entries" | "time" | "broken" | null;
  readonly left_out: readonly (readonly [name: string, why: string])[];
}

const LEFT_OUT: Readonly<Record<string, readonly [rule: ArchiveRule, words: string]>> = {
  outside: ["unpack.outside", "leads outside the folder that it is unpacked in"],
  link: ["unpack.outside", "would be written through a link in the archive"],
  nul: ["unpack.outside", "has a NUL in its name"],
  device: ["unpack.device", "is a device or a pipe"],
  rights: ["unpack.rights", "would run with the rights of its owner or group"],
  twice: ["unpack.twice", "occurs twice: programs disagree on which one counts"],
  deep: ["unpack.odd", "is nested too deep for many programs"],
  name: ["unpack.odd", "has a name that cannot be created here"],
  unreadable: ["unpack.odd", "cannot be unpacked"],
};

/** Only archives made for the purpose unpack to this many times their own size. */
const BOMB_RATIO = 100;

export function archiveFindings(unpacked: Unpacked): readonly Finding[] {
  const ending = endingOf(unpacked);
  const leftOut = unpacked.left_out.map(([name, why]) => {
    const [rule, words] = LEFT_OUT[why] ?? ["unpack.odd", why];
    return found(rule, `${visibleLine(name)} ${words}`, visibleLine(name));
  });
  return ending === undefined ? leftOut : [ending, ...leftOut];
}

/** Whether all contents of the archive were unpacked. */
export const isWhole = ({ stopped }: Unpacked): boolean => stopped === null || stopped === "broken";

function endingOf({ stopped, bytes, packed, entries }: Unpacked): Finding | undefined {
  if (stopped === null) return undefined;
  if (stopped === "broken") return found("unpack.broken", ARCHIVE_RULES["unpack.broken"].words);
  const from = `from ${formatSize(packed)}`;
  if (stopped === "entries") return found("unpack.bomb", `contains more than ${entries - 1} entries`);
  if (stopped === "time") return found("unpack.bomb", "could not be unpacked in the time allowed");
  const rule = bytes > BOMB_RATIO * packed ? "unpack.bomb" : "unpack.large";
  return found(rule, `unpacks to more than ${formatSize(bytes)} ${from}`);
}

/** One finding for each host that a clone was led to. */
export const cloneFindings = (hosts: readonly string[]): readonly Finding[] =>
  [...new Set(hosts)].map((host) =>
    found("unpack.elsewhere", `the clone was redirected to ${visibleLine(host)}, which was not contacted`),
  );

const found = (rule: ArchiveRule, text: string, path?: string): Finding => ({
  rule,
  weight: ARCHIVE_RULES[rule].weight,
  text,
  ...(path === undefined ? {} : { path }),
});

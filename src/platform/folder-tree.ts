import { isUtf8 } from "node:buffer";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  opendirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { setImmediate as breath } from "node:timers/promises";

/**
 * A folder of the host, examined while it may be hostile: no link is followed, nothing but regular files is opened,
 * names may be any bytes, and a file that was replaced since it was listed counts as missing.
 */

interface FolderEntry {
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  readonly mode: number;
  readonly size: number;
  readonly target?: string;
  readonly names?: number;
  readonly closed?: boolean;
}

/** A path that a program can open has at most half as many folders as bytes. */
const MAX_DEPTH = 1000;
/** Most files that a listing remembers, to recognise them when they are read. */
const MAX_KNOWN = 1_000_000;
/** Entries after which other work gets a turn. */
const AT_ONCE = 500;

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;

export class FolderTree {
  readonly #root: Buffer;
  /** Path → device and inode of the file. */
  readonly #known = new Map<string, string>();

  constructor(root: string) {
    this.#root = Buffer.from(root);
  }

  /** `enters` is asked about a folder after all its siblings were listed. */
  async *entries(
    signal: AbortSignal,
    enters: (folder: string) => boolean | Promise<boolean> = () => true,
  ): AsyncGenerator<FolderEntry> {
    const folders = [""];
    let count = 0;
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      if (folder !== "" && !(await enters(folder))) continue;
      for (const name of this.#namesIn(folder)) {
        if ((count += 1) % AT_ONCE === 0) await breath();
        signal.throwIfAborted();
        const entry = this.#entry(folder === "" ? name : `${folder}/${name}`);
        if (entry === undefined) continue;
        yield entry;
        if (entry.kind === "folder" && entry.closed !== true) folders.push(entry.path);
      }
    }
  }

  async read(path: string, limit: number, from = 0): Promise<Uint8Array | undefined> {
    const known = this.#known.get(path);
    if (known === undefined) return undefined;
    let descriptor: number | undefined;
    try {
      descriptor = openSync(this.#place(path), FLAGS);
      const stats = fstatSync(descriptor, { bigint: true });
      if (!stats.isFile() || numberOf(stats) !== known) return undefined;
      const most = Math.max(0, Math.min(limit, Number(stats.size) - from));
      const buffer = Buffer.allocUnsafe(most);
      let got = 0;
      for (let more = 1; more > 0 && got < most; got += more)
        more = readSync(descriptor, buffer, got, most - got, from + got);
      return buffer.subarray(0, got);
    } catch {
      return undefined;
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  *#namesIn(folder: string): Generator<string> {
    let opened;
    try {
      opened = opendirSync(this.#place(folder), { encoding: "buffer" as BufferEncoding, bufferSize: 256 });
    } catch (thrown) {
      if (folder === "") throw thrown;
      return;
    }
    try {
      for (let entry = opened.readSync(); entry !== null; entry = opened.readSync())
        yield textOfName(entry.name as unknown as Buffer);
    } catch {
      // The folder vanished while it was listed: the entries seen so far count.
    } finally {
      opened.closeSync();
    }
  }

  #entry(path: string): FolderEntry | undefined {
    try {
      const place = this.#place(path);
      const stats = lstatSync(place, { bigint: true });
      const mode = Number(stats.mode) & 0o7777;
      if (stats.isFile()) {
        if (this.#known.size < MAX_KNOWN) this.#known.set(path, numberOf(stats));
        const names = Number(stats.nlink);
        return { path, kind: "file", mode, size: Number(stats.size), ...(names > 1 ? { names } : {}) };
      }
      if (stats.isDirectory()) return { path, kind: "folder", mode, size: 0, ...this.#closed(path, place) };
      if (stats.isSymbolicLink())
        return { path, kind: "link", mode, size: 0, target: textOfName(readlinkSync(place, "buffer")) };
      return { path, kind: "odd", mode, size: 0, target: oddKind(stats) };
    } catch {
      return undefined;
    }
  }

  #closed(path: string, place: Buffer): { readonly closed?: true } {
    if (depthOf(path) >= MAX_DEPTH) return { closed: true };
    try {
      closeSync(openSync(place, FLAGS | constants.O_DIRECTORY));
      return {};
    } catch {
      return { closed: true };
    }
  }

  #place(path: string): Buffer {
    return path === "" ? this.#root : Buffer.concat([this.#root, SLASH, bytesOfName(path)]);
  }
}

const SLASH = Buffer.from("/");

const numberOf = ({ dev, ino }: BigIntStats): string => `${dev}:${ino}`;

const oddKind = (stats: BigIntStats): string =>
  stats.isFIFO() ? "pipe" : stats.isSocket() ? "socket" : "device";

function depthOf(path: string): number {
  let depth = 0;
  for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) depth += 1;
  return depth;
}

/** One text for arbitrary bytes: those that are not UTF-8 become lone surrogates. */
export function textOfName(name: Buffer): string {
  if (isUtf8(name)) return name.toString("utf8");
  let text = "";
  for (let at = 0; at < name.length;) {
    const length = characterAt(name, at);
    text +=
      length === 0 ? String.fromCharCode(0xdc00 + (name[at] ?? 0)) : name.toString("utf8", at, at + length);
    at += Math.max(length, 1);
  }
  return text;
}

/** The length in bytes of the character at this position; 0 when it is not UTF-8. */
function characterAt(name: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= name.length; length += 1)
    if (isUtf8(name.subarray(at, at + length))) return length;
  return 0;
}

/** The inverse of `textOfName`. */
export function bytesOfName(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  return Buffer.concat(
    Array.from(text, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(character);
    }),
  );
}

import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { type TarEntry, untar } from "../../core/tar-archive.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Box, ExecRequest, ExecResult } from "../../core/ports.ts";
import type { Skip } from "../search-store.ts";

/** What the files of a workspace are to the search, how the box finds them, and how it sends their contents. */

/** Identifies an unchanged file without reading it. As doubles: host and box compute the same values. */
export interface FileStamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** A file found below the workspace. */
export interface FoundFile {
  readonly path: string;
  /** `closed`: a folder that may not be read. */
  readonly kind: "file" | "folder" | "closed" | "link" | "odd";
  readonly stamp: FileStamp;
}

export const isSameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;

/** The kernel's clock for files is coarse; on file systems with whole seconds it is coarser. */
const COARSE_MS = 100;
const COARSER_MS = 2100;

/** Whether any change after the stamp was taken would give the file another stamp. */
export const isSettled = ({ ctimeMs }: FileStamp, lookedAt: number): boolean =>
  ctimeMs > 0 && ctimeMs < lookedAt - (ctimeMs % 1000 === 0 ? COARSER_MS : COARSE_MS);

/** An ignore file of the workspace. */
export interface RuleFile {
  readonly path: string;
  readonly stamp: FileStamp;
  readonly text: string;
}

/** Ignore rules. The time of a test is bounded by the length of the lists. */
export interface IgnoredPaths {
  leavesOut(path: string, isFolder: boolean): boolean;
  /** Adds the list of a folder further down. */
  below(list: { readonly folder: string; readonly text: string; readonly strict: boolean }): IgnoredPaths;
}

/** The path rules of the policy, injected by the composition. */
export interface PathRules {
  /** Rules without any list. */
  readonly ignored: IgnoredPaths;
  /** Characters of a list that are obeyed; the rest of a longer list is not needed. */
  readonly mostOfList: number;
  /** Whether a file of this name often holds a password or a key. */
  readonly secret: (path: string) => boolean;
  /** Whether host programs obey the content of a folder with this name. */
  readonly guarded: (name: string, atTop: boolean) => boolean;
}

/** Files that may be read, and files left out, each with its reason. */
export interface Listing {
  readonly files: ReadonlyMap<string, FileStamp>;
  readonly skipped: ReadonlyMap<string, { readonly stamp: FileStamp; readonly why: Skip }>;
  readonly rules: readonly RuleFile[];
  /** Files whose names are not valid text; they have no path that could be shown or requested. */
  readonly nameless: number;
  /** Folders that may not be read, apart from those left out. */
  readonly closed: number;
  /** When the listing was made, in milliseconds since 1970. */
  readonly at: number;
}

/** Maximum bytes of a path that a program can open. */
const MAX_PATH_LENGTH = 4095;
/** Maximum bytes of one record; `find` writes no longer ones for paths of that depth. */
const MAX_RECORD_LENGTH = 2 ** 20;

/** Fields of a record: kind, size, times, inode number, path. */
const FIELDS_PER_RECORD = 6;
export const FORMAT = String.raw`%y\0%s\0%T@\0%C@\0%i\0%P\0`;
/** The format for a folder that may not be read. */
export const closedIn = (format: string): string => format.replace("%y", "closed");

/**
 * The entries of one piece of output: awaiting each entry takes longer than reading it. Undefined for an unusable path.
 */
export type Names = readonly (FoundFile | undefined)[];

/**
 * Parses what `find` wrote in that format. Rejects a malformed listing, and any path that does not begin with `start`.
 */
export async function* recordsOf(output: AsyncIterable<Buffer>, start = ""): AsyncGenerator<Names> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of output) {
    const all = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const names: (FoundFile | undefined)[] = [];
    const take = (fields: readonly string[]): void => void names.push(foundIn(fields, start));
    rest = inOneText(all, take) ?? takeRecords(all, take);
    yield names;
    if (rest.length > MAX_RECORD_LENGTH) throw unreadableListing();
  }
}

type Take = (fields: readonly string[]) => void;

/** Takes all complete records and returns the rest; undefined if the bytes are not valid text. */
function inOneText(all: Buffer, take: Take): Buffer | undefined {
  const text = all.toString("utf8");
  if (text.includes("\uFFFD")) return undefined;
  const fields = text.split("\0");
  const whole = Math.floor((fields.length - 1) / FIELDS_PER_RECORD) * FIELDS_PER_RECORD;
  for (let at = 0; at < whole; at += FIELDS_PER_RECORD) take(fields.slice(at, at + FIELDS_PER_RECORD));
  return Buffer.from(fields.slice(whole).join("\0"));
}

/** For pieces that are not valid text: a name may be any bytes, and a piece may end within a character. */
function takeRecords(all: Buffer, take: Take): Buffer {
  let from = 0;
  for (let end = recordEnd(all, from); end !== -1; end = recordEnd(all, from)) {
    take(textOfBytes(all.subarray(from, end)).split("\0"));
    from = end;
  }
  return all.subarray(from);
}

/** The offset after the sixth NUL, or -1. */
function recordEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (let field = 0; field < FIELDS_PER_RECORD; field += 1) {
    at = bytes.indexOf(0, at) + 1;
    if (at === 0) return -1;
  }
  return at;
}

const KINDS: Readonly<Record<string, FoundFile["kind"]>> = {
  f: "file",
  d: "folder",
  closed: "closed",
  l: "link",
};

function foundIn(fields: readonly string[], start: string): FoundFile | undefined {
  const [kind = "", size = "", modified = "", changed = "", ino = "", whole = ""] = fields;
  if (!whole.startsWith(start)) throw unreadableListing();
  const path = whole.slice(start.length);
  const stamp = { size: Number(size), mtimeMs: millis(modified), ctimeMs: millis(changed), ino: Number(ino) };
  if (Number.isNaN(stamp.size + stamp.mtimeMs + stamp.ctimeMs + stamp.ino) || !isBelow(path))
    throw unreadableListing();
  return canBeOpened(path) ? { path, kind: KINDS[kind] ?? "odd", stamp } : undefined;
}

const canBeOpened = (path: string): boolean =>
  path.isWellFormed() && Buffer.byteLength(path) <= MAX_PATH_LENGTH;

/** Computes the time exactly as Node does, to the last bit: whole seconds and nanoseconds separately. */
function millis(text: string): number {
  const dot = text.indexOf(".");
  if (dot === -1) return Number(text) * 1000;
  const part = text.slice(dot + 1, dot + 10);
  return Number(text.slice(0, dot)) * 1000 + Number(part.length === 9 ? part : part.padEnd(9, "0")) / 1e6;
}

/** A path that cannot leave the workspace, even when the listing is hostile. */
export const isBelow = (path: string): boolean => !OUTSIDE.test(path);

/** An empty name, the folder itself, or the folder above. */
const OUTSIDE = /(?:^|\/)\.{0,2}(?:\/|$)/;

export const unreadableListing = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    "the listing of files from the box cannot be read",
    "try again; with an image of your own: harness config set image null",
  );

const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };
/** Bytes that wait for the reader; at this limit the box waits too. */
const HIGH_WATER = 1 << 20;

interface StreamedCommand {
  /** The command's stdout. The command is ended when the reader stops. */
  readonly output: AsyncIterable<Buffer>;
  /** The command's result, and the end of its stderr. */
  readonly ended: Promise<{ readonly result: ExecResult; readonly stderr: string }>;
}

/** A command in the box whose output is read as it comes, with a bounded part of it in memory. */
export function runStreaming(
  box: Box,
  request: Pick<ExecRequest, "words" | "folder" | "input">,
  signal: AbortSignal,
): StreamedCommand {
  const own = new AbortController();
  const pipe = new Pipe();
  const stderr = { text: "" };
  const ended = box
    .exec(
      {
        ...request,
        env: { LC_ALL: "C", TZ: "UTC" },
        timeoutMs: 0,
        keep: ALL,
        onOutput: (stream, bytes) => {
          if (stream === "stdout") return pipe.push(Buffer.from(bytes));
          stderr.text = (stderr.text + Buffer.from(bytes).toString("utf8")).slice(-STDERR_KEPT);
          return undefined;
        },
      },
      AbortSignal.any([signal, own.signal]),
    )
    .then((result) => ({ result, stderr: stderr.text }))
    .finally(() => pipe.end());
  ended.catch(() => undefined);
  return { output: outputOf(pipe, own), ended };
}

const STDERR_KEPT = 4096;

async function* outputOf(pipe: Pipe, own: AbortController): AsyncGenerator<Buffer> {
  try {
    for (let next = await pipe.take(); next !== undefined; next = await pipe.take()) yield next;
  } finally {
    own.abort();
    pipe.drop();
  }
}

class Pipe {
  #pending: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #dropped = false;
  #readable: (() => void) | undefined;
  #writable: (() => void) | undefined;

  push(bytes: Buffer): Promise<void> | undefined {
    if (this.#dropped) return undefined;
    this.#pending.push(bytes);
    this.#bytes += bytes.length;
    this.#readable?.();
    if (this.#bytes < HIGH_WATER) return undefined;
    return new Promise((resolve) => (this.#writable = resolve));
  }

  /** Everything that has arrived, or undefined at the end. */
  async take(): Promise<Buffer | undefined> {
    if (this.#pending.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => (this.#readable = resolve));
    this.#readable = undefined;
    if (this.#pending.length === 0) return undefined;
    const [only] = this.#pending;
    const all = this.#pending.length === 1 && only !== undefined ? only : Buffer.concat(this.#pending);
    this.#empty();
    return all;
  }

  end(): void {
    this.#ended = true;
    this.#readable?.();
  }

  drop(): void {
    this.#dropped = true;
    this.#empty();
  }

  #empty(): void {
    this.#pending = [];
    this.#bytes = 0;
    this.#writable?.();
    this.#writable = undefined;
  }
}

/** The failure that the output is incomplete. */
export function brokenOutput(
  doing: string,
  { result, stderr }: Awaited<StreamedCommand["ended"]>,
): HarnessError {
  const last = stderr.trim().split("\n").at(-1) ?? "";
  const why = result.reason === "" ? `exit code ${result.exit_code}` : result.reason;
  return new HarnessError(
    EXIT.failed,
    `${doing} in the box failed: ${why}${last === "" ? "" : `: ${last}`}`,
    "try again; harness doctor checks the box",
  );
}

/** Reads paths verbatim, with dashes and line feeds; does not follow links; ignores missing files. */
const TAR = [
  "tar",
  "--create",
  "--file=-",
  "--format=gnu",
  "--no-recursion",
  "--null",
  "--verbatim-files-from",
  "--files-from=-",
  "--hard-dereference",
  "--ignore-failed-read",
  "--warning=none",
];

export interface Content {
  readonly path: string;
  /** Null: the file has grown beyond the limit. */
  readonly bytes: Buffer | null;
}

/**
 * Reads these files in order, in one stream out of the box. Omits files that are gone, no longer files, or may not be
 * read. A file that changes during the read may be half old: its stamp, taken before, then no longer fits.
 */
export async function* contentsOf(
  box: Box,
  paths: readonly string[],
  { most, signal }: { readonly most: number; readonly signal: AbortSignal },
): AsyncGenerator<Content> {
  if (paths.length === 0) return;
  const tar = runStreaming(box, { words: TAR, folder: box.workspace, input: namesOf(paths) }, signal);
  const wanted = new Set(paths);
  for await (const content of tarContents(tar, most, signal)) {
    // The packing side is untrusted: only files that were asked for are accepted, each once.
    if (wanted.delete(content.path)) yield content;
  }
  const end = await tar.ended;
  signal.throwIfAborted();
  const came = wanted.size < paths.length;
  if (isEnd(end, came)) return;
  const { cause } = end.result;
  if (came || (cause !== null && cause !== "program")) throw brokenOutput("reading files", end);
  yield* withoutTar(box, paths, { most, signal });
}

/** tar ends with 1 for a file that changed while it was read, with 2 for one that was gone. */
const isEnd = (
  { result: { exit_code, cause }, stderr }: Awaited<StreamedCommand["ended"]>,
  came: boolean,
): boolean => exit_code <= 2 && cause !== "memory" && cause !== "disk" && (came || stderr === "");

async function* tarContents(
  tar: StreamedCommand,
  most: number,
  signal: AbortSignal,
): AsyncGenerator<Content> {
  try {
    yield* filesIn(tar.output, most);
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError) throw thrown;
    const why = `the file contents sent by the box cannot be read: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, why, "try again", thrown);
  }
}

const PER_PIECE = 500;

async function* namesOf(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < paths.length; from += PER_PIECE) {
    const names = paths.slice(from, from + PER_PIECE).map((path) => `${path}\0`);
    yield bytesOfText(names.join(""));
  }
}

interface OpenFile {
  readonly entry: TarEntry;
  readonly pieces: Buffer[];
  length: number;
}

async function* filesIn(output: AsyncIterable<Buffer>, most: number): AsyncGenerator<Content> {
  let open: OpenFile | undefined;
  for await (const each of untar(output)) {
    if (Buffer.isBuffer(each)) {
      if (open === undefined) continue;
      open.length += each.length;
      if (open.length <= most) open.pieces.push(each);
    } else {
      if (open !== undefined) yield contentOf(open, most);
      open = each.type === "file" ? { entry: each, pieces: [], length: 0 } : undefined;
    }
  }
  if (open !== undefined) yield contentOf(open, most);
}

const contentOf = ({ entry, pieces, length }: OpenFile, most: number): Content => ({
  path: textOfBytes(entry.name),
  bytes: length > most ? null : Buffer.concat(pieces),
});

/** For images without a suitable tar. */
async function* withoutTar(
  box: Box,
  paths: readonly string[],
  { most, signal }: { readonly most: number; readonly signal: AbortSignal },
): AsyncGenerator<Content> {
  for (const path of paths) {
    signal.throwIfAborted();
    const stat = await box.stat(path);
    if (stat.kind !== "ok" || stat.value.kind !== "file") continue;
    const read = await box.read(path, { offset: 0, limit: most + 1 });
    if (read.kind !== "ok") continue;
    const { content } = read.value;
    yield { path, bytes: content.length > most ? null : Buffer.from(content) };
  }
}

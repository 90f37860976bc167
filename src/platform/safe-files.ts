import {
  fchmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  type PathLike,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
  writeSync,
} from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm } from "node:fs/promises";
import path from "node:path";

/**
 * Paths in a workspace or of a user may not be regular files: opening a pipe that nobody writes to would wait forever,
 * reading a device may have effects, and a link could lead anywhere. So the checks apply to the opened file itself.
 */

/** What to do with a link in place of the file itself; links in the folders above it are followed. */
export type Links = "follow" | "refuse";

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const flagsFor = (links: Links): number => (links === "follow" ? FLAGS : FLAGS | constants.O_NOFOLLOW);

/** The name exists, but is not a regular file. */
export class NotRegularError extends Error {
  override readonly name = "NotRegularError";
  readonly what: "folder" | "special";

  constructor(stats: Stats) {
    super("it is not a file");
    this.what = stats.isDirectory() ? "folder" : "special";
  }
}

/** The file has more bytes than its reader accepts. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
  readonly size: number;

  constructor(size: number) {
    super(`it has ${size} bytes`);
    this.size = size;
  }
}

interface OpenedFile extends AsyncDisposable {
  readonly handle: FileHandle;
  /** Stats of the opened file, which may have another name by now. */
  readonly stats: Stats;
}

/** Opens a regular file for reading, without waiting for anybody. Rejects like the system, or NotRegularError. */
export async function openRegular(file: PathLike, links: Links): Promise<OpenedFile> {
  const handle = await open(file, flagsFor(links));
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new NotRegularError(stats);
    return { handle, stats, [Symbol.asyncDispose]: () => handle.close() };
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

/** The same, synchronously; the caller closes the descriptor. */
export function openRegularSync(
  file: PathLike,
  links: Links,
): { readonly descriptor: number; readonly stats: Stats } {
  const descriptor = openSync(file, flagsFor(links));
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new NotRegularError(stats);
    return { descriptor, stats };
  } catch (thrown) {
    closeSync(descriptor);
    throw thrown;
  }
}

interface Bounds {
  readonly links: Links;
  /** In bytes. */
  readonly max: number;
}

/** The whole content of a file of at most `max` bytes; rejects with TooLargeError for a larger one. */
export async function readRegular(file: PathLike, { links, max }: Bounds): Promise<Buffer> {
  await using opened = await openRegular(file, links);
  return await readWhole(opened, max);
}

/** The same, synchronously. `check` sees the opened file before it is read, and throws if it must not be. */
export function readRegularSync(
  file: PathLike,
  { links, max, check }: Bounds & { readonly check?: (stats: Stats) => void },
): Buffer {
  const { descriptor, stats } = openRegularSync(file, links);
  try {
    check?.(stats);
    const buffer = bufferFor(stats, max);
    let length = 0;
    for (let more = 1; more > 0 && length < buffer.length; length += more)
      more = readSync(descriptor, buffer, length, buffer.length - length, length);
    return filledPart(buffer, length, stats);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The content that an opened file had when it was opened. Whoever may write to it can let it grow meanwhile: never more
 * than `max` bytes are read. Some files of the kernel report no size; they are read to their end.
 */
export async function readWhole(
  { handle, stats }: Pick<OpenedFile, "handle" | "stats">,
  max: number,
): Promise<Buffer> {
  const buffer = bufferFor(stats, max);
  let length = 0;
  for (let more = 1; more > 0 && length < buffer.length; length += more)
    ({ bytesRead: more } = await handle.read(buffer, length, buffer.length - length, length));
  return filledPart(buffer, length, stats);
}

const UNKNOWN_SIZE = 2 ** 16;

function bufferFor({ size }: Stats, max: number): Buffer {
  if (size > max) throw new TooLargeError(size);
  return Buffer.allocUnsafe(size === 0 ? Math.min(max, UNKNOWN_SIZE) + 1 : size);
}

function filledPart(buffer: Buffer, length: number, { size }: Stats): Buffer {
  if (size === 0 && length === buffer.length) throw new TooLargeError(length);
  return buffer.subarray(0, length);
}

/** The first `max` bytes of a file, or as many as there are. */
export async function readRegularHead(file: PathLike, { links, max }: Bounds): Promise<Buffer> {
  await using opened = await openRegular(file, links);
  const { buffer, bytesRead } = await opened.handle.read({ buffer: Buffer.alloc(max), position: 0 });
  return buffer.subarray(0, bytesRead);
}

interface Replacement {
  /** Exact mode of the new file; 0o600 when left out, since stored data is nobody else's business. */
  readonly mode?: number;
  /** The name under which it is written first; left out: a name that nobody else can have taken. */
  readonly aside?: string;
  /** What survives a power cut: nothing, so that the file may be empty then; its content; or its name, too. */
  readonly lasts: "never" | "content" | "name";
}

const PRIVATE = 0o600;

/** Loaded when a file is written: Node's crypto module takes longer to load than a whole command that only reads. */
const randomSuffix = (): string => process.getBuiltinModule("node:crypto").randomUUID();

/** The error with the name that the caller gave, in place of one that is gone and that nobody knows. */
function withName(file: string, written: string, thrown: unknown): unknown {
  if (thrown instanceof Error) thrown.message = thrown.message.replaceAll(written, file);
  return thrown;
}

/** Replaces a file as a whole, or leaves it unchanged; a kill leaves either the old or the new file. */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode = PRIVATE, aside, lasts }: Replacement,
): Promise<void> {
  const written = aside ?? `${file}.${randomSuffix()}`;
  try {
    {
      await using handle = await open(written, aside === undefined ? "wx" : "w", PRIVATE);
      await handle.writeFile(content);
      if (mode !== PRIVATE) await handle.chmod(mode);
      if (lasts !== "never") await handle.sync();
    }
    await rename(written, file);
  } catch (thrown) {
    await rm(written, { force: true }).catch(() => undefined);
    throw withName(file, written, thrown);
  }
  if (lasts === "name") await syncFolder(path.dirname(file));
}

/** Creates a private file; rejects with EEXIST if the name is taken. A kill leaves a whole file or none. */
export async function newFile(file: string, content: string | Uint8Array): Promise<void> {
  const written = `${file}.${randomSuffix()}`;
  try {
    {
      await using handle = await open(written, "wx", PRIVATE);
      await handle.writeFile(content);
      await handle.sync();
    }
    await link(written, file).catch(async (thrown: unknown) => {
      if ((await lstat(file).catch(() => undefined)) !== undefined) throw thrown;
      // Not every file system supports links.
      await rename(written, file);
    });
  } catch (thrown) {
    throw withName(file, written, thrown);
  } finally {
    await rm(written, { force: true });
  }
}

/** Like `replaceFile`, synchronously; `content` may write the file piece by piece. */
export function replaceFileSync(
  file: string,
  content: string | Uint8Array | ((descriptor: number) => void),
  { mode = PRIVATE, aside, lasts }: Replacement,
): void {
  const written = aside ?? `${file}.${randomSuffix()}`;
  try {
    const descriptor = openSync(written, aside === undefined ? "wx" : "w", PRIVATE);
    try {
      if (typeof content === "function") content(descriptor);
      else writeFileSync(descriptor, content);
      if (mode !== PRIVATE) fchmodSync(descriptor, mode);
      if (lasts !== "never") fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(written, file);
  } catch (thrown) {
    rmSync(written, { force: true });
    throw withName(file, written, thrown);
  }
  if (lasts === "name") syncFolderSync(path.dirname(file));
}

/** Makes the names in a folder survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
}

function syncFolderSync(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Writes all bytes: the kernel may accept fewer at a time. */
export function writeWhole(descriptor: number, bytes: Uint8Array, position?: number): void {
  for (let at = 0; at < bytes.length;)
    at += writeSync(descriptor, bytes, at, bytes.length - at, position === undefined ? null : position + at);
}

/** The text at the head of a regular file; empty when it does not exist or cannot be read. */
export async function headText(file: string, max: number): Promise<string> {
  try {
    return new TextDecoder().decode(await readRegularHead(file, { links: "refuse", max }));
  } catch {
    return "";
  }
}

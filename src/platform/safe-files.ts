import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  type PathLike,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
  writeSync,
} from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm } from "node:fs/promises";
import path from "node:path";

/**
 * Files of a workspace or of a user's are never trusted to be files: a pipe that nobody writes to would be opened for
 * ever, a device may act when it is read, and a link could lead anywhere. What is looked at is what was opened.
 */

/** What becomes of a link in the place of the file itself; links in the folders above it are followed. */
export type Links = "follow" | "refuse";

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const flagsFor = (links: Links): number => (links === "follow" ? FLAGS : FLAGS | constants.O_NOFOLLOW);

/** There is something of that name, and it is no regular file. */
export class NotRegularError extends Error {
  override readonly name = "NotRegularError";
  readonly what: "folder" | "special";

  constructor(stats: Stats) {
    super("it is not a file");
    this.what = stats.isDirectory() ? "folder" : "special";
  }
}

/** It has more bytes than its reader takes. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
  readonly size: number;

  constructor(size: number) {
    super(`it has ${size} bytes`);
    this.size = size;
  }
}

interface Opened extends AsyncDisposable {
  readonly handle: FileHandle;
  /** Of what was opened, which may have another name by now. */
  readonly stats: Stats;
}

/** A regular file, opened to be read without waiting for anybody. Rejects as the system does, or with NotRegularError. */
export async function openRegular(file: PathLike, links: Links): Promise<Opened> {
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

/** The same at once; whoever asks for it closes the descriptor. */
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

/** All of a file that has at most `max` bytes; else it rejects with TooLargeError. */
export async function readRegular(file: PathLike, { links, max }: Bounds): Promise<Buffer> {
  await using opened = await openRegular(file, links);
  const { handle, stats } = opened;
  if (stats.size > max) throw new TooLargeError(stats.size);
  return await handle.readFile();
}

/** The first `max` bytes of a file, or as many as there are. */
export async function readRegularHead(file: PathLike, { links, max }: Bounds): Promise<Buffer> {
  await using opened = await openRegular(file, links);
  const { buffer, bytesRead } = await opened.handle.read({ buffer: Buffer.alloc(max), position: 0 });
  return buffer.subarray(0, bytesRead);
}

interface Replacement {
  /** Of the new file, exactly; left out: 0o600, as what is kept is nobody else's business. */
  readonly mode?: number;
  /** Under which it is written first; left out: a name that nobody else can have taken. */
  readonly aside?: string;
  /** What outlasts a power cut: nothing, so that it may be empty then; its content; its name, too. */
  readonly lasts: "never" | "content" | "name";
}

const PRIVATE = 0o600;

/** Loaded when a file is written: Node's cryptography takes longer to load than all of a command that only reads. */
const beside = (): string => process.getBuiltinModule("node:crypto").randomUUID();

/** Puts a file in the place of another as a whole, or leaves that one as it is; a kill leaves one of the two. */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode = PRIVATE, aside, lasts }: Replacement,
): Promise<void> {
  const written = aside ?? `${file}.${beside()}`;
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
    throw thrown;
  }
  if (lasts === "name") await syncFolder(path.dirname(file));
}

/** Makes a private file as a whole where there is none of that name; else it rejects with EEXIST. A kill leaves it or none. */
export async function newFile(file: string, content: string | Uint8Array): Promise<void> {
  const written = `${file}.${beside()}`;
  try {
    {
      await using handle = await open(written, "wx", PRIVATE);
      await handle.writeFile(content);
      await handle.sync();
    }
    await link(written, file).catch(async (thrown: unknown) => {
      if ((await lstat(file).catch(() => undefined)) !== undefined) throw thrown;
      // Not every file system has links.
      await rename(written, file);
    });
  } finally {
    await rm(written, { force: true });
  }
}

/** The same as `replaceFile` at once; `content` may write it piece by piece. */
export function replaceFileSync(
  file: string,
  content: string | Uint8Array | ((descriptor: number) => void),
  { mode = PRIVATE, aside, lasts }: Replacement,
): void {
  const written = aside ?? `${file}.${beside()}`;
  try {
    const descriptor = openSync(written, aside === undefined ? "wx" : "w", PRIVATE);
    try {
      if (typeof content === "function") content(descriptor);
      else writeFileSync(descriptor, content);
      if (lasts !== "never") fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (mode !== PRIVATE) chmodSync(written, mode);
    renameSync(written, file);
  } catch (thrown) {
    rmSync(written, { force: true });
    throw thrown;
  }
  if (lasts === "name") syncFolderSync(path.dirname(file));
}

/** The names in a folder outlast a power cut. */
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

/** All of it: the kernel may take less at once. */
export function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at);
}

/** The text at the head of a plain file; empty where there is none that can be read. */
export async function headText(file: string, max: number): Promise<string> {
  try {
    return new TextDecoder().decode(await readRegularHead(file, { links: "refuse", max }));
  } catch {
    return "";
  }
}

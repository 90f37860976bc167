import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Box } from "../../core/ports.ts";
import { type TarEntry, untar } from "../../core/text/untar.ts";
import { brokenOutput, type StreamedCommand, runStreaming } from "./find-records.ts";

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
  yield* oneByOne(box, paths, { most, signal });
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

async function* filesIn(output: AsyncIterable<Buffer>, most: number): AsyncGenerator<Content> {
  let open: { readonly entry: TarEntry; readonly pieces: Buffer[]; length: number } | undefined;
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

interface Open {
  readonly entry: TarEntry;
  readonly pieces: readonly Buffer[];
  readonly length: number;
}

const contentOf = ({ entry, pieces, length }: Open, most: number): Content => ({
  path: textOfBytes(entry.name),
  bytes: length > most ? null : Buffer.concat(pieces),
});

/** For images without a suitable tar. */
async function* oneByOne(
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

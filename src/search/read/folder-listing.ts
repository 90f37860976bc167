import type { Box } from "../../core/ports.ts";
import { FORMAT, recordsOf, runStreaming } from "./find-records.ts";
import type { Found } from "./found-file.ts";
import { allAs, TO_MAX_DEPTH } from "./host-names.ts";

/** Maximum bytes of the folder names in one listing: they are words of a command. */
const MAX_LETTERS = 2 ** 15;
/** Maximum entries of one partial listing; with more, everything is listed. */
const MAX_ENTRIES = 100_000;

const START = "./";
/** Paths include the starting point. */
const WITH_START = FORMAT.replace("%P", "%p");

/**
 * Lists these folders themselves, or everything below them, folders before their contents, with one `find`. Undefined
 * if the listing is incomplete: a folder is gone or may not be read, a name is not valid text, or the image has no GNU
 * find.
 */
export async function entriesOfFolders(
  box: Box,
  folders: readonly string[],
  { deep, signal }: { readonly deep: boolean; readonly signal: AbortSignal },
): Promise<readonly Found[] | undefined> {
  if (folders.length === 0) return [];
  const starts = folders.map((folder) => (folder === "" ? "." : `${START}${folder}`));
  if (starts.reduce((sum, start) => sum + Buffer.byteLength(start), 0) > MAX_LETTERS) return undefined;
  const depth = deep ? TO_MAX_DEPTH : ["-maxdepth", "1"];
  const words = ["find", ...starts, "-mindepth", "1", ...depth, ...allAs(WITH_START)];
  const find = runStreaming(box, { words, folder: box.workspace }, signal);
  const entries: Found[] = [];
  for await (const names of recordsOf(find.output, START))
    for (const found of names) {
      if (found === undefined || found.kind === "closed" || entries.length >= MAX_ENTRIES) return undefined;
      entries.push(found);
    }
  const { result } = await find.ended;
  signal.throwIfAborted();
  return result.exit_code === 0 ? entries : undefined;
}

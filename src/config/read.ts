import { constants, type FileHandle, open } from "node:fs/promises";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { formatSize } from "../core/bounds.ts";

const LARGEST = 2 ** 20;

/** undefined when there is no such file; any other failure to read it ends the run. */
export async function readConfigText(file: string): Promise<string | undefined> {
  try {
    // A pipe that nobody writes to would be opened for ever.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    return decode(await readBounded(handle));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

async function readBounded(handle: FileHandle): Promise<Buffer> {
  const found = await handle.stat();
  if (!found.isFile() && !found.isDirectory()) throw new Error("it is a pipe or a device, not a file");
  if (found.isFile() && found.size > LARGEST)
    throw new Error(`it has ${formatSize(found.size)}; settings have at most ${formatSize(LARGEST)}`);
  return await handle.readFile();
}

/** Bytes that are no text would come back as other bytes when the file is written again. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8");
  }
}

import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";

/** The lines of a file, or of stdin for `-`. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === "-") {
    yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
    return;
  }
  await using handle = await opened(file);
  yield* handle.readLines();
}

async function opened(file: string): ReturnType<typeof open> {
  try {
    const handle = await open(file);
    if (!(await handle.stat()).isDirectory()) return handle;
    await handle.close();
    throw new Error("it is a folder");
  } catch (thrown) {
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

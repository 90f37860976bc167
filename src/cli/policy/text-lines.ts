import { open } from "node:fs/promises";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { linesIn } from "../../core/lines.ts";

/** The lines of a file, or of stdin for `-`. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === "-") {
    yield* linesIn(process.stdin);
    return;
  }
  await using handle = await opened(file);
  yield* linesIn(handle.createReadStream());
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

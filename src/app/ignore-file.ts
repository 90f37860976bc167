import { constants, open } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { type IgnoreRules, LONGEST_RULES, readIgnore } from "../policy/paths/ignore-rules.ts";

/** The workspace's own list of what the model may not see; undefined without one. One that cannot be read ends the run. */
export async function ignoreRulesOf(workspace: string): Promise<IgnoreRules | undefined> {
  const file = path.join(workspace, ".harnessignore");
  try {
    // A pipe that nobody writes to would be opened for ever.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) throw new Error("it is not a file");
    // A character takes four bytes at most.
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(4 * LONGEST_RULES + 4) });
    return readIgnore(buffer.toString("utf8", 0, bytesRead));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      "make it a text file that you may read, or remove it",
      thrown,
    );
  }
}

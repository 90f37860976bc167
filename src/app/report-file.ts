import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, rm, writeFile } from "node:fs/promises";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** The mark stands near the start. */
const HEAD_BYTES = 2048;

/** Puts a page under a name that is free, or that an earlier page of ours has; whole or not at all. */
export async function writeReport(file: string, page: string, mark: string): Promise<void> {
  try {
    if (!(await isFree(file, mark)))
      throw refusal(file, "is there already, and is no report of harness; it was left as it is");
    const aside = `${file}.${randomUUID()}`;
    try {
      await writeFile(aside, page, { flag: "wx" });
      await rename(aside, file);
    } catch (thrown) {
      await rm(aside, { force: true });
      throw thrown;
    }
  } catch (thrown) {
    throw thrown instanceof HarnessError ? thrown : refusal(file, `cannot be written: ${reasonOf(thrown)}`);
  }
}

async function isFree(file: string, mark: string): Promise<boolean> {
  try {
    // A pipe that nobody writes to would be opened for ever; a link is somebody's own.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    await using handle = await open(file, flags);
    if (!(await handle.stat()).isFile()) return false;
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await handle.read(head, 0, HEAD_BYTES, 0);
    return head.subarray(0, bytesRead).includes(mark);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return true;
    if (errorCode(thrown) === "ELOOP") return false;
    throw thrown;
  }
}

const refusal = (file: string, why: string): HarnessError =>
  new HarnessError(EXIT.usage, `${file}: ${why}`, "harness report --html another-name.html");
